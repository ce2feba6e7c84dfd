// A process with one account and one counter, whose calls are repeated while the store is away.
import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { createRedisCounterStore } from '#adapters/redis/counter-store.ts';
import { openRedis } from '#adapters/redis/tcp.ts';
import type { RedisAddress } from '#core/ports/backends.ts';
import type { AccountCall } from '#core/ports/counter-store.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { eventually } from './eventually.ts';

const counter = { scopeId: 'key', window: { start: 0, end: 10 ** 15 } };

/** The counter begins with a spend of 5. */
export async function openProcess(connection: RedisAddress, { log = createMemoryLog(), instanceUid = 'one' } = {}) {
  const redis = openRedis(connection, { instanceUid, log });
  onTestFinished(redis.close);
  const store = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid });
  await store.begin(1, true);
  await store.load(1, [{ ...counter, spent: 5n }]);
  const account = randomUUID();
  let number = 0;
  let last: AccountCall | undefined;
  const spend = async (amount: bigint) => {
    number += 1;
    const line = { ...counter, limit: 100n, spend: amount, risk: 0n, returned: 0n, carriedOver: 0n, ahead: 0n };
    const call: AccountCall = {
      epoch: 1,
      account,
      callNumber: number,
      lease: 60_000,
      deadline: 10 ** 15,
      batch: 1,
      bookedBatch: 0,
      changes: [line],
      requests: [],
      rateChanges: [],
      accountsToForget: [],
      finishesAccount: false,
    };
    last = call;
    return eventually(
      () => store.call(call).catch(() => undefined),
      (answer) => answer !== undefined,
    );
  };
  return {
    store,
    /** Spends; repeats the call until it is answered. */
    spend,
    /** Sends the last call again. */
    async repeat() {
      if (last === undefined) throw new Error('nothing was spent');
      return store.call(last);
    },
    read: () => store.read([counter]),
  };
}
