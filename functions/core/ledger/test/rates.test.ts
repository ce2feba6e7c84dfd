import { beforeEach, describe, expect, test } from 'vitest';
import { NO_TOKENS } from '../../money/usage.ts';
import type { Reservation, ReservationParams } from '../../ports/ledger.ts';
import type { ScopePolicy, SpecRateLimits } from '../../ports/policy.ts';
import { perEstimatedRate, usageAtEnd, WINDOWED_RATES } from '../../ports/rates.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess } from './processes.fixture.ts';
import { createScenario, heldOf, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

let scenario: Scenario;
let ledger: StartableLedger;

beforeEach(async () => {
  scenario = createScenario();
  ledger = await scenario.start();
});

const limited = (scopeId: string, limits: SpecRateLimits, limit?: bigint): ScopePolicy =>
  scopeOf(scopeId, limit, { limits });
const ask = (...scopes: ReadonlyArray<ScopePolicy>): ReservationParams => ({ ...requestOf(0n, ...scopes), tokens: 10 });
const reservation = async (request: ReservationParams, one = ledger) =>
  (await scenario.ended(one.reserve(request))).value;
const take = async (request: ReservationParams, one = ledger): Promise<Reservation> =>
  heldOf(await reservation(request, one));

describe('rate limits', () => {
  test('of 1,000 concurrent requests of two processes exactly as many are held as a minute allows', async () => {
    const key = limited('key', { rpmLimit: 10 }, 10n ** 12n);
    const other = await scenario.start();
    const all = Array.from({ length: 1000 }, (_, index) => (index % 2 ? ledger : other).reserve(ask(key)));
    const results = (await scenario.ended(Promise.all(all))).value;
    expect(results.filter(({ ok }) => ok)).toHaveLength(10);
    const refused = results.flatMap((result) => (result.ok ? [] : [result.failure]));
    expect(refused).toHaveLength(990);
    for (const failure of refused)
      expect(failure).toMatchObject({ reason: 'limited', scope: key, rate: 'requests', limit: 10 });
  });

  test('a client sees the scope that leaves the least, for requests and for tokens', async () => {
    const scopes = [
      limited('key', { rpmLimit: 10, tpmLimit: 1000 }),
      limited('user', { rpmLimit: 5 }),
      limited('team', { tpmLimit: 50, maxParallelRequests: 100 }),
    ];
    const held = await take(ask(...scopes));
    expect(held.rates).toMatchObject({ requests: { limit: 5, remaining: 4 }, tokens: { limit: 50, remaining: 40 } });
    expect(held.modelEntryIndex).toBeUndefined();
  });

  test('the tokens that a reply used replace the expected ones', async () => {
    const key = limited('key', { tpmLimit: 100 });
    const tokens = { input: 20, output: 30, cachedInput: 0, cacheWrite: 0 };
    await ledger.settle(await take({ ...ask(key), tokens: 90 }), { ...settlementOf(0n), tokens });
    await scenario.time.advance(50);
    expect(await reservation({ ...ask(key), tokens: 51 })).toMatchObject({
      failure: { reason: 'limited', rate: 'tokens', limit: 100, rates: { tokens: { remaining: 50 } } },
    });
    expect((await take({ ...ask(key), tokens: 50 })).rates?.tokens?.remaining).toBe(0);
  });

  test.each(WINDOWED_RATES)(
    'a settled request does not give back all of its %s, a request without a call does',
    (kind) => {
      const tokens = { input: 1, output: 1, cachedInput: 1, cacheWrite: 1 };
      const estimates = perEstimatedRate(() => 1);
      expect(usageAtEnd({ isCalled: true, tokens, estimates })[kind]).toBeGreaterThan(0);
      expect(usageAtEnd({ isCalled: false, tokens: NO_TOKENS, estimates })[kind]).toBe(0);
    },
  );

  test('one request at a time: the next is taken as soon as the reply before it has ended', async () => {
    const key = limited('key', { maxParallelRequests: 1 });
    for (let turn = 0; turn < 20; turn += 1) await ledger.settle(await take(ask(key)), settlementOf(0n));
    const held = await take(ask(key));
    expect(await reservation(ask(key))).toMatchObject({ failure: { reason: 'limited', rate: 'parallel', limit: 1 } });
    await ledger.release(held, { called: true });
    await take(ask(key));
  });

  test('one request at a time, also from process to process', async () => {
    const key = limited('key', { maxParallelRequests: 1 });
    const other = await scenario.start();
    for (let turn = 0; turn < 20; turn += 1) {
      const one = turn % 2 === 0 ? ledger : other;
      await one.settle(await take(ask(key), one), settlementOf(0n));
      await scenario.time.advance(30);
    }
  });

  test('a request in flight of a process that died frees its place when its lease ends', async () => {
    const key = limited('key', { maxParallelRequests: 1 });
    const process = createProcess();
    await take(ask(key), await scenario.start(process));
    process.is.dead = true;
    expect(await reservation(ask(key))).toMatchObject({ failure: { rate: 'parallel' } });
    await scenario.time.advance(25_000);
    await take(ask(key));
  });

  test('requests in flight count again after the store was wiped', async () => {
    const key = limited('key', { maxParallelRequests: 1 });
    const held = await take(ask(key));
    scenario.wipe();
    await scenario.time.advance(3000);
    expect(await reservation(ask(key))).toMatchObject({ failure: { reason: 'limited', rate: 'parallel' } });
    await ledger.release(held);
    await scenario.time.advance(50);
    await take(ask(key));
  });

  test('requests in flight of all processes count before requests that waited for a store that was wiped', async () => {
    const key = limited('key', { maxParallelRequests: 2 });
    const other = await scenario.start();
    for (const one of [ledger, other]) await take(ask(key), one);
    scenario.wipe();
    const waiting = Promise.all([ledger, other].map((one) => one.reserve(ask(key))));
    const refusal = { failure: { reason: 'limited', rate: 'parallel' } };
    expect((await scenario.ended(waiting)).value).toMatchObject([refusal, refusal]);
  });

  test('a request that called no provider does not count; one that failed at the provider does', async () => {
    const key = limited('key', { rpmLimit: 1 });
    await ledger.release(await take(ask(key)));
    await ledger.release(await take(ask(key)), { called: true });
    expect(await reservation(ask(key))).toMatchObject({ failure: { reason: 'limited' } });
  });

  test('a request that gave up before its answer came gives its request, tokens and place back', async () => {
    const key = limited('key', { rpmLimit: 2, tpmLimit: 20, maxParallelRequests: 2 });
    const first = await take(ask(key));
    scenario.store.behaviour = 'loses';
    expect(await reservation(ask(key))).toMatchObject({ failure: { reason: 'unavailable' } });
    scenario.store.behaviour = 'up';
    await scenario.time.advance(3000);
    expect((await take(ask(key))).rates).toMatchObject({ requests: { remaining: 0 }, tokens: { remaining: 0 } });
    await ledger.release(first);
  });

  test('a request that asks again, because its limit fell while it asked, uses its rates once', async () => {
    const scopes = (limit: bigint) => [limited('key', { rpmLimit: 10, tpmLimit: 100, maxParallelRequests: 10 }, limit)];
    await take(ask(...scopes(100n)));
    scenario.store.behaviour = 'hangs';
    const held = ledger.reserve({ ...ask(...scopes(100n)), amount: 5n, minAmount: 5n });
    await scenario.time.advance(10);
    void ledger.reserve({ ...ask(...scopes(50n)), amount: 5n, minAmount: 5n });
    scenario.store.behaviour = 'up';
    heldOf((await scenario.ended(held)).value);
    await scenario.time.advance(100);
    expect((await take(ask(...scopes(50n)))).rates).toMatchObject({
      requests: { remaining: 6 },
      tokens: { remaining: 60 },
    });
  });

  test('a request that reserves more than the limit gives back no more than it took', async () => {
    const key = limited('key', { tpmLimit: 100 });
    const tokens = { input: 40, output: 50, cachedInput: 0, cacheWrite: 0 };
    await ledger.settle(await take({ ...ask(key), tokens: 5000 }), { ...settlementOf(0n), tokens });
    await scenario.time.advance(50);
    expect((await take({ ...ask(key), tokens: 10 })).rates?.tokens?.remaining).toBe(0);
    expect(await reservation({ ...ask(key), tokens: 1 })).toMatchObject({
      failure: { reason: 'limited', rate: 'tokens' },
    });
  });

  test('what a request does not use goes back to the minute in which it was taken, not to a later one', async () => {
    const key = limited('key', { tpmLimit: 100, rpmLimit: 2 });
    const early = [await take({ ...ask(key), tokens: 50 }), await take({ ...ask(key), tokens: 50 })];
    await scenario.time.advance(90_000);
    expect((await take({ ...ask(key), tokens: 50 })).rates).toMatchObject({ tokens: { remaining: 0 } });
    for (const one of early) await ledger.release(one);
    await scenario.time.advance(50);
    // Nothing is left of the earlier minute, and all of this one.
    expect((await take({ ...ask(key), tokens: 50 })).rates).toMatchObject({
      tokens: { remaining: 0 },
      requests: { remaining: 0 },
    });
  });

  test('what was taken from a store that was wiped meanwhile is not given back to the next one', async () => {
    const key = limited('key', { tpmLimit: 100, rpmLimit: 1, maxParallelRequests: 5 });
    const before = await take({ ...ask(key), tokens: 80 });
    scenario.wipe();
    await scenario.time.advance(3000);
    await take({ ...ask(key), tokens: 100 });
    await ledger.release(before);
    await scenario.time.advance(50);
    expect(await reservation({ ...ask(key), tokens: 1 })).toMatchObject({ failure: { reason: 'limited' } });
  });

  test('tokens of a request that its provider refused are not used, its request is', async () => {
    const key = limited('key', { tpmLimit: 100, rpmLimit: 10 });
    await ledger.release(await take({ ...ask(key), tokens: 100 }), { called: true });
    await scenario.time.advance(50);
    expect((await take({ ...ask(key), tokens: 10 })).rates).toMatchObject({
      tokens: { remaining: 90 },
      requests: { remaining: 8 },
    });
  });

  test('a refusal by live reservations shows what is left of the rates, and uses nothing of them', async () => {
    const key = limited('key', { rpmLimit: 2 }, 100n);
    const first = await take({ ...ask(key), amount: 100n, minAmount: 1n });
    expect(await reservation({ ...ask(key), amount: 100n, minAmount: 1n })).toMatchObject({
      failure: { reason: 'held', rates: { requests: { remaining: 1 } } },
    });
    await ledger.settle(first, settlementOf(100n));
    expect(await reservation(ask(key))).toMatchObject({
      failure: { reason: 'exceeded', rates: { requests: { remaining: 1 } } },
    });
  });

  test('a request that waited in vain for live reservations beside others of its line shows its rates too', async () => {
    const key = limited('key', { rpmLimit: 100 }, 100n);
    await take({ ...ask(key), amount: 100n, minAmount: 1n });
    const all = Array.from({ length: 3 }, () => reservation({ ...ask(key), amount: 50n, minAmount: 1n }));
    for (const result of await Promise.all(all))
      expect(result).toMatchObject({ failure: { reason: 'held', rates: { requests: { limit: 100 } } } });
  });

  test('where nothing is limited nothing of rates is asked, used or moved', async () => {
    const held = await take(ask(scopeOf('key', 100n)));
    expect(await ledger.moveToModelEntry(held, undefined)).toEqual({ ok: true, value: undefined });
    await ledger.settle(held, settlementOf(1n));
    await scenario.time.advance(50);
    expect(held).not.toHaveProperty('rates');
    expect(scenario.calls.flatMap(({ rateChanges }) => rateChanges)).toEqual([]);
    expect(scenario.calls.flatMap(({ requests }) => requests.filter((one) => one.rates !== undefined))).toEqual([]);
  });

  test('every request of a key with a rate asks, also where escrow would cover it', async () => {
    const key = limited('key', { rpmLimit: 1000 }, 1_000_000n);
    for (let turn = 0; turn < 10; turn += 1) await take({ ...ask(key), amount: 10n, minAmount: 10n });
    expect(scenario.calls.reduce((all, { requests }) => all + requests.length, 0)).toBeGreaterThanOrEqual(10);
  });

  test('changes of thousands of rates are reported in calls of at most 256', async () => {
    const keys = Array.from({ length: 700 }, (_, index) => limited(`key-${index}`, { maxParallelRequests: 1 }));
    const all = await Promise.all(keys.map((key) => take(ask(key))));
    scenario.calls.length = 0;
    for (const held of all) void ledger.release(held);
    await scenario.time.advance(500);
    expect(scenario.calls.reduce((sum, { rateChanges }) => sum + rateChanges.length, 0)).toBe(700);
    expect(Math.max(...scenario.calls.map(({ rateChanges }) => rateChanges.length))).toBeLessThanOrEqual(256);
    await Promise.all(keys.map((key) => take(ask(key))));
  });
});

describe('rates of model entries', () => {
  const [one, two] = [
    { id: 'entry one', requests: 1 },
    { id: 'entry two', requests: 1 },
  ];
  const key = scopeOf('key');

  test('a full one is skipped, and when all are full the refusal names no scope', async () => {
    const request = { ...ask(key), modelEntryLimits: [one, two] };
    expect((await take(request)).modelEntryIndex).toBe(0);
    expect((await take(request)).modelEntryIndex).toBe(1);
    const refused = await reservation(request);
    expect(refused).toMatchObject({ failure: { reason: 'limited', rate: 'requests', limit: 1 } });
    expect(refused).not.toHaveProperty('failure.scope');
  });

  test('a request that falls back to another one uses its rate too; a full one is not taken', async () => {
    const request = { ...ask(key), modelEntryLimits: [one, undefined] };
    const held = await take(request);
    const move = async (to: typeof one | undefined) => (await scenario.ended(ledger.moveToModelEntry(held, to))).value;
    expect(await move(two)).toEqual({ ok: true, value: undefined });
    expect(await move(one)).toMatchObject({ failure: { reason: 'limited', limit: 1 } });
    expect(await move(undefined)).toEqual({ ok: true, value: undefined });
    expect((await take({ ...request, modelEntryLimits: [one, two, undefined] })).modelEntryIndex).toBe(2);
  });

  test('a request that moves on frees its place in the entry that it leaves', async () => {
    const narrow = { id: 'narrow', parallel: 1 };
    const held = await take({ ...ask(key), modelEntryLimits: [narrow, undefined] });
    await scenario.ended(ledger.moveToModelEntry(held, undefined));
    await scenario.time.advance(50);
    expect((await take({ ...ask(key), modelEntryLimits: [narrow] })).modelEntryIndex).toBe(0);
  });

  test('a request that moves on gives back no more tokens than it took there', async () => {
    const [small, large] = [
      { id: 'small', tokens: 100 },
      { id: 'large', tokens: 1000 },
    ];
    const other = await take({ ...ask(key), tokens: 0, modelEntryLimits: [large] });
    const moving = await take({ ...ask(key), tokens: 5000, modelEntryLimits: [small, large] });
    await scenario.ended(
      ledger.settle(other, { ...settlementOf(0n), tokens: { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 } }),
    );
    expect(moving.modelEntryIndex).toBe(0);
    await scenario.ended(ledger.moveToModelEntry(moving, large));
    await scenario.ended(
      ledger.settle(moving, { ...settlementOf(0n), tokens: { input: 900, output: 0, cachedInput: 0, cacheWrite: 0 } }),
    );
    await scenario.time.advance(50);
    expect(await reservation({ ...ask(key), tokens: 101, modelEntryLimits: [large] })).toMatchObject({
      failure: { reason: 'limited', limit: 1000 },
    });
    expect((await take({ ...ask(key), tokens: 100, modelEntryLimits: [large] })).modelEntryIndex).toBe(0);
    expect((await take({ ...ask(key), tokens: 100, modelEntryLimits: [small] })).modelEntryIndex).toBe(0);
  });

  test('a request that has ended before its move was answered uses neither entry', async () => {
    const narrow = { id: 'narrow', tokens: 100, requests: 5, parallel: 1 };
    const held = await take({ ...ask(key), modelEntryLimits: [undefined] });
    const moved = ledger.moveToModelEntry(held, narrow);
    await ledger.release(held);
    await scenario.ended(moved);
    await scenario.time.advance(50);
    expect((await take({ ...ask(key), tokens: 100, modelEntryLimits: [narrow] })).modelEntryIndex).toBe(0);
  });

  test('a reservation of an unlimited one moves to a limited one, and is refused where that is full', async () => {
    const request = { ...ask(key), modelEntryLimits: [undefined] };
    const [first, second] = [await take(request), await take(request)];
    expect((await scenario.ended(ledger.moveToModelEntry(first, one))).value).toEqual({ ok: true, value: undefined });
    expect((await scenario.ended(ledger.moveToModelEntry(second, one))).value).toMatchObject({
      failure: { reason: 'limited', rate: 'requests', limit: 1 },
    });
  });

  test('no request falls back to a limited one while the store is away', async () => {
    const held = await take({ ...ask(key), modelEntryLimits: [one, two] });
    scenario.store.behaviour = 'refuses';
    expect((await scenario.ended(ledger.moveToModelEntry(held, two))).value).toMatchObject({
      failure: { reason: 'unavailable' },
    });
  });
});
