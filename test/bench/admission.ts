// Cold start of the admission function, until its first review is answered.
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { DEPLOYABLES, writeBundles } from '../../infra/tools/build.ts';
import { ADMISSION_PATH } from '../platforms/node-process.ts';
import { reviewOf } from '../platforms/review.ts';
import { cpuOf, printed, spawnPinned } from './pinned.ts';
import { median, spread, table } from './table.ts';

const ROUNDS = 21;
const WARM_UP = 2;

const REVIEW = JSON.stringify(
  reviewOf({
    apiVersion: 'auth.gateway-operator.dev/v1alpha1',
    kind: 'VirtualKey',
    metadata: { name: 'measured', namespace: 'default' },
    spec: {
      keyAlias: 'measured',
      models: ['sample-small'],
      maxBudget: '10',
      budgetDuration: '30d',
      connectionRef: { instanceRef: { name: 'sample', namespace: 'default' } },
    },
  }),
);

interface Start {
  /** Milliseconds from `spawn` to the message that it listens. */
  readonly listening: number;
  /** Milliseconds from `spawn` to the last byte of the first answer. */
  readonly answered: number;
  /** Milliseconds of CPU until then, in steps of ten: a busy machine does not change them. */
  readonly cpu: number;
}

/** The environment of the bundle: a service account, HTTP as behind Knative's ingress. */
export async function benchAdmission(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-bench-'));
  try {
    await writeBundles(
      folder,
      DEPLOYABLES.filter(({ output }) => output === 'node/admission.mjs'),
    );
    const bare = await buildBare(folder);
    const bundle = join(folder, 'node/admission.mjs');
    const cache = { NODE_COMPILE_CACHE: join(folder, 'cache') };
    const variants = [
      { name: 'bare Node (node:http, fixed answer)', start: () => start(bare, {}) },
      { name: 'admission', start: () => start(bundle, {}) },
      { name: 'admission, compile cache', start: () => start(bundle, cache) },
    ];
    const starts = variants.map((): Start[] => []);
    for (let round = -WARM_UP; round < ROUNDS; round += 1) {
      for (const [index, variant] of variants.entries()) {
        const measured = await variant.start();
        if (round >= 0) starts[index]?.push(measured);
      }
    }
    return report(
      variants.map(({ name }) => name),
      starts,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Writes the smallest server into the folder; its path. */
export async function buildBare(folder: string): Promise<string> {
  const outfile = join(folder, 'bare.mjs');
  const entry = join(import.meta.dirname, 'bare-node.ts');
  await build({ entryPoints: [entry], outfile, format: 'esm', platform: 'node', minify: true });
  return outfile;
}

async function start(program: string, environment: Readonly<Record<string, string>>): Promise<Start> {
  const began = performance.now();
  const own = { HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', KUBERNETES_SERVICE_HOST: '127.0.0.1' };
  const child = spawnPinned(0, [program], {
    environment: { ...own, PATH_SECRETS: ADMISSION_PATH, ...environment },
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const url = await printed(child, /"message":"listening".*"url":"([^"]+)"/);
  const listening = performance.now() - began;
  const answer = await post(`${url}/${ADMISSION_PATH}/mutate`);
  const answered = performance.now() - began;
  const cpu = cpuOf(child) ?? Number.NaN;
  // The process ends as in a cluster: the compile cache is written at the end.
  child.kill('SIGTERM');
  await ended;
  if (!answer.includes('"allowed":true')) throw new Error(`not an answer: ${answer}`);
  return { listening, answered, cpu };
}

function post(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers: { 'content-type': 'application/json' } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      answer.on('end', () => resolve(text));
    });
    sent.on('error', reject);
    sent.end(REVIEW);
  });
}

function report(names: ReadonlyArray<string>, starts: ReadonlyArray<ReadonlyArray<Start>>): string {
  const base = median(starts[0]?.map(({ answered }) => answered) ?? []);
  const rows = names.map((name, index) => {
    const of = starts[index] ?? [];
    const answered = of.map((one) => one.answered);
    const middle = median(answered);
    return [
      name,
      median(of.map((one) => one.listening)).toFixed(1),
      middle.toFixed(1),
      spread(answered),
      (middle - base).toFixed(1),
      `${(middle / base).toFixed(2)} ×`,
      median(of.map(({ cpu }) => cpu)).toFixed(0),
    ];
  });
  const head = [
    'cold start',
    'listens, ms',
    'first review answered, ms',
    'from to',
    'more than bare',
    'ratio',
    'CPU, ms',
  ];
  return `Admission: ${ROUNDS} starts each, in turn, after ${WARM_UP} of each to warm up; medians.\n\n${table(head, rows)}`;
}
