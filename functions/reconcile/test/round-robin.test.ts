// Round robin: each row has its turn, whatever others add and however often runs begin.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from '../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../limits.ts';
import { createCursors, createRoundRobin, shareOut } from '../round-robin.ts';

const MINUTE = 60_000;
const count = (length: number) => Array.from({ length }, (_, index) => index);

describe('a list that is longer than a run may take', () => {
  interface Row {
    readonly namespace: string;
    readonly id: string;
  }
  const rowsOf = (namespace: string, length: number): ReadonlyArray<Row> =>
    count(length).map((index) => ({ namespace, id: `${namespace}-${index}` }));
  const sizes = {
    own: fc.integer({ min: 1, max: 30 }),
    greedy: fc.integer({ min: 0, max: 60 }),
    limit: fc.integer({ min: 1, max: 20 }),
    /** The number of rows that the greedy namespace adds before each run. */
    added: fc.array(fc.nat(20), { minLength: 70, maxLength: 70 }),
    minutes: fc.integer({ min: 1, max: 60 }),
  };

  test('gives each row of a namespace its turn as soon as its share allows, whatever another namespace adds', () => {
    fc.assert(
      fc.property(fc.record(sizes), ({ own, greedy, limit, added, minutes }) => {
        const cursors = createCursors();
        const had = new Set<string>();
        let others = greedy;
        // At least every second place, and one more run if the limit is odd.
        const runs = Math.ceil((2 * own) / limit) + 1;
        for (let run = 0; run < runs; run += 1) {
          others += added[run] ?? 0;
          const roundRobin = createRoundRobin(cursors, { hash: sha256, now: run * minutes * MINUTE, moves: true });
          const rows = [...rowsOf('greedy', others), ...rowsOf('own', own)];
          const batch = roundRobin.take('list', rows, limit, (row) => row);
          expect(batch.rows).toHaveLength(Math.min(limit, rows.length));
          for (const { id } of batch.rows) had.add(id);
          batch.advance();
        }
        for (const { id } of rowsOf('own', own)) expect(had).toContain(id);
      }),
    );
  });

  test('is read in sections that follow each other: each row once in a circle, whatever the time between runs', () => {
    const hours = { minutes: fc.integer({ min: 1, max: 60 }), sections: fc.integer({ min: 1, max: 100 }) };
    fc.assert(
      fc.property(fc.record(hours), ({ minutes, sections }) => {
        const cursors = createCursors();
        const times = new Map(rowsOf('own', 50).map(({ id }) => [id, 0]));
        for (let run = 0; run < sections; run += 1) {
          const roundRobin = createRoundRobin(cursors, { hash: sha256, now: run * minutes * MINUTE, moves: true });
          const isDue = roundRobin.section('list', 1 / sections);
          for (const [id, before] of times) if (isDue(id)) times.set(id, before + 1);
        }
        expect([...new Set(times.values())]).toEqual([1]);
      }),
    );
  });

  test('begins at another place in each process, and runs that do not have the whole list do not move its cursor', () => {
    const rows = rowsOf('own', 100);
    const first = (now: number, moves: boolean, cursors = createCursors()) => {
      const { rows: taken, advance } = createRoundRobin(cursors, { hash: sha256, now, moves }).take(
        'list',
        rows,
        1,
        (row) => row,
      );
      advance();
      return taken[0]?.id;
    };
    expect(new Set(count(60).map((minute) => first(minute * 2 * MINUTE, true))).size).toBeGreaterThan(30);
    const cursors = createCursors();
    first(0, true, cursors);
    const next = first(1, false, cursors);
    expect(first(2, false, cursors)).toBe(next);
    expect(first(3, true, cursors)).toBe(next);
    expect(first(4, true, cursors)).not.toBe(next);
  });

  test('is shared: no owner gets more than it wants, and the rest is divided among the others', () => {
    const wanted = new Map([
      ['many', 1000],
      ['few', 2],
      ['some', 30],
    ]);
    expect(Object.fromEntries(shareOut(100, wanted))).toEqual({ few: 2, some: 30, many: 68 });
    expect(Object.fromEntries(shareOut(30, wanted))).toEqual({ few: 2, some: 14, many: 14 });
  });
});

test.each([1, 2, 3, 5])(
  'with a resync every %i minutes each deleted Secret is restored within 60 resyncs',
  async (period) => {
    const harness = createHarness({ limits: { ...PROCESS_LIMITS, secrets: 20 } });
    const names = count(60).map((index) => `k${index}`);
    await harness.apply(...makeSecrets(), makeInstance(), ...names.map((name) => makeKey({}, name)));
    await harness.resync();
    await harness.resync();
    for (const name of names) await harness.remove(RESOURCES.secrets, `${name}-key`);
    let max = 0;
    for (let run = 0; run < 60; run += 1) {
      harness.clock.pass(period * MINUTE);
      const { actions } = await harness.resync();
      max = Math.max(max, actions.PutSecret ?? 0);
    }
    const missing = await Promise.all(names.map((name) => harness.value(`${name}-key`)));
    expect(missing.filter((value) => value === undefined)).toHaveLength(0);
    // About one for each run.
    expect(max).toBeLessThan(10);
  },
);

test('keys of one tenant that never converge, on any number of instances, do not stop rotations of others', async () => {
  // A hundredth of the limits of a process: 30 instances are like 3,000.
  const harness = createHarness({ limits: { ...PROCESS_LIMITS, changedKeys: 50, secrets: 5 } });
  const inNamespace = makeSecrets('evil').map((secret) => ({
    ...secret,
    metadata: { ...secret.metadata, namespace: 'a-evil' },
  }));
  const onBad = { connectionRef: { instanceRef: { name: 'bad', namespace: 'a-evil' } } };
  await harness.apply(...makeSecrets(), ...inNamespace, makeInstance({}, 'bad', 'a-evil'), makeInstance());
  await harness.apply(...count(10).map((index) => makeKey({ rotation: { every: '1d' } }, `v${index}`)));
  await harness.resync();
  await harness.apply(...count(30).map((index) => makeInstance({ paused: true }, `p${index}`, 'a-evil')));
  await harness.apply(...count(60).map((index) => makeSecret(`k${index}-key`, { x: 'y' }, 'a-evil')));
  await harness.apply(...count(60).map((index) => makeKey(onBad, `k${index}`, 'a-evil')));
  for (let run = 0; run < 5; run += 1) {
    harness.clock.pass(MINUTE);
    await harness.resync();
  }
  expect(await harness.ready(virtualKeys, 'k0', 'a-evil')).toBe('False SecretConflict');
  const valuesOf = () => Promise.all(count(10).map((index) => harness.value(`v${index}-key`)));
  const before = await valuesOf();
  harness.clock.pass(25 * 60 * MINUTE);
  await harness.resync();
  const after = await valuesOf();
  expect(after.filter((value, index) => value === before[index])).toEqual([]);
});

test.each([
  [1, 0],
  [2, 0],
  [2, 1],
  [5, 0],
])(
  'a retained key whose Secret is deleted stops working, however many instances and orphaned claims another tenant has (resync every %i minutes, %i later)',
  async (period, phase) => {
    const harness = createHarness({ limits: { ...PROCESS_LIMITS, lookUps: 100 } });
    await harness.apply(...makeSecrets(), makeInstance());
    await harness.apply(makeKey({ deletionPolicy: 'Retain' }, 'leaked', 'other'), makeKey({}, 'stays', 'other'));
    await harness.resync();
    const value = await harness.value('leaked-key', 'other');
    // Each resync may look up 50 objects for the instance, and 99 claims of the tenant stay orphaned.
    await harness.apply(...count(99).map((index) => makeInstance({ paused: true }, `p${index}`, 'evil')));
    const names = count(99).map((index) => `k${index}`);
    await harness.apply(...names.map((name) => makeKey({}, name, 'evil')));
    await harness.resync();
    for (const name of names) {
      await harness.edit(virtualKeys, name, { metadata: { finalizers: [] } }, 'evil');
      await harness.remove(virtualKeys, name, 'evil');
    }
    await harness.remove(virtualKeys, 'leaked', 'other');
    await harness.resync();
    await harness.resync();
    await harness.remove(RESOURCES.secrets, 'leaked-key', 'other');
    harness.clock.pass(phase * MINUTE);
    expect(await harness.works(value)).toBe(true);
    harness.clock.pass(period * MINUTE);
    await harness.resync();
    expect(await harness.works(value)).toBe(false);
  },
);

test('each resync continues the audit of counters where the last one ended; a trigger waits for no counter', async () => {
  const begins: number[] = [];
  const harness = createHarness({
    flush: async (_, { cursor }) => {
      begins.push(cursor.from);
      cursor.move(begins.length / 10);
    },
  });
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  await harness.resync();
  begins.length = 0;
  await harness.resync();
  await harness.trigger('VirtualKey', 'chat');
  await harness.trigger('GatewayInstance', 'main');
  await harness.resync();
  expect(begins.map((from) => from.toFixed(3)).slice(1)).toEqual(['0.100']);
  harness.restart();
  harness.clock.pass(MINUTE);
  await harness.resync();
  expect(begins.at(-1)?.toFixed(3)).not.toBe('0.200');
});

test('a resync maintains databases once, after the flushes of all instances and their statuses; a trigger does not', async () => {
  const order: string[] = [];
  const harness = createHarness({
    flush: async ({ name }) => void order.push(name),
    maintain: async () => {
      const all = await Promise.all(['main', 'second'].map((name) => harness.ready(gatewayInstances, name)));
      order.push(`maintain with ${all.join(', ')}`);
    },
  });
  await harness.apply(...makeSecrets(), makeInstance(), makeInstance({}, 'second'), makeKey());
  const other = { keyAlias: 'other', connectionRef: { instanceRef: { name: 'second', namespace: 'default' } } };
  await harness.apply(makeKey(other, 'other'));
  await harness.resync();
  order.length = 0;
  await harness.resync();
  const maintained = 'maintain with True Ready, True Ready';
  expect([order.slice(0, -1).toSorted(), order.at(-1)]).toEqual([['main', 'second'], maintained]);
  await harness.trigger('VirtualKey', 'chat');
  expect(order.filter((one) => one === maintained)).toHaveLength(1);
});
