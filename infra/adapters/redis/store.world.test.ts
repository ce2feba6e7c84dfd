import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeStore } from '#core/ports/store.promises.ts';
import type { StoreCall } from '#core/ports/store.ts';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../test/redis.ts';
import { describeUnless } from '../../../test/skip-unless.ts';
import { createRedisStore, type Evaluate } from './store.ts';
import { openRedis, type RedisConnection } from './tcp.ts';

const missing = whyNoRedis();

describeUnless(missing, 'with a real server', () => {
  let server: TestRedis;
  let redis: RedisConnection;

  beforeAll(async () => {
    server = await startRedis();
    redis = openRedis(server.connection, { log: createMemoryLog() });
  });
  afterAll(async () => {
    await redis?.close();
    await server?.stop();
  });

  /** The script with a clock that the test sets, so leases of hours end without waiting. A test below covers the server's own clock. */
  describeStore('Redis over TCP', async () => {
    let now = Date.now();
    const evaluate: Evaluate = (script, key, words) => {
      const set = script.replace("redis.call('TIME')", '{ ARGV[#ARGV - 1], ARGV[#ARGV] }');
      expect(set).not.toBe(script);
      const clock = [`${Math.floor(now / 1000)}`, `${(now % 1000) * 1000}`];
      return redis.evaluate(set, key, [...words, ...clock]);
    };
    const store = createRedisStore({ evaluate, instanceUid: randomUUID() });
    await store.begin(1);
    return {
      ...{ store, epoch: 1 },
      now: () => now,
      advance: async (millis) => {
        now += millis;
      },
    };
  });

  describe('the server’s own clock', () => {
    const nothing: StoreCall = { epoch: 1, settles: [], releases: [], renewals: [], loads: [], holds: [] };

    test('is the one of leases and deadlines', async () => {
      const store = createRedisStore({ evaluate: redis.evaluate, instanceUid: randomUUID() });
      await store.begin(1);
      const now = Date.now();
      const window = { start: now - 60_000, end: now + 60_000 };
      const key = { scopeId: 'key', window, limit: 10n };
      const note = { charges: [{ scopeId: 'key', window }], model: 'small', identifier: 's-1' };
      const hold = { id: 'a', amount: 10n, minAmount: 10n, counters: [key], note, deadline: now + 60_000, lease: 100 };
      const loads = [{ ...key, spent: 0n }];
      const taken = await store.call({ ...nothing, loads, holds: [hold, { ...hold, id: 'b', deadline: now - 1000 }] });
      expect(taken).toMatchObject({ holds: [{ outcome: 'held', amount: 10n }, { outcome: 'late' }] });
      expect(Math.abs(taken.now - now)).toBeLessThan(5000);
      await pause(150);
      expect(await store.call(nothing)).toMatchObject({ expired: [{ id: 'a', charged: 10n, note }] });
    });
  });

  test('rates are kept for a minute after their last use, and as long as requests are in flight', async () => {
    const instanceUid = randomUUID();
    const store = createRedisStore({ evaluate: redis.evaluate, instanceUid });
    await store.begin(1);
    const note = { charges: [], model: 'small', identifier: 's-1' };
    const rates = { tokens: 5, limits: [{ id: 'scope key', requests: 10, tokens: 100 }], entries: [] };
    const sizes = { amount: 0n, minAmount: 0n, counters: [], deadline: Date.now() + 60_000, lease: 60_000 };
    const nothing: StoreCall = { epoch: 1, settles: [], releases: [], renewals: [], loads: [], holds: [] };
    const lives = async () => {
      const script = `return tostring(redis.call('PTTL', KEYS[1]))`;
      return Number(await redis.evaluate(script, `{${instanceUid}}:t:scope key`, []));
    };
    await store.call({ ...nothing, holds: [{ id: 'a', ...sizes, note, rates }] });
    expect(await lives()).toBeGreaterThan(3_600_000);
    await store.call({ ...nothing, settles: [{ id: 'a', cost: 0n, tokens: 7 }] });
    const left = await lives();
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(62_000);
  });

  test('a call with one wrong amount writes nothing at all', async () => {
    const store = createRedisStore({ evaluate: redis.evaluate, instanceUid: 'broken' });
    await store.begin(1);
    const window = { start: 0, end: 10 ** 15 };
    const load = (scopeId: string, spent: bigint) => ({ scopeId, window, spent });
    const loads = [load('a', 1n), load('b', 10n ** 30n)];
    const nothing = { epoch: 1, settles: [], releases: [], renewals: [], holds: [] };
    await expect(store.call({ ...nothing, loads })).rejects.toThrow('not an amount');
    expect(await store.read([{ scopeId: 'a', window }])).toEqual([undefined]);
  });

  test('a call that meets an amount too big for a number starts over, and does nothing twice', async () => {
    const store = createRedisStore({ evaluate: redis.evaluate, instanceUid: randomUUID() });
    await store.begin(1);
    const window = { start: 0, end: 10 ** 15 };
    const [small, big] = ['small', 'big'].map((scopeId) => ({ scopeId, window, limit: 10n ** 18n + 100n }));
    if (small === undefined || big === undefined) throw new Error('two counters');
    const note = { charges: [small, big], model: 'small', identifier: 's-1' };
    const times = { deadline: 10 ** 15, lease: 60_000 };
    const hold = (id: string, amount: bigint) => ({
      ...{ id, amount, minAmount: amount, note },
      counters: [small, big],
      ...times,
    });
    const nothing: StoreCall = { epoch: 1, settles: [], releases: [], renewals: [], loads: [], holds: [] };
    const of = { ...small, limit: 1000n };
    const loads = [
      { ...small, spent: 5n },
      { ...big, spent: 10n ** 18n },
    ];
    const first = { ...hold('a', 30n), counters: [of], note: { ...note, charges: [small] } };
    await store.call({ ...nothing, loads: loads.slice(0, 1), holds: [first] });
    const from = { process: 'one', acknowledged: 0 };
    // Everything decided before the big amount is decided once more.
    const settles = [{ id: 'a', cost: 7n }];
    const reply = await store.call({
      ...nothing,
      from,
      settles,
      loads,
      holds: [hold('b', 60n), hold('c', 41n), hold('d', 40n)],
    });
    expect(reply).toMatchObject({ calls: 1, settles: [{ outcome: 'settled' }] });
    expect(reply).toMatchObject({ holds: [{ outcome: 'held' }, { outcome: 'busy', counter: 1 }, { outcome: 'held' }] });
    const ends = ['b', 'd'].map((id) => ({ id, cost: 1n }));
    await store.call({ ...nothing, settles: ends });
    expect(await store.read([small, big])).toEqual([14n, 10n ** 18n + 2n]);
  });

  test('instances on one server do not see each other', async () => {
    const [one, two] = ['one', 'two'].map((instanceUid) => createRedisStore({ evaluate: redis.evaluate, instanceUid }));
    const counter = { scopeId: 'key', window: { start: 0, end: 10 ** 15 } };
    const nothing = { epoch: 1, settles: [], releases: [], renewals: [], holds: [] };
    await Promise.all([one?.begin(1), two?.begin(1)]);
    await one?.call({ ...nothing, loads: [{ ...counter, spent: 5n }] });
    expect(await one?.read([counter])).toEqual([5n]);
    expect(await two?.read([counter])).toEqual([undefined]);
  });
});
