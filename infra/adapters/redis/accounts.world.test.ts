import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { describeAccounts } from '#core/ports/accounts.promises.ts';
import type { AccountsUnderTest } from '#core/ports/accounts.scene.promises.ts';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../test/redis.ts';
import { describeUnless } from '../../../test/skip-unless.ts';
import { startUpstash, type TestUpstash, TOKEN } from '../../../test/upstash.ts';
import { createRedisAccounts } from './accounts.ts';
import type { Evaluate } from './store.ts';
import { openRedis, type RedisConnection } from './tcp.ts';
import { openUpstash } from './upstash.ts';

describeUnless(whyNoRedis(), 'with a real server', () => {
  let server: TestRedis;
  let front: TestUpstash;
  let redis: RedisConnection;
  let upstash: RedisConnection;

  beforeAll(async () => {
    server = await startRedis();
    front = await startUpstash(server);
    redis = openRedis(server.connection, { log: createMemoryLog() });
    upstash = openUpstash({ type: 'upstash', url: front.url, token: TOKEN });
  });
  afterAll(async () => {
    await redis?.close();
    front?.stop();
    await server?.stop();
  });

  describeAccounts('Redis over TCP', () => underManualClock(redis.evaluate));
  describeAccounts('Upstash over HTTPS', () => underManualClock(upstash.evaluate));
});

/** The script with a clock that the test sets, so leases of hours end without waiting. */
async function underManualClock(evaluate: Evaluate): Promise<AccountsUnderTest> {
  let now = Date.now();
  const store = createRedisAccounts({
    instanceUid: randomUUID(),
    evaluate(script, key, args) {
      const set = script.replace("redis.call('TIME')", '{ ARGV[3], ARGV[4] }');
      if (set === script) throw new Error('the script reads no clock');
      return evaluate(set, key, [...args, `${Math.floor(now / 1000)}`, `${(now % 1000) * 1000}`]);
    },
  });
  await store.begin(1);
  return {
    ...{ store, epoch: 1, now: () => now },
    advance: async (millis) => {
      now += millis;
    },
  };
}
