import { beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../ports/ledger.ts';
import {
  createProcess,
  createScene,
  outcome,
  requestOf,
  type Scene,
  scopeOf,
  settlementOf,
  slow,
} from './scenario.promises.ts';

const key = scopeOf('key', 100n);
let scene: Scene;

beforeEach(() => {
  scene = createScene();
});

const rebuilds = (): number => scene.counted.get('gateway_operator_ledger_rebuilds_total') ?? 0;
const costs = (): bigint[] => scene.entries.entries().map(({ cost }) => cost);
const sum = (): bigint => costs().reduce((all, cost) => all + cost, 0n);
const tryHold = (ledger: Parameters<Scene['tryHold']>[0], amount: bigint) =>
  scene.tryHold(ledger, requestOf(amount, key));

describe('a store that was wiped', () => {
  test('loses nothing: holds and settlements, booked or not, count after the rebuild as before', async () => {
    const [one, two] = [await scene.start(), await scene.start()];
    const held = await scene.take(one, 60n, key);
    const settled = await scene.take(two, 30n, key);
    await two.settle(settled, settlementOf(20n));
    await scene.time.advance(10);
    scene.wipe();
    expect(await tryHold(two, 21n)).toMatchObject({ outcome: 'busy' });
    expect(await tryHold(two, 20n)).toMatchObject({ outcome: 'reserved' });
    await one.settle(held, settlementOf(50n));
    await scene.time.advance(500);
    expect(await scene.spent(one, key)).toBe(70n);
    expect(sum()).toBe(70n);
  });

  test('is rebuilt once, by many processes', async () => {
    const ledgers = [await scene.start(), await scene.start(), await scene.start(), await scene.start()];
    for (const one of ledgers) await scene.take(one, 10n, key);
    const before = (await scene.epochs.part.state()).epoch;
    scene.wipe();
    await scene.time.advance(3000);
    expect((await scene.epochs.part.state()).epoch).toBe(before + 1);
    expect(await tryHold(ledgers[0] as (typeof ledgers)[0], 61n)).toMatchObject({ outcome: 'busy' });
    expect(await tryHold(ledgers[1] as (typeof ledgers)[0], 60n)).toMatchObject({ outcome: 'reserved' });
  });

  test('after thousands of calls is rebuilt as fast as after a few', async () => {
    const one = await scene.start();
    await scene.time.advance(60_000);
    await scene.take(one, 60n, key);
    scene.wipe();
    const { outcome: came, millis } = await tryHold(one, 40n);
    expect(came).toBe('reserved');
    expect(millis).toBeLessThan(100);
  });

  test('gets the cost of a settled stream from its settlement', async () => {
    const one = await scene.start();
    const hold = await scene.take(one, 60n, key);
    one.trackStream(hold, () => 50n);
    scene.store.behaviour = 'refuses';
    await scene.ended(one.settle(hold, settlementOf(30n)));
    scene.wipe();
    scene.store.behaviour = 'up';
    await scene.time.advance(3000);
    expect(await tryHold(one, 71n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryHold(one, 70n)).toMatchObject({ outcome: 'reserved' });
  });

  test('keeps spend from long ago in a window of years', async () => {
    const budget = { limit: '100', duration: '36500d', alignment: 'Rolling' as const };
    const lasting = scopeOf('lasting', 100n, { budget });
    const one = await scene.start();
    for (const cost of [20n, 30n]) {
      await one.settle(await scene.take(one, cost, lasting), settlementOf(cost));
      await scene.time.advance(500);
      await scene.time.jump(400 * 86_400_000);
    }
    await scene.time.advance(2000);
    scene.wipe();
    expect((await scene.tryHold(one, requestOf(51n, lasting))).outcome).toBe('exceeded');
    expect((await scene.tryHold(one, requestOf(50n, lasting))).outcome).toBe('reserved');
    expect(await scene.spent(one, lasting)).toBe(50n);
  });

  test('makes requests wait until it is rebuilt, without a 503', async () => {
    const [one, two] = [await scene.start(), await scene.start()];
    await scene.take(one, 10n, key);
    await scene.take(two, 10n, key);
    scene.wipe();
    const results = await scene.ended(
      Promise.all([one, two, one, two].map((ledger) => ledger.reserve(requestOf(20n, key)))),
    );
    expect(results.value.map(outcome)).toEqual(['reserved', 'reserved', 'reserved', 'reserved']);
    expect(results.millis).toBeLessThan(1000);
    expect(await tryHold(one, 1n)).toMatchObject({ outcome: 'busy' });
    expect(rebuilds()).toBe(2);
  });

  test('waits a second, and no more, for a process that does not answer', async () => {
    const sleeper = createProcess();
    const [one, two] = [await scene.start(), await scene.start(sleeper)];
    await scene.take(two, 30n, key);
    await scene.take(one, 10n, key);
    sleeper.is.frozen = true;
    scene.wipe();
    const { outcome: came, millis } = await tryHold(one, 60n);
    expect(came).toBe('reserved');
    expect(millis).toBeGreaterThanOrEqual(1000);
    expect(millis).toBeLessThan(1800);
  });

  test('does not wait for a process that stopped cleanly', async () => {
    const [one, two] = [await scene.start(), await scene.start()];
    await scene.ended(two.close());
    scene.wipe();
    expect((await tryHold(one, 60n)).millis).toBeLessThan(500);
  });

  test('counts a settlement once when its answer was lost with the store', async () => {
    const [one, two] = [await scene.start(), await scene.start()];
    const held = await scene.take(one, 60n, key);
    scene.store.behaviour = 'loses';
    await scene.ended(one.settle(held, settlementOf(40n)));
    await scene.time.advance(50);
    scene.store.behaviour = 'up';
    scene.wipe();
    await scene.time.advance(3000);
    expect(await tryHold(two, 61n)).toMatchObject({ outcome: 'exceeded' });
    expect(await scene.spent(two, key)).toBe(40n);
    expect(scene.entries.entries()).toMatchObject([{ kind: 'settled', cost: 40n }]);
  });

  test('frees what was released while it was away', async () => {
    const one = await scene.start();
    const held = await scene.take(one, 100n, key);
    scene.store.behaviour = 'refuses';
    await one.release(held);
    await scene.time.advance(300);
    scene.wipe();
    scene.store.behaviour = 'up';
    await scene.time.advance(2000);
    expect(await tryHold(one, 100n)).toMatchObject({ outcome: 'reserved' });
    expect(costs()).toEqual([]);
  });

  test('repeatedly under load: never above the limit, nothing lost, nothing twice', async () => {
    const [one, two] = [await scene.start(), await scene.start()];
    let cost = 0n;
    for (let round = 0; round < 8; round += 1) {
      const holds = [await scene.take(one, 4n, key), await scene.take(two, 4n, key)];
      scene.wipe();
      await one.settle(holds[0] as Reservation, settlementOf(3n));
      await two.release(holds[1] as Reservation);
      cost += 3n;
      await scene.time.advance(round * 100);
    }
    await scene.time.advance(3000);
    expect(await scene.spent(two, key)).toBe(cost);
    expect(scene.entries.entries()).toHaveLength(8);
    expect(await tryHold(one, 100n - cost + 1n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryHold(one, 100n - cost)).toMatchObject({ outcome: 'reserved' });
  });

  test('while PostgreSQL is away admits no request, and is rebuilt when PostgreSQL is back', async () => {
    const one = await scene.start();
    await scene.take(one, 60n, key);
    scene.database('refuses');
    scene.wipe();
    const refused = await tryHold(one, 1n);
    expect(refused.outcome).toBe('unavailable');
    expect(refused.millis).toBeLessThanOrEqual(1800);
    scene.database('up');
    await scene.time.advance(1500);
    expect(await tryHold(one, 41n)).toMatchObject({ outcome: 'busy' });
    expect(await tryHold(one, 40n)).toMatchObject({ outcome: 'reserved' });
  });

  test('is told of thousands of counters in calls of at most 256', async () => {
    const one = await scene.start();
    const keys = Array.from({ length: 2000 }, (_, index) => scopeOf(`key-${index}`, 10n));
    const held = await scene.ended(Promise.all(keys.map((scope) => one.reserve(requestOf(6n, scope)))));
    expect(held.value.every(({ ok }) => ok)).toBe(true);
    scene.wipe();
    scene.calls.length = 0;
    await scene.time.advance(3000);
    expect(Math.max(...scene.calls.map(({ changes }) => changes.length))).toBeLessThanOrEqual(256);
    const again = await scene.ended(Promise.all(keys.map((scope) => one.reserve(requestOf(5n, scope)))));
    expect(new Set(again.value.map(outcome))).toEqual(new Set(['busy']));
  });

  test('while requests settle, during the rebuild, counts each once', async () => {
    const [one, two] = [await scene.start(), await scene.start()];
    const holds: (readonly [typeof one, Reservation])[] = [];
    for (let turn = 0; turn < 10; turn += 1) {
      holds.push([one, await scene.take(one, 4n, key)], [two, await scene.take(two, 4n, key)]);
    }
    scene.wipe();
    scene.store.part = slow(scene.store.part, scene.time, () => 7);
    scene.books.part = slow(scene.books.part, scene.time, () => 11);
    scene.epochs.part = slow(scene.epochs.part, scene.time, () => 5);
    for (const [ledger, hold] of holds) {
      await scene.time.advance(13);
      void ledger.settle(hold, settlementOf(4n));
    }
    await scene.time.advance(3000);
    expect(await scene.spent(one, key)).toBe(80n);
    expect(sum()).toBe(80n);
    expect(await tryHold(two, 20n)).toMatchObject({ outcome: 'reserved' });
  });
});

describe('a request while the store is rebuilt', () => {
  test('waits up to 1.8 s, and gets its hold after the rebuild', async () => {
    const [one, sleeper] = [await scene.start(), createProcess()];
    await scene.start(sleeper);
    sleeper.is.frozen = true;
    scene.wipe();
    const { outcome: came, millis } = await tryHold(one, 1n);
    expect(came).toBe('reserved');
    expect(millis).toBeGreaterThan(900);
    expect(millis).toBeLessThan(1800);
  });

  test('is refused within 1.8 s when the database hangs', async () => {
    const one = await scene.start();
    scene.wipe();
    scene.database('hangs');
    const { outcome: came, millis } = await tryHold(one, 1n);
    expect(came).toBe('unavailable');
    expect(millis).toBeLessThanOrEqual(1800);
  });

  test('that arrives after it has one second like any other', async () => {
    const one = await scene.start();
    await scene.take(one, 1n, key);
    scene.wipe();
    await scene.take(one, 1n, key);
    scene.store.behaviour = 'hangs';
    expect(await tryHold(one, 90n)).toMatchObject({ outcome: 'unavailable', millis: 900 });
  });
});

describe('a process that slept through a rebuild', () => {
  test('registers its holds again, and its settlements count', async () => {
    const sleeper = createProcess();
    const [one, two] = [await scene.start(), await scene.start(sleeper)];
    const [held, settled] = [await scene.take(two, 30n, key), await scene.take(two, 20n, key)];
    await two.settle(settled, settlementOf(20n));
    await scene.time.advance(10);
    sleeper.is.frozen = true;
    scene.wipe();
    await scene.take(one, 10n, key);
    sleeper.is.frozen = false;
    expect((await tryHold(two, 40n)).outcome).toBe('reserved');
    await scene.time.advance(500);
    // 20 spent, 10 and 30 and 40 held.
    expect(await tryHold(one, 1n)).toMatchObject({ outcome: 'busy' });
    await two.settle(held, settlementOf(30n));
    await scene.time.advance(500);
    expect(await scene.spent(one, key)).toBe(50n);
    expect(costs()).toEqual([20n, 30n]);
  });

  test('and whose money others took meanwhile exceeds the limit by its holds, and no more', async () => {
    const sleeper = createProcess();
    const [one, two] = [await scene.start(), await scene.start(sleeper)];
    const hold = await scene.take(two, 60n, key);
    await scene.take(one, 10n, key);
    sleeper.is.frozen = true;
    scene.wipe();
    const taken = await scene.take(one, 90n, key);
    sleeper.is.frozen = false;
    await scene.time.advance(3000);
    // What its hold leaves belongs to nobody: 100 are held elsewhere.
    await two.settle(hold, settlementOf(1n));
    expect((await tryHold(two, 30n)).outcome).toBe('busy');
    await one.release(taken);
    expect((await tryHold(two, 30n)).outcome).toBe('reserved');
  });
});

test('an epoch that PostgreSQL was restored to, below the store’s, is raised above both', async () => {
  const one = await scene.start();
  await scene.take(one, 60n, key);
  await scene.store.part.begin(7);
  await scene.time.advance(3000);
  expect((await scene.epochs.part.state()).epoch).toBe(8);
  expect(await tryHold(one, 41n)).toMatchObject({ outcome: 'busy' });
});

test('an epoch that is raised again before it opens is joined by a new account, and raised no further', async () => {
  const sleeper = createProcess();
  const [one] = [await scene.start(), await scene.start(sleeper)];
  await scene.take(one, 60n, key);
  sleeper.is.frozen = true;
  scene.wipe();
  void one.reserve(requestOf(1n, key));
  await scene.time.advance(300);
  // The sleeper is waited for: the epoch has been joined, and is not open.
  const { epoch, isOpen } = await scene.epochs.part.state();
  expect(isOpen).toBe(false);
  await scene.epochs.part.raise(epoch, epoch);
  await scene.time.advance(3000);
  expect(await scene.epochs.part.state()).toMatchObject({ epoch: epoch + 1, isOpen: true });
  expect(await tryHold(one, 41n)).toMatchObject({ outcome: 'busy' });
});
