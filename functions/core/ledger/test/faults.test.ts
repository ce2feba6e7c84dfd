// Faults that random schedules found (test/ledger/schedules), each in its smallest form.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Result } from '../../failure/result.ts';
import { spendWindow } from '../../money/window.ts';
import type { Reservation, ReservationRefusal } from '../../ports/ledger.ts';
import type { LedgerDatabase } from '../../ports/ledger-database.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StartableLedger } from '../ledger.ts';
import { createScenario, outcome, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start();
});

/** Spend and escrow in the store. */
async function shownOf(scope: ScopePolicy) {
  const { scopeId } = scope;
  const [shown] = await scenario.store.part.read([{ scopeId, window: spendWindow(scope, scenario.time.clock.now()) }]);
  return shown;
}

/** The outcome of a reservation, once there is one. */
function watch(held: Promise<Result<Reservation, ReservationRefusal>>): { now: string } {
  const seen = { now: 'waiting' };
  void held.then((result) => {
    seen.now = outcome(result);
  });
  return seen;
}

const booked = (): bigint[] => scenario.ledgerRows.all().map(({ cost }) => cost);

test('a request that waits over the edge of a window is held to the limit of the next one', async () => {
  const month = 30 * 86_400_000;
  const key = scopeOf('key', 5n, { anchor: scenario.time.clock.now() + 400 - month });
  await scenario.take(ledger, 5n, key);
  const second = watch(ledger.reserve(requestOf(4n, key)));
  await scenario.time.advance(500);
  const third = watch(ledger.reserve(requestOf(4n, key)));
  await scenario.time.advance(500);
  expect([second.now, third.now]).toEqual(['reserved', 'waiting']);
  expect(await shownOf(key)).toEqual({ spent: 0n, escrowOfAll: 4n });
});

test('escrow that is granted after its request gave up goes back', async () => {
  const key = scopeOf('key', 100n);
  await ledger.settle(await scenario.take(ledger, 1n, key), settlementOf(1n));
  await scenario.time.advance(3000);
  const late = watch(ledger.reserve(requestOf(9n, key)));
  scenario.store.behaviour = 'hangs';
  await scenario.time.advance(4000);
  expect(late.now).toBe('unavailable');
  scenario.store.behaviour = 'up';
  await scenario.time.advance(5000);
  expect(await shownOf(key)).toEqual({ spent: 1n, escrowOfAll: 0n });
});

test('while PostgreSQL is silent the store is not asked over and over for what must be loaded first', async () => {
  scenario.database.behaviour = 'hangs';
  void ledger.reserve(requestOf(1n, scopeOf('key', 100n)));
  const before = scenario.calls.length;
  await scenario.time.advance(800);
  expect(scenario.calls.length - before).toBeLessThan(10);
});

test('a request that waits when the ledger stops is refused: none is admitted after the account has ended', async () => {
  const key = scopeOf('key', 5n);
  const first = await scenario.take(ledger, 5n, key);
  const second = watch(ledger.reserve(requestOf(5n, key)));
  await scenario.time.advance(20);
  const closing = ledger.close();
  await ledger.release(first);
  await scenario.time.advance(100);
  await closing;
  expect(second.now).toBe('unavailable');
});

test('a clock that is set ends no reservation', async () => {
  const reservation = await scenario.take(ledger, 5n, scopeOf('key', 100n));
  scenario.wallAhead = 3_600_000;
  await scenario.time.advance(2000);
  void ledger.settle(reservation, settlementOf(1n));
  await scenario.time.advance(1000);
  expect(booked()).toEqual([1n]);
});

describe('a store that is wiped', () => {
  test('gets all live reservations with the first call of each account, however often it happens', async () => {
    const key = scopeOf('key', 100n);
    await scenario.take(ledger, 5n, key);
    for (let wiped = 1; wiped <= 3; wiped += 1) {
      scenario.wipe();
      await scenario.time.advance(3000);
      expect(scenario.epochs.part.current()).toMatchObject({ epoch: 1 + wiped, isOpen: true });
    }
    const first = scenario.calls.filter(({ epoch, callNumber }) => epoch > 1 && callNumber === 1);
    expect(first.map(({ changes }) => changes.map(({ carriedOver }) => carriedOver))).toEqual([[5n], [5n], [5n]]);
  });

  test('is rebuilt once, also where settlements are booked meanwhile', async () => {
    const key = scopeOf('key', 100n);
    const reservation = await scenario.take(ledger, 5n, key);
    await scenario.time.advance(10_000);
    scenario.store.behaviour = 'refuses';
    void ledger.settle(reservation, settlementOf(2n));
    await scenario.time.advance(100);
    scenario.wipe();
    scenario.store.behaviour = 'up';
    await scenario.time.advance(3000);
    expect(scenario.epochs.part.current()).toMatchObject({ epoch: 2, isOpen: true });
    await scenario.take(ledger, 1n, key);
    expect(await shownOf(key)).toMatchObject({ spent: 2n });
  });

  test('loses no reply that ends while others are booked by their ids', async () => {
    const key = scopeOf('key', 100n);
    const [one, other] = [await scenario.take(ledger, 5n, key), await scenario.take(ledger, 5n, key)];
    scenario.store.behaviour = 'refuses';
    void ledger.settle(one, settlementOf(1n));
    await scenario.time.advance(50);
    const { part } = scenario.database;
    const bookBatch: LedgerDatabase['bookBatch'] = async (batch) => {
      const outcomeOfBatch = await part.bookBatch(batch);
      if (batch.account === undefined) void ledger.settle(other, settlementOf(2n));
      return outcomeOfBatch;
    };
    scenario.database.part = { ...part, bookBatch };
    scenario.wipe();
    scenario.store.behaviour = 'up';
    await scenario.time.advance(5000);
    expect(booked()).toEqual([1n, 2n]);
    await scenario.take(ledger, 1n, key);
    expect(await shownOf(key)).toMatchObject({ spent: 3n });
  });
});

test('a process whose clock is behind rebuilds nothing when it starts', async () => {
  await scenario.take(ledger, 5n, scopeOf('key', 100n));
  scenario.wallAhead = -60_000;
  await scenario.start();
  expect(scenario.epochs.part.current()).toMatchObject({ epoch: 1, isOpen: true });
});

test('a process that hears of its call after its lease continues', async () => {
  const key = scopeOf('key', 100n);
  await scenario.take(ledger, 5n, key);
  scenario.store.behaviour = 'loses';
  await scenario.time.advance(50);
  void ledger.reserve(requestOf(1n, key));
  await scenario.time.advance(30_000);
  scenario.store.behaviour = 'up';
  await scenario.time.advance(5000);
  await scenario.take(ledger, 1n, key);
});
