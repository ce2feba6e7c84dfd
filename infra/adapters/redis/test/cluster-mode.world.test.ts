// A Redis in cluster mode that has every slot: whatever is asked of it would work, until a slot moves.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../../test/support/redis.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { createRedisCounterStore } from '../counter-store.ts';
import { probeShared } from '../probe.ts';
import { openRedis } from '../tcp.ts';

const WHY = 'runs in cluster mode, which the operator does not support: use a Redis or Valkey with cluster mode off';

describeUnless(whyNoRedis(), 'a Redis in cluster mode', () => {
  let server: TestRedis;
  beforeAll(async () => {
    server = await startRedis(['--cluster-enabled', 'yes']);
    const { host, port } = server.connection;
    const redis = new Redis({ host, port, protocol: 2 });
    await redis.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    const state = () => redis.call('CLUSTER', 'INFO') as Promise<string>;
    await eventually(state, (info) => info.includes('cluster_state:ok'));
    redis.disconnect();
  });
  afterAll(() => server?.stop());

  test('is refused by the probe, whichever slot an instance has', async () => {
    const { host, port } = server.connection;
    for (const uid of ['one', 'two', 'three'])
      expect(await probeShared(server.connection, uid)).toEqual({
        ok: false,
        reason: 'StoreUnreachable',
        message: `Redis at ${host}:${port} ${WHY}`,
      });
  });

  test('is no store of a gateway, and its log says why', async () => {
    const log = createMemoryLog();
    const redis = openRedis(server.connection, { log });
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: 'one' });
    for (let attempt = 0; attempt < 3; attempt += 1) await expect(accounts.begin(1, true)).rejects.toThrow();
    expect(log.lines).toEqual([
      {
        level: 'warn',
        message: 'the connection to the counter store ended, and is opened again',
        fields: { store: expect.any(String), why: WHY },
      },
    ]);
    await redis.close();
  });
});
