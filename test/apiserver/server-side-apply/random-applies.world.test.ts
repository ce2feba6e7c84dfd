// Random sequences of applies leave the objects that a real API server leaves.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startCluster } from '../../support/clusters.ts';
import { type TestControlPlane, whyNoControlPlane } from '../../support/control-plane.ts';
import { runs } from '../../support/runs.ts';
import { type SharedControlPlane, sharedControlPlane } from '../../support/shared-servers.ts';
import { describeUnless } from '../../support/skip-unless.ts';
import { type Step, widgetDefinition } from './cases.ts';
import { merging } from './merging.ts';
import { play } from './play.ts';

const text = fc.constantFrom('1', '2');
const some = <T>(record: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(record, { requiredKeys: [] });
const pair = some({ x: text, y: text });
const element = fc.record(
  { name: fc.constantFrom('a', 'b', 'c'), port: fc.constantFrom(80, 81), value: text, more: pair },
  { requiredKeys: ['name', 'port'] },
);
const open = fc.oneof(text, fc.dictionary(fc.constantFrom('m', 'n'), fc.oneof(text, fc.array(text, { maxLength: 2 }))));
const spec = some({
  a: text,
  b: text,
  n: fc.constantFrom(1, 2),
  plain: fc.array(text, { maxLength: 2 }),
  set: fc.uniqueArray(fc.constantFrom('p', 'q', 'r', 's'), { maxLength: 4 }),
  keyed: fc.uniqueArray(element, { maxLength: 3, selector: ({ name, port }) => `${name}${port}` }),
  map: fc.dictionary(fc.constantFrom('k', 'l'), text),
  whole: pair,
  any: fc.dictionary(fc.constantFrom('k', 'l'), open),
  deep: some({ inner: pair }),
});
const labels = fc.dictionary(fc.constantFrom('l', 'm'), text, { minKeys: 1 });
const step: fc.Arbitrary<Step> = fc.record({
  by: fc.constantFrom('me', 'you', 'zed'),
  apply: fc.record({ spec, metadata: fc.record({ labels }) }, { requiredKeys: ['spec'] }),
});

describeUnless(whyNoControlPlane(), 'a real API server', () => {
  const servers: SharedControlPlane[] = [];
  let embedded: TestControlPlane;
  beforeAll(async () => {
    embedded = await startCluster('embedded');
    for (const server of [await sharedControlPlane(), embedded]) {
      servers.push(server);
      await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition);
      await merging(server);
    }
  });
  afterAll(() => embedded?.stop());

  test('random sequences of applies by three managers leave the same', async () => {
    let count = 0;
    const same = fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 6 }), async (steps) => {
      const name = `random-${++count}`;
      const [theirs = [], ours = []] = await Promise.all(
        servers.map(({ call }) => play(call, { of: 'Widget', steps }, name)),
      );
      // Where an apply empties an object the real server is left with a null that its own schema refuses; here the
      // object goes.
      const until = theirs.indexOf('refused');
      const comparable = (answers: readonly unknown[]) => (until < 0 ? answers : answers.slice(0, until)).map(whole);
      expect(comparable(ours)).toEqual(comparable(theirs));
    });
    await fc.assert(same, { numRuns: runs(80), seed: 20261121 });
  });
});

/** Without what an apply emptied: the real server leaves an empty list, a null or nothing there, as it comes. */
function whole(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(whole);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => [key, whole(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => member !== null && JSON.stringify(member).length > 2));
}
