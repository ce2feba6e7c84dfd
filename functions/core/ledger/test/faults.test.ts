// Faults that random schedules found (test/ledger/schedules), each in its smallest form.
import { beforeEach, describe, expect, test } from 'vitest';
import type { Result } from '../../failure/result.ts';
import { spendWindow } from '../../money/window.ts';
import type { Reservation, ReservationRefusal } from '../../ports/ledger.ts';
import type { LedgerDatabase } from '../../ports/ledger-database.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StartableLedger } from '../ledger.ts';
import { createScene, outcome, requestOf, type Scene, scopeOf, settlementOf } from './scenario.promises.ts';

let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = await scene.start();
});

/** Spend and escrow in the store. */
async function shownOf(scope: ScopePolicy) {
  const { scopeId } = scope;
  const [shown] = await scene.store.part.read([{ scopeId, window: spendWindow(scope, scene.time.clock.now()) }]);
  return shown;
}

/** The outcome of a hold, once there is one. */
function watch(held: Promise<Result<Reservation, ReservationRefusal>>): { now: string } {
  const seen = { now: 'waiting' };
  void held.then((result) => {
    seen.now = outcome(result);
  });
  return seen;
}

const booked = (): bigint[] => scene.entries.entries().map(({ cost }) => cost);

test('a request that waits over the edge of a window is held to the limit of the next one', async () => {
  const month = 30 * 86_400_000;
  const key = scopeOf('key', 5n, { anchor: scene.time.clock.now() + 400 - month });
  await scene.take(ledger, 5n, key);
  const second = watch(ledger.reserve(requestOf(4n, key)));
  await scene.time.advance(500);
  const third = watch(ledger.reserve(requestOf(4n, key)));
  await scene.time.advance(500);
  expect([second.now, third.now]).toEqual(['reserved', 'waiting']);
  expect(await shownOf(key)).toEqual({ spent: 0n, reserved: 4n });
});

test('escrow that is granted after its request gave up goes back', async () => {
  const key = scopeOf('key', 100n);
  await ledger.settle(await scene.take(ledger, 1n, key), settlementOf(1n));
  await scene.time.advance(3000);
  const late = watch(ledger.reserve(requestOf(9n, key)));
  scene.store.behaviour = 'hangs';
  await scene.time.advance(4000);
  expect(late.now).toBe('unavailable');
  scene.store.behaviour = 'up';
  await scene.time.advance(5000);
  expect(await shownOf(key)).toEqual({ spent: 1n, reserved: 0n });
});

test('while PostgreSQL is silent the store is not asked over and over for what must be loaded first', async () => {
  scene.books.behaviour = 'hangs';
  void ledger.reserve(requestOf(1n, scopeOf('key', 100n)));
  const before = scene.calls.length;
  await scene.time.advance(800);
  expect(scene.calls.length - before).toBeLessThan(10);
});

test('a request that waits when the ledger stops is refused: none is admitted after the account has ended', async () => {
  const key = scopeOf('key', 5n);
  const first = await scene.take(ledger, 5n, key);
  const second = watch(ledger.reserve(requestOf(5n, key)));
  await scene.time.advance(20);
  const closing = ledger.close();
  await ledger.release(first);
  await scene.time.advance(100);
  await closing;
  expect(second.now).toBe('unavailable');
});

test('a clock that is set ends no hold', async () => {
  const hold = await scene.take(ledger, 5n, scopeOf('key', 100n));
  scene.wallAhead = 3_600_000;
  await scene.time.advance(2000);
  void ledger.settle(hold, settlementOf(1n));
  await scene.time.advance(1000);
  expect(booked()).toEqual([1n]);
});

describe('a store that is wiped', () => {
  test('is told all that is held by the first call of each account, however often it happens', async () => {
    const key = scopeOf('key', 100n);
    await scene.take(ledger, 5n, key);
    for (let wiped = 1; wiped <= 3; wiped += 1) {
      scene.wipe();
      await scene.time.advance(3000);
      expect(scene.epochs.part.current()).toMatchObject({ epoch: 1 + wiped, isOpen: true });
    }
    const first = scene.calls.filter(({ epoch, number }) => epoch > 1 && number === 1);
    expect(first.map(({ changes }) => changes.map(({ registered }) => registered))).toEqual([[5n], [5n], [5n]]);
  });

  test('is rebuilt once, also where settlements are booked meanwhile', async () => {
    const key = scopeOf('key', 100n);
    const hold = await scene.take(ledger, 5n, key);
    await scene.time.advance(10_000);
    scene.store.behaviour = 'refuses';
    void ledger.settle(hold, settlementOf(2n));
    await scene.time.advance(100);
    scene.wipe();
    scene.store.behaviour = 'up';
    await scene.time.advance(3000);
    expect(scene.epochs.part.current()).toMatchObject({ epoch: 2, isOpen: true });
    await scene.take(ledger, 1n, key);
    expect(await shownOf(key)).toMatchObject({ spent: 2n });
  });

  test('loses no reply that ends while others are booked by their ids', async () => {
    const key = scopeOf('key', 100n);
    const [one, other] = [await scene.take(ledger, 5n, key), await scene.take(ledger, 5n, key)];
    scene.store.behaviour = 'refuses';
    void ledger.settle(one, settlementOf(1n));
    await scene.time.advance(50);
    const { part } = scene.books;
    const bookBatch: LedgerDatabase['bookBatch'] = async (batch) => {
      const outcomeOfBatch = await part.bookBatch(batch);
      if (batch.account === undefined) void ledger.settle(other, settlementOf(2n));
      return outcomeOfBatch;
    };
    scene.books.part = { ...part, bookBatch };
    scene.wipe();
    scene.store.behaviour = 'up';
    await scene.time.advance(5000);
    expect(booked()).toEqual([1n, 2n]);
    await scene.take(ledger, 1n, key);
    expect(await shownOf(key)).toMatchObject({ spent: 3n });
  });
});

test('a process whose clock is behind rebuilds nothing when it starts', async () => {
  await scene.take(ledger, 5n, scopeOf('key', 100n));
  scene.wallAhead = -60_000;
  await scene.start();
  expect(scene.epochs.part.current()).toMatchObject({ epoch: 1, isOpen: true });
});

test('a process that hears of its call after its lease goes on', async () => {
  const key = scopeOf('key', 100n);
  await scene.take(ledger, 5n, key);
  scene.store.behaviour = 'loses';
  await scene.time.advance(50);
  void ledger.reserve(requestOf(1n, key));
  await scene.time.advance(30_000);
  scene.store.behaviour = 'up';
  await scene.time.advance(5000);
  await scene.take(ledger, 1n, key);
});
