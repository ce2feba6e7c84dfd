import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { describeAccounts } from '#core/ports/test/counter-store.promises.ts';
import type { AccountsUnderTest } from '#core/ports/test/counter-store.scenario.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { startRedis, type TestRedis, VALKEY, whyNoRedis, whyNoValkey } from '../../../../test/support/redis.ts';
import { underClock } from '../../../../test/support/redis-clock.ts';
import { startCluster, type TestCluster } from '../../../../test/support/redis-cluster.ts';
import { startStrictRedis } from '../../../../test/support/redis-login.ts';
import { startSentinel, type TestSentinel } from '../../../../test/support/redis-sentinel.ts';
import { describeUnless, whyNoCampaign } from '../../../../test/support/skip-unless.ts';
import { startUpstash, type TestUpstash, TOKEN } from '../../../../test/support/upstash.ts';
import type { Evaluate } from '../counter-store.ts';
import { createRedisCounterStore } from '../counter-store.ts';
import { openRedis, type RedisConnection } from '../tcp.ts';
import { openUpstash } from '../upstash.ts';

describeUnless(whyNoRedis(), 'with a real server', () => {
  let server: TestRedis;
  let front: TestUpstash;
  let cluster: TestCluster;
  const inCluster: RedisConnection[] = [];
  let redis: RedisConnection;
  let upstash: RedisConnection;

  beforeAll(async () => {
    const strict = await startStrictRedis();
    server = strict.server;
    front = await startUpstash(server);
    cluster = await startCluster();
    redis = openRedis(strict.connection, { log: createMemoryLog() });
    upstash = openUpstash({ type: 'upstash', url: front.url, token: TOKEN });
  });
  afterAll(async () => {
    await redis?.close();
    await Promise.all(inCluster.map((one) => one.close()));
    await cluster?.stop();
    front?.stop();
    await server?.stop();
  });

  describeAccounts('Redis over TLS, as an ACL user', () => underManualClock(redis.evaluate));
  describeAccounts('a Redis Cluster', () => {
    // Each instance has a slot of its own.
    const instanceUid = randomUUID();
    const one = openRedis(cluster.connection, { instanceUid, log: createMemoryLog() });
    inCluster.push(one);
    return underManualClock(one.evaluate, instanceUid);
  });
  describeAccounts('Upstash over HTTPS', () => underManualClock(upstash.evaluate));
});

describeUnless(whyNoValkey(), 'with a real Valkey', () => {
  let server: TestRedis;
  let valkey: RedisConnection;

  beforeAll(async () => {
    server = await startRedis([], '', VALKEY);
    valkey = openRedis(server.connection, { log: createMemoryLog() });
  });
  afterAll(async () => {
    await valkey?.close();
    await server?.stop();
  });

  describeAccounts('Valkey', () => underManualClock(valkey.evaluate));
});

// Only the address of the server is found in another way, which sentinel.world.test.ts shows.
describeUnless(whyNoRedis() ?? whyNoCampaign, 'with real Sentinels', () => {
  let sentinel: TestSentinel;
  let redis: RedisConnection;

  beforeAll(async () => {
    sentinel = await startSentinel();
    redis = openRedis(sentinel.connection, { log: createMemoryLog() });
  });
  afterAll(async () => {
    await redis?.close();
    await sentinel?.stop();
  });

  describeAccounts('Redis behind Sentinels', () => underManualClock(redis.evaluate));
});

async function underManualClock(evaluate: Evaluate, instanceUid = randomUUID()): Promise<AccountsUnderTest> {
  let now = Date.now();
  const store = createRedisCounterStore({ instanceUid, evaluate: underClock(evaluate, () => now) });
  await store.begin(1, true);
  return {
    store,
    epoch: 1,
    now: () => now,
    advance: async (millis) => {
      now += millis;
    },
  };
}
