// What an installation costs while it does nothing: time until each function answers, on Node and in workerd, memory
// and CPU at rest, and the image's size.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';
import { writeBundles } from '../../infra/tools/build.ts';
import { writeBase } from '../platforms/image.ts';
import { mountSample } from '../platforms/mounts.ts';
import { ADMISSION_PATH, type NodeProcess, RECONCILE_TOKEN, resyncOnce, startNode } from '../platforms/node-process.ts';
import { startWorld, type TestWorld } from '../platforms/world.ts';
import { run } from '../support/child.ts';
import { whyNoRedis } from '../support/redis.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { buildBare } from './admission.ts';
import { type DeployOptions, type Program, prepareWorkers } from './deploy-workers.ts';
import { cpuOf } from './pinned.ts';
import { median, spread, table } from './table.ts';

const ROUNDS = 9;
const REST = 20_000;

interface NodeProgram extends Program {
  readonly start: () => Promise<NodeProcess>;
}

/**
 * The functions on the embedded API server and a PostgreSQL: as Node processes with counters in memory, then in workerd
 * with counters in a Redis.
 */
export async function benchDeploy(): Promise<string> {
  const world = await startWorld();
  try {
    const { onNode, makeCall, snapshot } = await prepare(world);
    const parts = [await starts(onNode), await rest(onNode), await startsOfWorkers(world, { makeCall, snapshot })];
    return [...parts, await imageSize()].join('\n\n');
  } finally {
    await world.stop();
  }
}

async function startsOfWorkers(world: TestWorld, given: DeployOptions): Promise<string> {
  const why = whyNoRedis();
  if (why !== undefined) return `Workers were not started: ${why}.`;
  const workers = await prepareWorkers(world, given);
  try {
    return await starts(workers.programs);
  } finally {
    await workers.stop();
  }
}

async function prepare(world: TestWorld) {
  const { folder, kubeconfig: KUBECONFIG } = world;
  await writeBundles(folder);
  const bare = await buildBare(folder);
  const bundle = (name: string) => join(folder, `node/${name}.mjs`);
  await world.apply(world.sample());
  await resyncOnce(bundle('reconcile'), { KUBECONFIG, GATEWAY_PROCESSES: 'one' });
  const mounts = await mountSample(world.cluster, join(folder, 'mounts'));
  const found = await world.cluster.get(resourceOf('VirtualKey'), 'default', 'example-service');
  const { keyValue: key = '' } = (found?.status ?? {}) as { readonly keyValue?: string };
  const makeCall = (url: string) =>
    fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sample-small', messages: [{ role: 'user', content: 'Say hello.' }] }),
    });
  const ready = (url: string) => fetch(`${url}/readyz`);
  const resync = (url: string) =>
    fetch(url, { method: 'POST', headers: { authorization: `Bearer ${RECONCILE_TOKEN}` } });
  const cached = { NODE_COMPILE_CACHE: join(folder, 'cache') };
  const starts = (name: string, environment: Readonly<Record<string, string>>) => () =>
    startNode(bundle(name), { ...cached, ...environment });
  const onNode: ReadonlyArray<NodeProgram> = [
    { name: 'bare Node, a fixed answer', start: () => startNode(bare, {}), first: fetch },
    {
      name: 'admission, ready',
      start: starts('admission', { KUBECONFIG, PATH_SECRETS: ADMISSION_PATH }),
      first: ready,
    },
    {
      name: 'reconcile, a whole resync',
      start: starts('reconcile', { KUBECONFIG, RECONCILE_TOKEN, GATEWAY_PROCESSES: 'one' }),
      first: resync,
    },
    { name: 'gateway, a charged completion', start: starts('gateway', { ...mounts }), first: makeCall },
  ];
  return { onNode, makeCall, snapshot: readFileSync(mounts.SNAPSHOT_FILE, 'utf8') };
}

/** Milliseconds from `spawn` to the whole first answer. */
async function starts(programs: ReadonlyArray<Program>): Promise<string> {
  const millis = programs.map((): number[] => []);
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [index, { name, start, first }] of programs.entries()) {
      const began = performance.now();
      const started = await start();
      const answer = await first(started.url);
      await answer.text();
      const took = performance.now() - began;
      await started.stop();
      if (!answer.ok) throw new Error(`${name} answered ${answer.status}`);
      // The first round fills the compile cache.
      if (round >= 0) millis[index]?.push(took);
    }
  }
  const base = median(millis[0] ?? []);
  const rows = programs.map(({ name }, index) => {
    const of = millis[index] ?? [];
    return [name, median(of).toFixed(0), spread(of), `${(median(of) / base).toFixed(2)} ×`];
  });
  const head = ['until the first answer', 'median, ms', 'from to', 'ratio'];
  return `${ROUNDS} starts each, in turn.\n\n${table(head, rows)}`;
}

/** Memory and CPU of each process that nobody asks, after its first answer. */
async function rest(programs: ReadonlyArray<NodeProgram>): Promise<string> {
  const started = [];
  for (const { start, first } of programs) {
    const one = await start();
    await (await first(one.url)).text();
    started.push(one);
  }
  await pause(REST);
  const before = started.map(({ pid }) => cpuOf({ pid }) ?? Number.NaN);
  await pause(REST);
  const rows = started.map(({ pid }, index) => [
    programs[index]?.name.split(',', 1)[0] ?? '',
    (residentOf(pid) / 1024).toFixed(0),
    (((cpuOf({ pid }) ?? Number.NaN) - (before[index] ?? 0)) / (REST / 1000)).toFixed(1),
  ]);
  for (const one of started) await one.stop();
  return table(['at rest', 'memory, MiB', 'CPU, ms per second'], rows);
}

/** KiB. */
function residentOf(pid: number): number {
  const [, size] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(size);
}

/** As `npm run image` tells it, on the Node.js of this machine. */
async function imageSize(): Promise<string> {
  const base = temporaryFolder();
  const folder = temporaryFolder();
  writeBase(base);
  const { code, stdout, stderr } = await run('node', [
    'infra/packaging/image/main.ts',
    '--oci',
    folder,
    '--base',
    base,
  ]);
  rmSync(folder, { recursive: true, force: true });
  return code === 0 ? stdout.trim() : `The image was not built: ${stderr.trim()}`;
}
