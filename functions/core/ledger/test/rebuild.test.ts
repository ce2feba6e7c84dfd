import { beforeEach, describe, expect, test } from 'vitest';
import type { Reservation } from '../../ports/ledger.ts';
import { createProcess, slow } from './processes.fixture.ts';
import { createScenario, outcome, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 100n);
let scenario: Scenario;

beforeEach(() => {
  scenario = createScenario();
});

const rebuilds = (): number => scenario.counted.get('gateway_operator_ledger_rebuilds_total') ?? 0;
const costs = (): bigint[] => scenario.ledgerRows.all().map(({ cost }) => cost);
const sum = (): bigint => costs().reduce((all, cost) => all + cost, 0n);
const tryReservation = (ledger: Parameters<Scenario['tryReservation']>[0], amount: bigint) =>
  scenario.tryReservation(ledger, requestOf(amount, key));

describe('a store that was wiped', () => {
  test('loses nothing: reservations and settlements, booked or not, count after the rebuild as before', async () => {
    const [one, two] = [await scenario.start(), await scenario.start()];
    const held = await scenario.take(one, 60n, key);
    const settled = await scenario.take(two, 30n, key);
    await two.settle(settled, settlementOf(20n));
    await scenario.time.advance(10);
    scenario.wipe();
    expect(await tryReservation(two, 21n)).toMatchObject({ outcome: 'held' });
    expect(await tryReservation(two, 20n)).toMatchObject({ outcome: 'reserved' });
    await one.settle(held, settlementOf(50n));
    await scenario.time.advance(500);
    expect(await scenario.spent(one, key)).toBe(70n);
    expect(sum()).toBe(70n);
  });

  test('is rebuilt once, by many processes', async () => {
    const ledgers = [await scenario.start(), await scenario.start(), await scenario.start(), await scenario.start()];
    for (const one of ledgers) await scenario.take(one, 10n, key);
    const before = (await scenario.epochs.part.state()).epoch;
    scenario.wipe();
    await scenario.time.advance(3000);
    expect((await scenario.epochs.part.state()).epoch).toBe(before + 1);
    expect(await tryReservation(ledgers[0] as (typeof ledgers)[0], 61n)).toMatchObject({ outcome: 'held' });
    expect(await tryReservation(ledgers[1] as (typeof ledgers)[0], 60n)).toMatchObject({ outcome: 'reserved' });
  });

  test('after thousands of calls is rebuilt as fast as after a few', async () => {
    const one = await scenario.start();
    await scenario.time.advance(60_000);
    await scenario.take(one, 60n, key);
    scenario.wipe();
    const { outcome: came, millis } = await tryReservation(one, 40n);
    expect(came).toBe('reserved');
    expect(millis).toBeLessThan(100);
  });

  test('gets the cost of a settled stream from its settlement', async () => {
    const one = await scenario.start();
    const reservation = await scenario.take(one, 60n, key);
    one.trackStream(reservation, () => 50n);
    scenario.store.behaviour = 'refuses';
    await scenario.ended(one.settle(reservation, settlementOf(30n)));
    scenario.wipe();
    scenario.store.behaviour = 'up';
    await scenario.time.advance(3000);
    expect(await tryReservation(one, 71n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryReservation(one, 70n)).toMatchObject({ outcome: 'reserved' });
  });

  test('keeps spend from long ago in a window of years', async () => {
    const budget = { limit: '100', duration: '36500d', alignment: 'Rolling' as const };
    const lasting = scopeOf('lasting', 100n, { budget });
    const one = await scenario.start();
    for (const cost of [20n, 30n]) {
      await one.settle(await scenario.take(one, cost, lasting), settlementOf(cost));
      await scenario.time.advance(500);
      await scenario.time.jump(400 * 86_400_000);
    }
    await scenario.time.advance(2000);
    scenario.wipe();
    expect((await scenario.tryReservation(one, requestOf(51n, lasting))).outcome).toBe('exceeded');
    expect((await scenario.tryReservation(one, requestOf(50n, lasting))).outcome).toBe('reserved');
    expect(await scenario.spent(one, lasting)).toBe(50n);
  });

  test('makes requests wait until it is rebuilt, without a 503', async () => {
    const [one, two] = [await scenario.start(), await scenario.start()];
    await scenario.take(one, 10n, key);
    await scenario.take(two, 10n, key);
    scenario.wipe();
    const results = await scenario.ended(
      Promise.all([one, two, one, two].map((ledger) => ledger.reserve(requestOf(20n, key)))),
    );
    expect(results.value.map(outcome)).toEqual(['reserved', 'reserved', 'reserved', 'reserved']);
    expect(results.millis).toBeLessThan(1000);
    expect(await tryReservation(one, 1n)).toMatchObject({ outcome: 'held' });
    expect(rebuilds()).toBe(2);
  });

  test('waits a second, and no more, for a process that does not answer', async () => {
    const sleeper = createProcess();
    const [one, two] = [await scenario.start(), await scenario.start(sleeper)];
    await scenario.take(two, 30n, key);
    await scenario.take(one, 10n, key);
    sleeper.is.frozen = true;
    scenario.wipe();
    const { outcome: came, millis } = await tryReservation(one, 60n);
    expect(came).toBe('reserved');
    expect(millis).toBeGreaterThanOrEqual(1000);
    expect(millis).toBeLessThan(1800);
  });

  test('does not wait for a process that stopped cleanly', async () => {
    const [one, two] = [await scenario.start(), await scenario.start()];
    await scenario.ended(two.close());
    scenario.wipe();
    expect((await tryReservation(one, 60n)).millis).toBeLessThan(500);
  });

  test('counts a settlement once when its answer was lost with the store', async () => {
    const [one, two] = [await scenario.start(), await scenario.start()];
    const held = await scenario.take(one, 60n, key);
    scenario.store.behaviour = 'loses';
    await scenario.ended(one.settle(held, settlementOf(40n)));
    await scenario.time.advance(50);
    scenario.store.behaviour = 'up';
    scenario.wipe();
    await scenario.time.advance(3000);
    expect(await tryReservation(two, 61n)).toMatchObject({ outcome: 'exceeded' });
    expect(await scenario.spent(two, key)).toBe(40n);
    expect(scenario.ledgerRows.all()).toMatchObject([{ kind: 'settled', cost: 40n }]);
  });

  test('frees what was released while it was away', async () => {
    const one = await scenario.start();
    const held = await scenario.take(one, 100n, key);
    scenario.store.behaviour = 'refuses';
    await one.release(held);
    await scenario.time.advance(300);
    scenario.wipe();
    scenario.store.behaviour = 'up';
    await scenario.time.advance(2000);
    expect(await tryReservation(one, 100n)).toMatchObject({ outcome: 'reserved' });
    expect(costs()).toEqual([]);
  });

  test('repeatedly under load: never above the limit, nothing lost, nothing twice', async () => {
    const [one, two] = [await scenario.start(), await scenario.start()];
    let cost = 0n;
    for (let round = 0; round < 8; round += 1) {
      const reservations = [await scenario.take(one, 4n, key), await scenario.take(two, 4n, key)];
      scenario.wipe();
      await one.settle(reservations[0] as Reservation, settlementOf(3n));
      await two.release(reservations[1] as Reservation);
      cost += 3n;
      await scenario.time.advance(round * 100);
    }
    await scenario.time.advance(3000);
    expect(await scenario.spent(two, key)).toBe(cost);
    expect(scenario.ledgerRows.all()).toHaveLength(8);
    expect(await tryReservation(one, 100n - cost + 1n)).toMatchObject({ outcome: 'exceeded' });
    expect(await tryReservation(one, 100n - cost)).toMatchObject({ outcome: 'reserved' });
  });

  test('while PostgreSQL is away admits no request, and is rebuilt when PostgreSQL is back', async () => {
    const one = await scenario.start();
    await scenario.take(one, 60n, key);
    scenario.setPostgres('refuses');
    scenario.wipe();
    const refused = await tryReservation(one, 1n);
    expect(refused.outcome).toBe('unavailable');
    expect(refused.millis).toBeLessThanOrEqual(1800);
    scenario.setPostgres('up');
    await scenario.time.advance(1500);
    expect(await tryReservation(one, 41n)).toMatchObject({ outcome: 'held' });
    expect(await tryReservation(one, 40n)).toMatchObject({ outcome: 'reserved' });
  });

  test('gets thousands of counters in calls of at most 256', async () => {
    const one = await scenario.start();
    const keys = Array.from({ length: 2000 }, (_, index) => scopeOf(`key-${index}`, 10n));
    const held = await scenario.ended(Promise.all(keys.map((scope) => one.reserve(requestOf(6n, scope)))));
    expect(held.value.every(({ ok }) => ok)).toBe(true);
    scenario.wipe();
    scenario.calls.length = 0;
    await scenario.time.advance(3000);
    expect(Math.max(...scenario.calls.map(({ changes }) => changes.length))).toBeLessThanOrEqual(256);
    const again = await scenario.ended(Promise.all(keys.map((scope) => one.reserve(requestOf(5n, scope)))));
    expect(new Set(again.value.map(outcome))).toEqual(new Set(['held']));
  });

  test('while requests settle, during the rebuild, counts each once', async () => {
    const [one, two] = [await scenario.start(), await scenario.start()];
    const reservations: (readonly [typeof one, Reservation])[] = [];
    for (let turn = 0; turn < 10; turn += 1) {
      reservations.push([one, await scenario.take(one, 4n, key)], [two, await scenario.take(two, 4n, key)]);
    }
    scenario.wipe();
    scenario.store.part = slow(scenario.store.part, scenario.time, () => 7);
    scenario.database.part = slow(scenario.database.part, scenario.time, () => 11);
    scenario.epochs.part = slow(scenario.epochs.part, scenario.time, () => 5);
    for (const [ledger, reservation] of reservations) {
      await scenario.time.advance(13);
      void ledger.settle(reservation, settlementOf(4n));
    }
    await scenario.time.advance(3000);
    expect(await scenario.spent(one, key)).toBe(80n);
    expect(sum()).toBe(80n);
    expect(await tryReservation(two, 20n)).toMatchObject({ outcome: 'reserved' });
  });
});

describe('a request while the store is rebuilt', () => {
  test('waits up to 1.8 s, and gets its reservation after the rebuild', async () => {
    const [one, sleeper] = [await scenario.start(), createProcess()];
    await scenario.start(sleeper);
    sleeper.is.frozen = true;
    scenario.wipe();
    const { outcome: came, millis } = await tryReservation(one, 1n);
    expect(came).toBe('reserved');
    expect(millis).toBeGreaterThan(900);
    expect(millis).toBeLessThan(1800);
  });

  test('is refused within 1.8 s when the database hangs', async () => {
    const one = await scenario.start();
    scenario.wipe();
    scenario.setPostgres('hangs');
    const { outcome: came, millis } = await tryReservation(one, 1n);
    expect(came).toBe('unavailable');
    expect(millis).toBeLessThanOrEqual(1800);
  });

  test('that arrives after it has one second like any other', async () => {
    const one = await scenario.start();
    await scenario.take(one, 1n, key);
    scenario.wipe();
    await scenario.take(one, 1n, key);
    scenario.store.behaviour = 'hangs';
    expect(await tryReservation(one, 90n)).toMatchObject({ outcome: 'unavailable', millis: 900 });
  });
});

describe('a process that slept through a rebuild', () => {
  test('registers its reservations again, and its settlements count', async () => {
    const sleeper = createProcess();
    const [one, two] = [await scenario.start(), await scenario.start(sleeper)];
    const [held, settled] = [await scenario.take(two, 30n, key), await scenario.take(two, 20n, key)];
    await two.settle(settled, settlementOf(20n));
    await scenario.time.advance(10);
    sleeper.is.frozen = true;
    scenario.wipe();
    await scenario.take(one, 10n, key);
    sleeper.is.frozen = false;
    expect((await tryReservation(two, 40n)).outcome).toBe('reserved');
    await scenario.time.advance(500);
    // 20 spent, 10 and 30 and 40 held.
    expect(await tryReservation(one, 1n)).toMatchObject({ outcome: 'held' });
    await two.settle(held, settlementOf(30n));
    await scenario.time.advance(500);
    expect(await scenario.spent(one, key)).toBe(50n);
    expect(costs()).toEqual([20n, 30n]);
  });

  test('and whose money others took meanwhile exceeds the limit by its reservations, and no more', async () => {
    const sleeper = createProcess();
    const [one, two] = [await scenario.start(), await scenario.start(sleeper)];
    const reservation = await scenario.take(two, 60n, key);
    await scenario.take(one, 10n, key);
    sleeper.is.frozen = true;
    scenario.wipe();
    const taken = await scenario.take(one, 90n, key);
    sleeper.is.frozen = false;
    await scenario.time.advance(3000);
    // What its reservation leaves belongs to nobody: 100 are held elsewhere.
    await two.settle(reservation, settlementOf(1n));
    expect((await tryReservation(two, 30n)).outcome).toBe('held');
    await one.release(taken);
    expect((await tryReservation(two, 30n)).outcome).toBe('reserved');
  });
});

test('a store that has lost its counters whatever is loaded into it is not asked without end', async () => {
  const one = await scenario.start();
  await scenario.take(one, 60n, key);
  scenario.wipe();
  const { part } = scenario.store;
  let calls = 0;
  scenario.store.part = {
    ...part,
    call: async (call) => {
      calls += 1;
      if (calls > 1000) throw new Error('asked without end');
      const reply = await part.call({ ...call, changes: [] });
      if (reply.outcome !== 'done' || call.changes.length === 0) return reply;
      return { ...reply, outcome: 'absent', absent: [0] };
    },
  };
  await scenario.time.advance(1000);
  expect(calls).toBeGreaterThan(5);
  expect(calls).toBeLessThan(500);
});

test('an epoch that PostgreSQL was restored to, below the store’s, is raised above both', async () => {
  const one = await scenario.start();
  await scenario.take(one, 60n, key);
  await scenario.store.part.begin(7, true);
  await scenario.time.advance(3000);
  expect((await scenario.epochs.part.state()).epoch).toBe(8);
  expect(await tryReservation(one, 41n)).toMatchObject({ outcome: 'held' });
});

test('an epoch that is raised again before it opens is joined by a new account, and raised no further', async () => {
  const sleeper = createProcess();
  const [one] = [await scenario.start(), await scenario.start(sleeper)];
  await scenario.take(one, 60n, key);
  sleeper.is.frozen = true;
  scenario.wipe();
  void one.reserve(requestOf(1n, key));
  await scenario.time.advance(300);
  // The sleeper is waited for: the epoch has been joined, and is not open.
  const { epoch, isOpen } = await scenario.epochs.part.state();
  expect(isOpen).toBe(false);
  await scenario.epochs.part.raise(epoch, epoch);
  await scenario.store.part.begin(epoch + 1, true);
  await scenario.time.advance(3000);
  expect(await scenario.epochs.part.state()).toMatchObject({ epoch: epoch + 1, isOpen: true });
  expect(await tryReservation(one, 41n)).toMatchObject({ outcome: 'held' });
});
