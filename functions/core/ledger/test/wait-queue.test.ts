import { beforeEach, describe, expect, test } from 'vitest';
import type { StartableLedger } from '../ledger.ts';
import { slow } from './processes.fixture.ts';
import { createScenario, outcome, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 100n);
let scenario: Scenario;
let ledger: StartableLedger;
let other: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  [ledger, other] = [await scenario.start(), await scenario.start()];
});

interface RequestResult {
  readonly who: number;
  readonly outcome: string;
  readonly after: number;
}

/** Sends these requests concurrently, and records the answers in order of arrival. */
async function rush(amounts: ReadonlyArray<bigint>, scopes = [key], one = ledger) {
  const answers: RequestResult[] = [];
  const began = scenario.time.clock.now();
  amounts.forEach((amount, who) => {
    void one.reserve(requestOf(amount, ...scopes)).then((result) => {
      answers.push({ who, outcome: outcome(result), after: scenario.time.clock.now() - began });
    });
  });
  await scenario.time.advance(20);
  scenario.calls.length = 0;
  return answers;
}

const requestCount = (): number => scenario.calls.reduce((all, { requests }) => all + requests.length, 0);
const manyOf = (amount: bigint, count: number): bigint[] => Array.from({ length: count }, () => amount);
const heldIn = (answers: ReadonlyArray<RequestResult>): number[] =>
  answers.filter((each) => each.outcome === 'reserved').map(({ who }) => who);
const firstOf = (count: number): number[] => Array.from({ length: count }, (_, who) => who);

describe('requests that wait for live reservations', () => {
  test('a thousand are few calls: only the request in front asks the store again', async () => {
    await scenario.take(other, 100n, key);
    const answers = await rush(manyOf(7n, 1000));
    await scenario.time.advance(900);
    expect(requestCount()).toBeLessThanOrEqual(20);
    expect(scenario.calls.length).toBeLessThanOrEqual(40);
    expect(answers).toHaveLength(1000);
    expect(answers.every((each) => each.outcome === 'held' && each.after <= 910)).toBe(true);
  });

  test('a thousand are one timer', async () => {
    await scenario.take(other, 100n, key);
    let timers = 0;
    const { timer } = scenario.time;
    Object.assign(scenario.time, {
      timer: (...of: Parameters<typeof timer>) => {
        timers += 1;
        return timer(...of);
      },
    });
    await rush(manyOf(7n, 1000));
    expect(timers).toBeLessThanOrEqual(100);
  });

  test('money that another process frees is found within 150 ms, and taken in order by every request that it suffices for', async () => {
    const first = await scenario.take(other, 100n, key);
    const answers = await rush(manyOf(7n, 1000));
    await scenario.time.advance(250);
    await other.release(first);
    await scenario.time.advance(150);
    expect(heldIn(answers)).toEqual(firstOf(14));
    expect(requestCount()).toBeLessThanOrEqual(30);
  });

  test('money that their own process frees is taken in order without asking for it: only who is left asks the store', async () => {
    const first = await scenario.take(ledger, 98n, key);
    const answers = await rush(manyOf(7n, 20));
    await ledger.release(first);
    expect(heldIn(answers)).toEqual(firstOf(14));
    expect(requestCount()).toBeLessThanOrEqual(1);
  });

  test('a request that fits just before its deadline gets its money, though this process did not see it freed', async () => {
    const first = await scenario.take(other, 100n, key);
    const answers = await rush(manyOf(7n, 1000));
    await scenario.time.advance(750);
    await other.release(first);
    await scenario.time.advance(200);
    expect(heldIn(answers)).toEqual(firstOf(14));
    expect(answers).toHaveLength(1000);
    expect(new Set(answers.map((each) => each.outcome))).toEqual(new Set(['reserved', 'held']));
  });

  test('a small request takes what is too little for a larger one before it', async () => {
    const first = await scenario.take(ledger, 40n, key);
    await scenario.take(ledger, 60n, key);
    const answers = await rush([90n, 50n, 95n, 30n, 35n, 10n, 10n]);
    await scenario.time.advance(50);
    await ledger.release(first);
    await scenario.time.advance(60);
    // 40 are free: the first three do not fit, the fourth does, the fifth no longer does, one small request does.
    expect(heldIn(answers)).toEqual([3, 5]);
    await scenario.time.advance(1000);
    const busy = answers.filter((each) => each.outcome === 'held').map(({ who }) => who);
    expect(busy.sort()).toEqual([0, 1, 2, 4, 6]);
  });

  test('a small request behind a large one finds what another process freed', async () => {
    const first = await scenario.take(other, 40n, key);
    await scenario.take(other, 60n, key);
    const answers = await rush([90n, 50n, 30n]);
    await scenario.time.advance(250);
    await other.release(first);
    await scenario.time.advance(150);
    expect(heldIn(answers)).toEqual([2]);
  });

  test('all are refused soon after spend takes what they waited for, also with a distant store', async () => {
    const first = await scenario.take(ledger, 100n, key);
    scenario.store.part = slow(scenario.store.part, scenario.time, () => 20);
    const answers = await rush(manyOf(7n, 1000));
    await scenario.time.advance(350);
    await ledger.settle(first, settlementOf(100n));
    await scenario.time.advance(150);
    expect(answers).toHaveLength(1000);
    expect(answers.every((each) => each.outcome === 'exceeded')).toBe(true);
    expect(requestCount()).toBeLessThanOrEqual(70);
  });

  test('all are refused soon after spend of another process takes what they waited for', async () => {
    const first = await scenario.take(other, 100n, key);
    const answers = await rush(manyOf(7n, 100));
    await scenario.time.advance(350);
    await other.settle(first, settlementOf(100n));
    await scenario.time.advance(150);
    expect(answers).toHaveLength(100);
    expect(answers.every((each) => each.outcome === 'exceeded')).toBe(true);
  });

  test('a request that moves to the line of another scope wakes the next one in its old line', async () => {
    const [team, mine] = [scopeOf('team', 100n, { kind: 'team' }), scopeOf('mine', 10n)];
    const first = await scenario.take(ledger, 100n, team);
    await scenario.take(ledger, 10n, mine);
    // The team's counter is checked first; this request, behind it, waits for its own key.
    const answers = await rush([10n], [team, mine]);
    const next = await rush([10n], [team]);
    await scenario.time.advance(50);
    await ledger.release(first);
    await scenario.time.advance(60);
    expect([heldIn(answers), heldIn(next)]).toEqual([[], [0]]);
  });

  test('a request that is refused or served leaves its place to later ones', async () => {
    const first = await scenario.take(other, 100n, key);
    const early = await rush([1n]);
    await scenario.time.advance(500);
    const late = await rush([50n, 40n]);
    await scenario.time.advance(400);
    expect(early).toMatchObject([{ outcome: 'held' }]);
    await other.release(first);
    await scenario.time.advance(150);
    expect(heldIn(late)).toEqual([0, 1]);
  });

  test('a request waits in line behind earlier ones, also where its own reservation would fit', async () => {
    const first = await scenario.take(ledger, 50n, key);
    await scenario.take(ledger, 50n, key);
    const answers = await rush(manyOf(50n, 2));
    await ledger.release(first);
    const last = await rush([50n]);
    await scenario.time.advance(60);
    expect([heldIn(answers), heldIn(last)]).toEqual([[0], []]);
  });

  test('of two processes each gets its turn: none is refused while the other takes all', async () => {
    const results = [await rush(manyOf(50n, 4)), await rush(manyOf(50n, 4), [key], other)];
    expect(results.flatMap(heldIn)).toHaveLength(2);
    await scenario.time.advance(1000);
    expect(results.flat()).toHaveLength(8);
  });

  test('a request whose smallest useful amount is above its reservation is refused for reservations, not for spend', async () => {
    await ledger.settle(await scenario.take(ledger, 38n, key), settlementOf(38n));
    await scenario.take(ledger, 29n, key);
    const request = { ...requestOf(34n, key), minAmount: 63n };
    expect((await scenario.tryReservation(ledger, request)).outcome).toBe('held');
  });
});
