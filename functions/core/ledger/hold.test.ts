import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryStore } from '#adapters/memory/store.ts';
import { createManualTime } from '../../../test/doubles/time.ts';
import type { Hold, HoldRefusal } from '../ports/ledger.ts';
import type { Result } from '../result.ts';
import type { StartableLedger } from './ledger.ts';
import { createScene, heldOf, requestOf, type Scene, scopeOf, settlementOf } from './scene.promises.ts';

const DAY = 86_400_000;
let scene: Scene;
let ledger: StartableLedger;

beforeEach(async () => {
  scene = createScene();
  ledger = scene.process();
  await ledger.start();
});

/** Advances the clock until the promise has settled, and returns how long that took. */
async function ended<T>(promise: Promise<T>): Promise<{ readonly value: T; readonly millis: number }> {
  const began = scene.time.clock.now();
  let done: { value: T; millis: number } | undefined;
  void promise.then((value) => {
    done = { value, millis: scene.time.clock.now() - began };
  });
  for (let waited = 0; done === undefined && waited < 5000; waited += 10) await scene.time.advance(10);
  if (done === undefined) throw new Error('nothing came in 5 s');
  return done;
}

const outcome = (result: Result<Hold, HoldRefusal>): string => (result.ok ? 'held' : result.failure.reason);

describe('the last cent', () => {
  test('a thousand concurrent requests never hold more than the limit, and as many as fit are held', async () => {
    const key = scopeOf('key', 100n);
    const all = Array.from({ length: 1000 }, () => ledger.hold(requestOf(7n, key)));
    const results = (await ended(Promise.all(all))).value;
    expect(results.filter(({ ok }) => ok)).toHaveLength(14);
    expect(results.filter((result) => outcome(result) === 'busy')).toHaveLength(986);
  });

  test('a thousand requests that each cost less than they held all pay while they fit, and get the true reason when they do not', async () => {
    const key = scopeOf('key', 1000n);
    const run = async (): Promise<string> => {
      const result = await ledger.hold(requestOf(50n, key));
      if (!result.ok) return result.failure.reason;
      await new Promise<void>((resolve) => scene.time.timer(20, resolve));
      await ledger.settle(result.value, settlementOf(1n));
      return 'held';
    };
    const outcomes = (await ended(Promise.all(Array.from({ length: 1000 }, run)))).value;
    const held = outcomes.filter((each) => each === 'held').length;
    // Requests wait for a second: 40 rounds of 20 ms and the 5 ms that a settlement may wait, each as large as spend leaves room for.
    let fit = 0;
    for (let round = 0; round < 40; round += 1) fit += Math.floor((1000 - fit) / 50);
    expect(held).toBeGreaterThanOrEqual(fit);
    expect(outcomes.filter((each) => each !== 'held').every((each) => each === 'busy')).toBe(true);
    await scene.time.advance(200);
    const spends = await ledger.spend([key]);
    expect(spends).toMatchObject({ ok: true, value: [{ spent: BigInt(held) }] });
  });

  test('a request waits for those in flight up to a second and takes what they leave', async () => {
    const key = scopeOf('key', 100n);
    const first = heldOf(await ledger.hold(requestOf(100n, key)));
    const second = ledger.hold(requestOf(60n, key));
    await scene.time.advance(700);
    await ledger.settle(first, settlementOf(40n));
    const { value, millis } = await ended(second);
    expect(outcome(value)).toBe('held');
    expect(millis).toBeLessThanOrEqual(10);
  });

  test('waiting requests get freed money in order of arrival, and do not all ask the store together', async () => {
    const key = scopeOf('key', 100n);
    const first = heldOf(await ledger.hold(requestOf(100n, key)));
    const order: number[] = [];
    const waiting = Array.from({ length: 500 }, (_, index) =>
      ledger.hold(requestOf(20n, key)).then(({ ok }) => ok && order.push(index)),
    );
    await scene.time.advance(50);
    scene.calls.length = 0;
    await ledger.settle(first, settlementOf(40n));
    await scene.time.advance(10);
    expect(order).toEqual([0, 1, 2]);
    expect(scene.calls.reduce((all, holds) => all + holds, 0)).toBe(4);
    await scene.time.advance(1100);
    await Promise.all(waiting);
    expect(order).toEqual([0, 1, 2]);
  });

  test('a request that waits for one scope is not woken by money freed in others', async () => {
    const [key, other] = [scopeOf('key', 100n), scopeOf('other', 100n)];
    await ledger.hold(requestOf(100n, key));
    const busy = heldOf(await ledger.hold(requestOf(100n, other)));
    const waits = ledger.hold(requestOf(1n, key));
    await scene.time.advance(10);
    scene.calls.length = 0;
    await ledger.settle(busy, settlementOf(1n));
    await scene.time.advance(10);
    expect(scene.calls).toEqual([0]);
    await scene.time.advance(1000);
    expect((await waits).ok).toBe(false);
  });

  test('a request that waited a second in vain is refused because the budget is held, not because it is spent', async () => {
    const key = scopeOf('key', 100n);
    await ledger.hold(requestOf(100n, key));
    const { value, millis } = await ended(ledger.hold(requestOf(1n, key)));
    expect(value).toEqual({ ok: false, failure: { reason: 'busy', scope: key } });
    expect(millis).toBe(1000);
  });

  test('a waiting request is refused immediately when held money turns into spend', async () => {
    const key = scopeOf('key', 100n);
    const first = heldOf(await ledger.hold(requestOf(100n, key)));
    const second = ledger.hold(requestOf(1n, key));
    await scene.time.advance(300);
    await ledger.settle(first, settlementOf(100n));
    const { value, millis } = await ended(second);
    expect(outcome(value)).toBe('exceeded');
    expect(millis).toBeLessThanOrEqual(10);
  });
});

describe('a refusal', () => {
  test('names the scope, its spend, its limit and the end of its window', async () => {
    const [key, team] = [scopeOf('key', 100n), scopeOf('team', 50n, { kind: 'team' })];
    await ledger.settle(heldOf(await ledger.hold(requestOf(50n, key, team))), settlementOf(50n));
    const result = await ledger.hold(requestOf(10n, key, team));
    const resetAt = Date.UTC(2026, 0, 1) + 30 * DAY;
    expect(result).toEqual({
      ok: false,
      failure: { reason: 'exceeded', scope: team, spent: 50n, limit: 50n, resetAt },
    });
  });

  test('takes nothing from the scopes that could have paid', async () => {
    const [key, team] = [scopeOf('key', 100n), scopeOf('team', 0n)];
    expect(outcome(await ledger.hold(requestOf(100n, key, team)))).toBe('exceeded');
    expect(outcome(await ledger.hold(requestOf(100n, key)))).toBe('held');
  });

  test('meets a free model only when spend has reached the limit; a budget of zero never works', async () => {
    const [key, never] = [scopeOf('key', 10n), scopeOf('never', 0n)];
    const paid = heldOf(await ledger.hold(requestOf(10n, key)));
    expect(outcome(await ledger.hold(requestOf(0n, key)))).toBe('held');
    await ledger.settle(paid, settlementOf(10n));
    expect(outcome(await ledger.hold(requestOf(0n, key)))).toBe('exceeded');
    expect(outcome(await ledger.hold(requestOf(0n, never)))).toBe('exceeded');
  });

  test('goes away when the limit is raised', async () => {
    await ledger.settle(heldOf(await ledger.hold(requestOf(10n, scopeOf('key', 10n)))), settlementOf(10n));
    expect(outcome(await ledger.hold(requestOf(5n, scopeOf('key', 10n))))).toBe('exceeded');
    expect(outcome(await ledger.hold(requestOf(5n, scopeOf('key', 15n))))).toBe('held');
  });
});

test('a hold has the id of its request, under which it is booked', async () => {
  const id = '019a0000-0000-7000-8000-000000000001';
  const hold = heldOf(await ledger.hold({ ...requestOf(10n, scopeOf('key', 100n)), id }));
  expect(hold.id).toBe(id);
  await ledger.settle(hold, settlementOf(7n));
  await scene.time.advance(1000);
  expect(scene.books.part.entries()).toMatchObject([{ id, cost: 7n }]);
});

test('a hold is clamped to what spend leaves, and shows it', async () => {
  const key = scopeOf('key', 100n);
  await ledger.settle(heldOf(await ledger.hold(requestOf(70n, key))), settlementOf(70n));
  const hold = heldOf(await ledger.hold({ ...requestOf(80n, key), minAmount: 5n }));
  expect(hold.amount).toBe(30n);
});

test('a scope without a budget never refuses, and its entries name it all the same', async () => {
  const [key, team] = [scopeOf('key', 100n), scopeOf('team')];
  await ledger.settle(heldOf(await ledger.hold(requestOf(30n, key, team))), settlementOf(30n));
  await ledger.flush();
  expect(scene.books.part.entries()[0]?.charges.map(({ scopeId }) => scopeId)).toEqual(['key', 'team']);
  expect(await ledger.spend([key, team])).toMatchObject({ ok: true, value: [{ spent: 30n }, undefined] });
});

describe('windows', () => {
  test('a budget is whole again when its window ends', async () => {
    const key = scopeOf('key', 100n);
    await ledger.settle(heldOf(await ledger.hold(requestOf(100n, key))), settlementOf(100n));
    await scene.time.jump(Date.UTC(2026, 0, 1) + 30 * DAY - scene.time.clock.now() - 1);
    expect(outcome(await ledger.hold(requestOf(1n, key)))).toBe('exceeded');
    await scene.time.advance(1);
    expect(outcome(await ledger.hold(requestOf(100n, key)))).toBe('held');
  });

  test('that end together end for all concurrent requests: none is refused for money spent before the edge', async () => {
    const key = scopeOf('key', 100n);
    await ledger.settle(heldOf(await ledger.hold(requestOf(100n, key))), settlementOf(100n));
    await scene.time.jump(Date.UTC(2026, 0, 1) + 30 * DAY - scene.time.clock.now());
    const results = await ended(Promise.all(Array.from({ length: 12 }, () => ledger.hold(requestOf(10n, key)))));
    expect(results.value.filter(({ ok }) => ok)).toHaveLength(10);
    expect(results.value.slice(10).map(outcome)).toEqual(['busy', 'busy']);
  });

  test('a hold that outlives its window is charged to the window it was taken in', async () => {
    const key = scopeOf('key', 100n);
    await scene.time.jump(Date.UTC(2026, 0, 1) + 30 * DAY - scene.time.clock.now() - 5000);
    const hold = heldOf(await ledger.hold(requestOf(100n, key)));
    await scene.time.advance(10_000);
    await ledger.settle(hold, settlementOf(90n));
    await ledger.flush();
    expect(await ledger.spend([key])).toMatchObject({ value: [{ spent: 0n }] });
    expect(await scene.books.part.sums(hold.charges)).toMatchObject([{ spent: 90n }]);
  });

  test('are those of the store’s clock: a process whose own clock is wrong learns it and computes again', async () => {
    const ahead = createManualTime(scene.time.clock.now() + 40 * DAY);
    scene.store.part = createMemoryStore(ahead);
    const backlog = scene.process();
    await backlog.start();
    const hold = heldOf(await backlog.hold(requestOf(10n, scopeOf('key', 100n))));
    expect(hold.charges[0]?.window.start).toBe(Date.UTC(2026, 0, 31));
  });

  test('of an edited duration keep the spend, there and back', async () => {
    const monthly = scopeOf('key', 100n);
    const budget = { limit: '100', duration: '31d', alignment: 'Rolling' as const };
    const longer = scopeOf('key', 100n, { budget });
    const edit = async (to: typeof monthly): Promise<void> => {
      const start = Date.UTC(2026, 0, 1);
      const days = to === longer ? 31 : 30;
      await ledger.flush();
      scene.books.part.recount('key', { start, end: start + days * DAY });
    };
    await ledger.settle(heldOf(await ledger.hold(requestOf(40n, monthly))), settlementOf(40n));
    const inFlight = heldOf(await ledger.hold(requestOf(10n, monthly)));
    await edit(longer);
    await ledger.settle(heldOf(await ledger.hold(requestOf(30n, longer))), settlementOf(30n));
    await ledger.settle(inFlight, settlementOf(10n));
    expect(outcome(await ledger.hold(requestOf(21n, longer)))).toBe('exceeded');
    await edit(monthly);
    expect(outcome(await ledger.hold(requestOf(21n, monthly)))).toBe('exceeded');
    expect(outcome(await ledger.hold(requestOf(20n, monthly)))).toBe('held');
  });
});

describe('one call', () => {
  test('serves all requests of a tick, up to 64', async () => {
    const key = scopeOf('key', 10_000n);
    await ledger.hold(requestOf(1n, key));
    scene.calls.length = 0;
    await Promise.all(Array.from({ length: 100 }, () => ledger.hold(requestOf(1n, key))));
    expect(scene.calls).toEqual([64, 36]);
  });

  test('carries a settlement together with the next hold, or alone after 5 ms', async () => {
    const key = scopeOf('key', 100n);
    const [first, second] = [
      heldOf(await ledger.hold(requestOf(50n, key))),
      heldOf(await ledger.hold(requestOf(50n, key))),
    ];
    scene.calls.length = 0;
    await ledger.settle(first, settlementOf(10n));
    await ledger.hold(requestOf(40n, key));
    expect(scene.calls).toEqual([1]);
    await ledger.settle(second, settlementOf(10n));
    await scene.time.advance(4);
    expect(scene.calls).toEqual([1]);
    await scene.time.advance(1);
    expect(scene.calls).toEqual([1, 0]);
  });

  test('carries a release after 5 ms too: its headroom returns without a later request', async () => {
    const key = scopeOf('key', 100n);
    const hold = heldOf(await ledger.hold(requestOf(100n, key)));
    scene.calls.length = 0;
    await ledger.release(hold);
    await scene.time.advance(5);
    expect(scene.calls).toEqual([0]);
    const other = scene.process(undefined, { records: [] });
    await other.start();
    expect(outcome(await other.hold(requestOf(100n, key)))).toBe('held');
  });

  test('reads the sums of all counters that a tick misses together', async () => {
    let reads = 0;
    const { withLedgerLock } = scene.books.part;
    Object.assign(scene.books.part, {
      withLedgerLock: (...of: Parameters<typeof withLedgerLock>) => {
        reads += 1;
        return withLedgerLock(...of);
      },
    });
    const all = Array.from({ length: 50 }, (_, index) => ledger.hold(requestOf(1n, scopeOf(`key-${index}`, 10n))));
    expect((await Promise.all(all)).every(({ ok }) => ok)).toBe(true);
    expect(reads).toBe(1);
  });
});
