// Bodies of any size and any content, many at the same time, in the memory that a Pod of admission has.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_CONNECTIONS } from '../../infra/runtime/node/process.ts';
import { type AdmissionProcess, startAdmission } from '../platforms/node-process.ts';
import { reviewOf } from '../platforms/review.ts';
import { documentsOf } from '../platforms/world.ts';
import { linkBundles } from '../support/shared-servers.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { objectOf } from './fixtures.ts';

/** The container of admission in the cluster: its options of Node, and its memory. */
const deployment = documentsOf('infra/platforms/kubernetes/install.yaml').find(
  ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'admission',
);
const container = (deployment?.spec as PodTemplate | undefined)?.template.spec.containers[0];
const NODE_OPTIONS = container?.env.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
const MAX_MIB = Number.parseInt(container?.resources.limits.memory ?? '', 10);
const AT_ONCE = 20;
const LARGE = 6_900_000;
const MANY_CONNECTIONS = 2_000;

interface PodTemplate {
  readonly template: {
    readonly spec: {
      readonly containers: ReadonlyArray<{
        readonly env: ReadonlyArray<{ readonly name: string; readonly value?: string }>;
        readonly resources: { readonly limits: { readonly memory: string } };
      }>;
    };
  };
}

let admission: AdmissionProcess;
beforeAll(async () => {
  const folder = temporaryFolder();
  await linkBundles(folder);
  admission = await startAdmission(join(folder, 'node/admission.mjs'), {
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    NODE_OPTIONS,
  });
});
afterAll(() => admission?.stop());

/** The status. A sender whose body is not read to its end may be cut off before it hears one. */
const send = async (address: string, body: string): Promise<string> => {
  const answer = await fetch(`${address}?timeout=30s`, { method: 'POST', body }).catch(() => undefined);
  await answer?.arrayBuffer();
  return String(answer?.status ?? 'cut off');
};
const sendAll = async (address: string, body: string): Promise<ReadonlyArray<string>> => {
  const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => send(address, body)));
  return [...new Set(answers)].sort();
};
const peakMiB = (): number => {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${admission.pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1024;
};
const filled = (start: string, value: string, end: string): string =>
  start + value.repeat(Math.floor((LARGE - start.length - end.length) / value.length)).slice(0, -1) + end;

const key = objectOf('VirtualKey');
/** A review of a key whose spec is this JSON text. */
const reviewWith = (start: string, value: string, end: string): string => {
  const [before = '', after = ''] = JSON.stringify(reviewOf({ ...key, spec: 'SPEC' })).split('"SPEC"');
  return filled(before + start, value, end + after);
};

/** A body that begins as no review does is not read to its end. */
const UNREAD = ['400', 'cut off'];
const BODIES: ReadonlyArray<readonly [what: string, body: string, answers: ReadonlyArray<string>]> = [
  ['millions of empty maps that are no review', filled('[', '{},', ']'), UNREAD],
  ['no review behind a long text', filled('{"a":"', 'x', '"}'), UNREAD],
  ['lists in lists without end', '['.repeat(LARGE), UNREAD],
  ['a review with millions of empty maps', reviewWith('{"models":[', '{},', ']}'), ['400']],
  ['a review with lists in lists', reviewWith('{"models":', '[', '1'), ['400']],
  ['a review with a long list of texts', reviewWith('{"models":[', '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",', ']}'), ['200']],
  ['a review with a long text', reviewWith('{"keyAlias":"', 'x', '"}'), ['200']],
];

test.each(BODIES)('%s, from nobody who knows the segment: not read', async (_, body) => {
  expect(['404', 'cut off']).toEqual(
    expect.arrayContaining([...(await sendAll(`${admission.url}/guessed/validate`, body))]),
  );
});

test.each(BODIES)(
  '%s, many at the same time: each is answered, and so is a small review beside them',
  async (_, body, answers) => {
    const [large, small] = await Promise.all([
      sendAll(`${admission.base}/mutate`, body),
      send(`${admission.base}/mutate`, JSON.stringify(reviewOf(key))),
    ]);
    expect(answers).toEqual(expect.arrayContaining([...large]));
    expect(small).toBe('200');
  },
);

test('connections that send half a head and come without end: only some are kept, and a review beside them is answered', async () => {
  const { hostname, port } = new URL(admission.url);
  const sockets = Array.from({ length: MANY_CONNECTIONS }, () => connect(Number(port), hostname));
  let closed = 0;
  for (const socket of sockets) {
    socket.on('error', () => undefined).on('close', () => (closed += 1));
    socket.write(`GET / HTTP/1.1\r\nx: ${'x'.repeat(15_000)}`);
  }
  await expect.poll(() => closed, { timeout: 5_000 }).toBe(MANY_CONNECTIONS - MAX_CONNECTIONS);
  expect(await send(`${admission.base}/mutate`, JSON.stringify(reviewOf(key)))).toBe('200');
  for (const socket of sockets) socket.destroy();
});

test('all that never took more memory than the container has', () => {
  expect(peakMiB()).toBeLessThan(MAX_MIB);
});
