// A published value works at every moment of a rotation, also if runs die or overlap.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const HOURLY = { rotation: { every: '1h', overlap: '10m' } };

let harness: Harness;
const published = async () => (await harness.value('chat-key')) ?? '';
const working = async () => {
  await harness.apply(makeKey(HOURLY));
  await harness.resync();
  return published();
};
const ask = (text: string) =>
  harness.edit(virtualKeys, 'chat', { metadata: { annotations: { 'auth.gateway-operator.dev/rotate': text } } });
const pass = async (millis: number) => {
  harness.clock.pass(millis);
  return harness.resync();
};

const isWrite = (verb: string) => verb !== 'get' && verb !== 'list';
const WRITES = ['putScope', 'endValues', 'removeValue'];

test.each([
  ['in time', HOUR, async (): Promise<unknown> => undefined],
  ['by annotation', MINUTE, (): Promise<unknown> => ask('now')],
] as const)(
  'if a run that rotates %s dies at any of its writes, the published value and the previous one work at every moment',
  async (_, wait, prepare) => {
    for (const when of ['before', 'after'] as const) {
      for (let step = 1; ; step += 1) {
        harness = createHarness();
        await harness.apply(...makeSecrets(), makeInstance());
        const first = await working();
        await prepare();
        harness.clock.pass(wait);
        let count = 0;
        let died = false;
        const look = async () => {
          expect({
            step,
            when,
            published: await harness.works(await published()),
            first: await harness.works(first),
          }).toEqual({
            step,
            when,
            published: true,
            first: true,
          });
        };
        const dies = () => {
          if (!died) count += 1;
          died = died || count === step;
          return died;
        };
        harness.cluster.inject(({ verb }) => {
          if (!isWrite(verb)) return undefined;
          const wasDead = died;
          if (!dies()) return undefined;
          if (when === 'after' && !wasDead) return 'lost';
          throw new Error('killed');
        });
        harness.onDatabase = async (method) => {
          if (WRITES.includes(method) && dies()) throw new Error('killed');
        };
        await harness.resync();
        harness.cluster.inject(() => undefined);
        harness.onDatabase = () => undefined;
        await look();
        harness.restart();
        await pass(1000);
        await look();
        const second = await published();
        expect({ step, when, rotated: second !== first }).toEqual({ step, when, rotated: true });
        expect((await pass(1000)).actions).toEqual({});
        expect(await published()).toBe(second);
        await pass(10 * MINUTE);
        expect(await harness.works(first)).toBe(false);
        expect(await published()).toBe(second);
        if (!died) break;
      }
    }
  },
);

test('two concurrent runs rotate a key once, and no value that was read from the Secret stops working early', async () => {
  let max = 0;
  for (let tosses = 0; tosses < 200; tosses += 1) {
    harness = createHarness();
    await harness.apply(...makeSecrets(), makeInstance());
    const first = await working();
    harness.clock.pass(HOUR);
    const seen = new Set<string>();
    let toss = tosses * 7919;
    const turn = async () => {
      const waits = toss % 3;
      toss = Math.floor(toss / 3);
      for (let wait = 0; wait < waits * 4; wait += 1) await Promise.resolve();
      if (waits === 2) await new Promise<void>((resolve) => setImmediate(resolve));
    };
    harness.cluster.inject(async ({ name, verb }) => {
      await turn();
      // A client reads the Secret at every moment, and uses its value.
      if (name === undefined || verb === 'get' || verb === 'list') return undefined;
      const secret = harness.cluster.objects(RESOURCES.secrets).find(({ metadata }) => metadata.name === 'chat-key');
      const value = atob((secret?.data as Record<string, string> | undefined)?.key ?? '');
      seen.add(value);
      expect({ tosses, works: await harness.works(value) }).toEqual({ tosses, works: true });
      return undefined;
    });
    let added = 0;
    harness.onDatabase = (method) => {
      if (method === 'putScope') added += 1;
      return turn();
    };
    const reports = await Promise.all([harness.resync(), harness.trigger('VirtualKey', 'chat'), harness.resync()]);
    harness.cluster.inject(() => undefined);
    harness.onDatabase = () => undefined;
    max = Math.max(max, added);
    expect(reports.map(({ failed }) => failed)).toEqual([{}, {}, {}]);
    seen.add(await published());
    expect([...seen]).toEqual([first, await published()]);
    expect(await harness.works(first)).toBe(true);
    const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    const [claim] = await harness.database().claims(uid);
    expect(claim?.values.filter(({ notAfter }) => notAfter === undefined)).toHaveLength(1);
    expect((await harness.resync()).actions).toEqual({});
  }
  expect(max, 'runs that had made a value of their own').toBeGreaterThan(1);
});

test('an unpublished value of a run that died is retired after ten minutes, also if rotation was cleared', async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
  const first = await working();
  harness.clock.pass(HOUR);
  harness.cluster.inject(({ verb }) => {
    if (isWrite(verb)) throw new Error('killed');
    return undefined;
  });
  await harness.resync();
  harness.cluster.inject(() => undefined);
  harness.restart();
  await harness.edit(virtualKeys, 'chat', { spec: { rotation: null } });
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const values = async () => (await harness.database().claims(uid))[0]?.values.length;
  await pass(MINUTE);
  expect({ published: await published(), values: await values() }).toEqual({ published: first, values: 2 });
  await pass(10 * MINUTE);
  expect({ published: await published(), values: await values() }).toEqual({ published: first, values: 1 });
  expect(await harness.works(first)).toBe(true);
  expect((await pass(MINUTE)).actions).toEqual({});
});
