import { beforeEach, describe, expect, test } from 'vitest';
import type { HoldRequest } from '../ports/ledger.ts';
import type { RateLimits, ScopePolicy } from '../ports/policy.ts';
import type { StoreCall } from '../ports/store.ts';
import type { StartableLedger } from './ledger.ts';
import { createScene, heldOf, requestOf, type Scene, scopeOf, settlementOf } from './scene.promises.ts';

let scene: Scene;
let ledger: StartableLedger;
let calls: StoreCall[];

beforeEach(async () => {
  scene = createScene();
  calls = [];
  const store = scene.store.part;
  scene.store.part = {
    ...store,
    call(call) {
      calls.push(call);
      return store.call(call);
    },
  };
  ledger = scene.process();
  await ledger.start();
});

const limited = (scopeId: string, limits: RateLimits, limit?: bigint): ScopePolicy =>
  scopeOf(scopeId, limit, { limits });
const ask = (...scopes: ReadonlyArray<ScopePolicy>): HoldRequest => ({ ...requestOf(0n, ...scopes), tokens: 10 });
const settle = async (request: HoldRequest, input: number, output: number): Promise<void> => {
  const tokens = { input, output, cachedInput: 0, cacheWrite: 0 };
  await ledger.settle(heldOf(await ledger.hold(request)), { ...settlementOf(0n), tokens });
};

describe('rate limits', () => {
  test('of 1,000 concurrent requests exactly as many are held as a minute allows, from each of two processes', async () => {
    const key = limited('key', { rpmLimit: 10 }, 10n ** 12n);
    const other = scene.process();
    await other.start();
    const results = await Promise.all(
      Array.from({ length: 1000 }, (_, index) => (index % 2 ? ledger : other).hold(ask(key))),
    );
    expect(results.filter(({ ok }) => ok)).toHaveLength(10);
    const refused = results.flatMap((result) => (result.ok ? [] : [result.failure]));
    expect(refused).toHaveLength(990);
    for (const failure of refused) {
      expect(failure).toMatchObject({ reason: 'limited', scope: key, rate: 'requests', limit: 10 });
    }
  });

  test('a client sees the scope that leaves the least, for requests and for tokens', async () => {
    const scopes = [
      limited('key', { rpmLimit: 10, tpmLimit: 1000 }),
      limited('user', { rpmLimit: 5 }),
      limited('team', { tpmLimit: 50, maxParallelRequests: 100 }),
    ];
    const hold = heldOf(await ledger.hold(ask(...scopes)));
    expect(hold.rates).toMatchObject({
      requests: { limit: 5, remaining: 4 },
      tokens: { limit: 50, remaining: 40 },
    });
    expect(hold.entry).toBeUndefined();
  });

  test('the tokens that a reply used replace the expected ones', async () => {
    const key = limited('key', { tpmLimit: 100 });
    await settle({ ...ask(key), tokens: 90 }, 20, 30);
    await scene.time.advance(10);
    expect(await ledger.hold({ ...ask(key), tokens: 51 })).toMatchObject({
      failure: { reason: 'limited', rate: 'tokens', limit: 100, rates: { tokens: { remaining: 50 } } },
    });
    expect(heldOf(await ledger.hold({ ...ask(key), tokens: 50 })).rates?.tokens?.remaining).toBe(0);
  });

  test('one request at a time: the next is taken as soon as the reply before it has ended', async () => {
    const key = limited('key', { maxParallelRequests: 1 });
    for (let turn = 0; turn < 20; turn += 1) await settle(ask(key), 1, 1);
    const hold = heldOf(await ledger.hold(ask(key)));
    const refused = ledger.hold(ask(key));
    await scene.time.advance(150);
    expect(await refused).toMatchObject({ failure: { reason: 'limited', rate: 'parallel', limit: 1 } });
    await ledger.release(hold, { called: true });
    heldOf(await ledger.hold(ask(key)));
  });

  test('one request at a time, also from process to process: the next waits for an end that is on its way', async () => {
    const key = limited('key', { maxParallelRequests: 1 });
    const other = scene.process();
    await other.start();
    for (let turn = 0; turn < 20; turn += 1) {
      const [one, two] = turn % 2 === 0 ? [ledger, other] : [other, ledger];
      const held = two.hold(ask(key));
      await scene.time.advance(150);
      await two.settle(heldOf(await held), settlementOf(0n));
      const next = one.hold(ask(key));
      await scene.time.advance(150);
      await one.release(heldOf(await next), { called: true });
      await scene.time.advance(10);
    }
  });

  test('a request that called no provider does not count; one that failed at the provider does', async () => {
    const key = limited('key', { rpmLimit: 1 });
    await ledger.release(heldOf(await ledger.hold(ask(key))));
    await ledger.release(heldOf(await ledger.hold(ask(key))), { called: true });
    expect(await ledger.hold(ask(key))).toMatchObject({ failure: { reason: 'limited' } });
  });

  test('a hold whose answer was lost gives its request back', async () => {
    const key = limited('key', { rpmLimit: 1 });
    scene.store.behaviour = 'loses';
    expect(await ledger.hold(ask(key))).toMatchObject({ failure: { reason: 'unavailable' } });
    scene.store.behaviour = 'up';
    await scene.time.advance(2000);
    heldOf(await ledger.hold(ask(key)));
  });

  test('a refusal by live holds shows what is left of the rates, and uses nothing of them', async () => {
    const key = limited('key', { rpmLimit: 2 }, 100n);
    const first = heldOf(await ledger.hold({ ...ask(key), amount: 100n, minAmount: 1n }));
    const second = ledger.hold({ ...ask(key), amount: 100n, minAmount: 1n });
    await scene.time.advance(1100);
    expect(await second).toMatchObject({ failure: { reason: 'busy', rates: { requests: { remaining: 1 } } } });
    await ledger.settle(first, settlementOf(100n));
    expect(await ledger.hold(ask(key))).toMatchObject({
      failure: { reason: 'exceeded', rates: { requests: { remaining: 1 } } },
    });
  });

  test('where nothing is limited nothing of rates is asked, settled or moved', async () => {
    const hold = heldOf(await ledger.hold(ask(scopeOf('key', 100n))));
    expect(await ledger.move(hold, undefined)).toEqual({ ok: true, value: undefined });
    await ledger.settle(hold, settlementOf(1n));
    await scene.time.advance(10);
    expect(hold).not.toHaveProperty('rates');
    expect(calls.flatMap(({ holds }) => holds.filter((one) => 'rates' in one))).toEqual([]);
    expect(calls.flatMap(({ settles }) => settles.filter((one) => 'tokens' in one))).toEqual([]);
    expect(calls.filter(({ moves }) => moves !== undefined)).toEqual([]);
  });

  describe('of model entries', () => {
    const [one, two] = [
      { id: 'entry one', requests: 1 },
      { id: 'entry two', requests: 1 },
    ];

    test('a full one is skipped, and when all are full the refusal names no scope', async () => {
      const request = { ...ask(scopeOf('key')), entries: [one, two] };
      expect(heldOf(await ledger.hold(request)).entry).toBe(0);
      expect(heldOf(await ledger.hold(request)).entry).toBe(1);
      const refused = await ledger.hold(request);
      expect(refused).toMatchObject({ failure: { reason: 'limited', rate: 'requests', limit: 1 } });
      expect(refused).not.toHaveProperty('failure.scope');
    });

    test('a request that falls back to another one uses its rate too; a full one is not taken', async () => {
      const request = { ...ask(scopeOf('key')), entries: [one, undefined] };
      const hold = heldOf(await ledger.hold(request));
      expect(await ledger.move(hold, two)).toEqual({ ok: true, value: undefined });
      expect(await ledger.move(hold, one)).toMatchObject({ failure: { reason: 'limited', limit: 1 } });
      expect(await ledger.move(hold, undefined)).toEqual({ ok: true, value: undefined });
      expect(heldOf(await ledger.hold({ ...request, entries: [one, two, undefined] })).entry).toBe(2);
    });

    test('a hold of an unlimited one moves to a limited one, and is refused where that is full', async () => {
      const request = { ...ask(scopeOf('key')), entries: [undefined] };
      const [first, second] = [heldOf(await ledger.hold(request)), heldOf(await ledger.hold(request))];
      expect(await ledger.move(first, one)).toEqual({ ok: true, value: undefined });
      expect(await ledger.move(second, one)).toMatchObject({
        failure: { reason: 'limited', rate: 'requests', limit: 1 },
      });
    });

    test('no request falls back to a limited one while the store is away', async () => {
      const hold = heldOf(await ledger.hold({ ...ask(scopeOf('key')), entries: [one, two] }));
      scene.store.behaviour = 'refuses';
      expect(await ledger.move(hold, two)).toMatchObject({ failure: { reason: 'unavailable' } });
    });
  });
});
