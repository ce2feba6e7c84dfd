import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StartableLedger } from '../ledger.ts';
import { IMMORTAL } from './processes.fixture.ts';
import {
  createScenario,
  heldOf,
  outcome,
  requestOf,
  type Scenario,
  scopeOf,
  settlementOf,
} from './scenario.promises.ts';

const DAY = 86_400_000;
const EDGE = Date.UTC(2026, 0, 1) + 30 * DAY;
let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start(IMMORTAL, scenario.folder);
});

const requestCount = (): number => scenario.calls.reduce((all, { requests }) => all + requests.length, 0);
const settleOne = async (cost: bigint, ...scopes: ReadonlyArray<ScopePolicy>): Promise<void> =>
  ledger.settle(heldOf(await ledger.reserve(requestOf(cost, ...scopes))), settlementOf(cost));

describe('the last cent', () => {
  test('a thousand concurrent requests never hold more than the limit, and as many as fit are held', async () => {
    const key = scopeOf('key', 100n);
    const all = Array.from({ length: 1000 }, () => ledger.reserve(requestOf(7n, key)));
    const results = (await scenario.ended(Promise.all(all))).value;
    expect(results.filter(({ ok }) => ok)).toHaveLength(14);
    expect(results.filter((result) => outcome(result) === 'held')).toHaveLength(986);
  });

  test('a thousand requests that each cost less than they held all pay while they fit, and get the true reason when they do not', async () => {
    const key = scopeOf('key', 1000n);
    const run = async (): Promise<string> => {
      const result = await ledger.reserve(requestOf(50n, key));
      if (!result.ok) return result.failure.reason;
      await new Promise<void>((resolve) => scenario.time.timer(20, resolve));
      await ledger.settle(result.value, settlementOf(1n));
      return 'reserved';
    };
    const outcomes = (await scenario.ended(Promise.all(Array.from({ length: 1000 }, run)))).value;
    const held = outcomes.filter((each) => each === 'reserved').length;
    // Requests wait for 0.9 s: rounds of 20 ms and what a call may wait, each as large as spend leaves room for.
    let fit = 0;
    for (let round = 0; round < 36; round += 1) fit += Math.floor((1000 - fit) / 50);
    expect(held).toBeGreaterThanOrEqual(fit);
    expect(outcomes.filter((each) => each !== 'reserved').every((each) => each === 'held')).toBe(true);
    expect(await scenario.spent(ledger, key)).toBe(BigInt(held));
  });

  test('a request waits for those in flight and takes what they leave', async () => {
    const key = scopeOf('key', 100n);
    const first = await scenario.take(ledger, 100n, key);
    const second = scenario.tryReservation(ledger, requestOf(60n, key), {
      700: () => ledger.settle(first, settlementOf(40n)),
    });
    expect(await second).toMatchObject({ outcome: 'reserved' });
    expect((await second).millis).toBeLessThanOrEqual(720);
  });

  test('waiting requests get freed money in order of arrival, and do not all ask the store together', async () => {
    const key = scopeOf('key', 100n);
    const first = await scenario.take(ledger, 100n, key);
    const order: number[] = [];
    const waiting = Array.from({ length: 500 }, (_, index) =>
      ledger.reserve(requestOf(20n, key)).then(({ ok }) => ok && order.push(index)),
    );
    await scenario.time.advance(60);
    scenario.calls.length = 0;
    await ledger.settle(first, settlementOf(40n));
    await scenario.time.advance(30);
    expect(order).toEqual([0, 1, 2]);
    expect(requestCount()).toBeLessThanOrEqual(4);
    await scenario.ended(Promise.all(waiting));
    expect(order).toEqual([0, 1, 2]);
  });

  test('a request that waits for one scope is not woken by money freed in others', async () => {
    const [key, other] = [scopeOf('key', 100n), scopeOf('other', 100n)];
    await scenario.take(ledger, 100n, key);
    const busy = await scenario.take(ledger, 100n, other);
    const waits = ledger.reserve(requestOf(1n, key));
    await scenario.time.advance(60);
    scenario.calls.length = 0;
    await ledger.settle(busy, settlementOf(1n));
    await scenario.time.advance(30);
    expect(requestCount()).toBeLessThanOrEqual(1);
    expect((await scenario.ended(waits)).value.ok).toBe(false);
  });

  test('a request that waited in vain is refused within a second because the budget is held, not because it is spent', async () => {
    const key = scopeOf('key', 100n);
    await scenario.take(ledger, 100n, key);
    const { value, millis } = await scenario.tryReservation(ledger, requestOf(1n, key));
    expect(value).toEqual({ ok: false, failure: { reason: 'held', scope: key } });
    expect(millis).toBe(900);
  });

  test('a waiting request is refused immediately when held money turns into spend', async () => {
    const key = scopeOf('key', 100n);
    const first = await scenario.take(ledger, 100n, key);
    const second = scenario.tryReservation(ledger, requestOf(1n, key), {
      300: () => ledger.settle(first, settlementOf(100n)),
    });
    expect(await second).toMatchObject({ outcome: 'exceeded' });
    expect((await second).millis).toBeLessThanOrEqual(360);
  });
});

describe('a refusal', () => {
  test('names the scope, its spend, its limit and the end of its window', async () => {
    const [key, team] = [scopeOf('key', 100n), scopeOf('team', 50n, { kind: 'team' })];
    await settleOne(50n, key, team);
    expect(await ledger.reserve(requestOf(10n, key, team))).toEqual({
      ok: false,
      failure: { reason: 'exceeded', scope: team, spent: 50n, limit: 50n, resetAt: EDGE },
    });
  });

  test('takes nothing from the scopes that could have paid', async () => {
    const [key, team] = [scopeOf('key', 100n), scopeOf('team', 0n)];
    expect(outcome(await ledger.reserve(requestOf(100n, key, team)))).toBe('exceeded');
    expect(outcome(await ledger.reserve(requestOf(100n, key)))).toBe('reserved');
  });

  test('meets a free model only when spend has reached the limit; a budget of zero never works', async () => {
    const [key, never] = [scopeOf('key', 10n), scopeOf('never', 0n)];
    const paid = heldOf(await ledger.reserve(requestOf(10n, key)));
    expect(outcome(await ledger.reserve(requestOf(0n, key)))).toBe('reserved');
    await ledger.settle(paid, settlementOf(10n));
    expect(outcome(await ledger.reserve(requestOf(0n, key)))).toBe('exceeded');
    expect(outcome(await ledger.reserve(requestOf(0n, never)))).toBe('exceeded');
  });

  test('goes away when the limit is raised', async () => {
    await settleOne(10n, scopeOf('key', 10n));
    expect(outcome(await ledger.reserve(requestOf(5n, scopeOf('key', 10n))))).toBe('exceeded');
    expect(outcome(await ledger.reserve(requestOf(5n, scopeOf('key', 15n))))).toBe('reserved');
  });
});

test('a reservation has the id of its request, under which it is booked', async () => {
  const id = '019a0000-0000-7000-8000-000000000001';
  const reservation = heldOf(await ledger.reserve({ ...requestOf(10n, scopeOf('key', 100n)), id }));
  expect(reservation.id).toBe(id);
  await ledger.settle(reservation, settlementOf(7n));
  await scenario.time.advance(1000);
  expect(scenario.ledgerRows.all()).toMatchObject([{ id, cost: 7n }]);
});

test('a reservation is clamped to what spend leaves, and shows it', async () => {
  const key = scopeOf('key', 100n);
  await settleOne(70n, key);
  const reservation = heldOf(await ledger.reserve({ ...requestOf(80n, key), minAmount: 5n }));
  expect(reservation.amount).toBe(30n);
});

test('a scope without a budget never refuses, and its ledger rows name it all the same', async () => {
  const [key, team] = [scopeOf('key', 100n), scopeOf('team')];
  await settleOne(30n, key, team);
  await scenario.ended(ledger.flush());
  expect(scenario.ledgerRows.all()[0]?.scopeWindows.map(({ scopeId }) => scopeId)).toEqual(['key', 'team']);
  expect(await ledger.spend([key, team])).toMatchObject({ ok: true, value: [{ spent: 30n }, undefined] });
});

describe('windows', () => {
  test('a budget is whole again when its window ends', async () => {
    const key = scopeOf('key', 100n);
    await settleOne(100n, key);
    await scenario.ended(ledger.flush());
    await scenario.time.jump(EDGE - scenario.time.clock.now() - 1);
    expect(outcome(await ledger.reserve(requestOf(1n, key)))).toBe('exceeded');
    await scenario.time.advance(1);
    expect(outcome(await ledger.reserve(requestOf(100n, key)))).toBe('reserved');
  });

  test('that end together end for all concurrent requests: none is refused for money spent before the edge', async () => {
    const key = scopeOf('key', 100n);
    await settleOne(100n, key);
    await scenario.ended(ledger.flush());
    await scenario.time.jump(EDGE - scenario.time.clock.now());
    const results = await scenario.ended(
      Promise.all(Array.from({ length: 12 }, () => ledger.reserve(requestOf(10n, key)))),
    );
    expect(results.value.map(outcome)).toEqual([...Array.from({ length: 10 }, () => 'reserved'), 'held', 'held']);
  });

  test('a request that waits for live reservations at the edge gets the money of the new window', async () => {
    const key = scopeOf('key', 100n);
    await scenario.time.jump(EDGE - scenario.time.clock.now() - 300);
    const first = heldOf(await ledger.reserve(requestOf(100n, key)));
    const { value, millis } = await scenario.tryReservation(ledger, requestOf(60n, key));
    expect(heldOf(value).scopeWindows[0]?.window.start).toBe(EDGE);
    expect(millis).toBeLessThanOrEqual(360);
    expect(first.scopeWindows[0]?.window.end).toBe(EDGE);
  });

  test('a request that waits at the edge never takes escrow of the window that is over', async () => {
    const key = scopeOf('key', 100n);
    await scenario.time.jump(EDGE - scenario.time.clock.now() - 300);
    const first = heldOf(await ledger.reserve(requestOf(100n, key)));
    const second = ledger.reserve(requestOf(60n, key));
    await scenario.time.advance(100);
    const jumped = scenario.time.jump(201);
    await Promise.all([ledger.release(first), jumped]);
    expect(heldOf((await scenario.ended(second)).value).scopeWindows[0]?.window.start).toBe(EDGE);
  });

  test('a reservation that outlives its window is charged to the window it was taken in', async () => {
    const key = scopeOf('key', 100n);
    await scenario.time.jump(EDGE - scenario.time.clock.now() - 5000);
    const reservation = heldOf(await ledger.reserve(requestOf(100n, key)));
    await scenario.time.advance(10_000);
    await ledger.settle(reservation, settlementOf(90n));
    await scenario.ended(ledger.flush());
    expect(await scenario.spent(ledger, key)).toBe(0n);
    expect(await scenario.database.part.sums(reservation.scopeWindows)).toMatchObject([{ spent: 90n }]);
  });

  test('are those of the store’s clock: a process whose own clock is wrong learns it and computes again', async () => {
    let ahead = 0;
    scenario.store.part = createMemoryCounterStore({
      clock: { now: () => scenario.time.clock.now() + ahead },
      epoch: 0,
    });
    ahead = 40 * DAY;
    const other = await scenario.start();
    const reservation = await scenario.take(other, 10n, scopeOf('key', 100n));
    expect(reservation.scopeWindows[0]?.window.start).toBe(EDGE);
  });

  test('of an edited duration keep the spend, there and back', async () => {
    const monthly = scopeOf('key', 100n);
    const budget = { limit: '100', duration: '31d', alignment: 'Rolling' as const };
    const longer = scopeOf('key', 100n, { budget });
    const edit = async (to: typeof monthly): Promise<void> => {
      const days = to === longer ? 31 : 30;
      await scenario.ended(ledger.flush());
      const start = Date.UTC(2026, 0, 1);
      scenario.ledgerRows.recount({ scopeId: 'key', window: { start, end: start + days * DAY } });
    };
    await settleOne(40n, monthly);
    const inFlight = heldOf(await ledger.reserve(requestOf(10n, monthly)));
    await edit(longer);
    await settleOne(30n, longer);
    await ledger.settle(inFlight, settlementOf(10n));
    await scenario.ended(ledger.flush());
    // What was taken before the edit and booked after it is counted by an audit.
    await scenario.ended(ledger.maintain());
    expect(outcome(await ledger.reserve(requestOf(21n, longer)))).toBe('exceeded');
    await edit(monthly);
    await scenario.ended(ledger.maintain());
    expect(outcome(await ledger.reserve(requestOf(21n, monthly)))).toBe('exceeded');
    expect(outcome(await ledger.reserve(requestOf(20n, monthly)))).toBe('reserved');
  });
});

describe('one call', () => {
  test('serves all requests of a tick, up to 64', async () => {
    const key = scopeOf('key', 10_000n);
    await ledger.reserve(requestOf(1n, key));
    scenario.calls.length = 0;
    await scenario.ended(Promise.all(Array.from({ length: 100 }, () => ledger.reserve(requestOf(100n, key)))));
    expect(scenario.calls.map(({ requests }) => requests.length).slice(0, 2)).toEqual([64, 36]);
  });

  test('carries settlements and releases within 25 ms, also where no other request follows', async () => {
    const key = scopeOf('key', 100n);
    const [first, second] = [await scenario.take(ledger, 50n, key), await scenario.take(ledger, 50n, key)];
    await scenario.time.advance(60);
    scenario.calls.length = 0;
    await ledger.settle(first, settlementOf(10n));
    await ledger.release(second);
    await scenario.time.advance(25);
    expect(scenario.calls.flatMap(({ changes }) => changes)).toMatchObject([{ spend: 10n, risk: 0n }]);
    expect((await scenario.store.part.read(first.scopeWindows))[0]).toEqual({ spent: 10n, escrowOfAll: 0n });
  });

  test('loads all counters that a tick misses with one reading of their sums', async () => {
    let reads = 0;
    const { sums } = scenario.database.part;
    Object.assign(scenario.database.part, {
      sums: (...of: Parameters<typeof sums>) => {
        reads += 1;
        return sums(...of);
      },
    });
    const all = Array.from({ length: 50 }, (_, index) => ledger.reserve(requestOf(1n, scopeOf(`key-${index}`, 10n))));
    expect((await Promise.all(all)).every(({ ok }) => ok)).toBe(true);
    expect(reads).toBe(1);
  });
});

test('what a scope has spent is known without a call from its first request on, with what has just ended; before that it is not', async () => {
  const [key, free] = [scopeOf('key', 1000n), scopeOf('free', undefined)];
  const elsewhere = await scenario.start(IMMORTAL);
  await elsewhere.settle(await scenario.take(elsewhere, 40n, key), settlementOf(40n));
  await scenario.time.advance(100);
  expect(ledger.knownSpend([key, free])).toEqual([undefined, undefined]);
  const reservation = await scenario.take(ledger, 100n, key, free);
  const calls = scenario.calls.length;
  expect(ledger.knownSpend([key, free])).toMatchObject([
    { scopeId: 'key', spent: 40n, window: { end: EDGE } },
    undefined,
  ]);
  await ledger.settle(reservation, settlementOf(7n));
  expect(ledger.knownSpend([key])).toMatchObject([{ spent: 47n }]);
  expect(scenario.calls.length - calls).toBeLessThanOrEqual(1);
  await scenario.time.advance(100);
  expect(ledger.knownSpend([key])).toMatchObject([{ spent: 47n }]);
});
