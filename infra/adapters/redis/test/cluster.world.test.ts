// A Redis Cluster: the node of the instance's slot is used, a moving slot is not, and failovers.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { startRedis, whyNoRedis } from '../../../../test/support/redis.ts';
import { startCluster, type TestCluster } from '../../../../test/support/redis-cluster.ts';
import { commandTo } from '../../../../test/support/redis-sentinel.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { openProcess } from '../../../../test/support/store-process.ts';
import { probeShared } from '../probe.ts';

describeUnless(whyNoRedis(), 'a Redis Cluster with TLS and an ACL user', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  const open = (instanceUid: string, log = createMemoryLog()) => openProcess(cluster.connection, { log, instanceUid });

  test('passes the probe for the slot of every instance, also if one of the listed nodes is away', async () => {
    for (let instance = 0; instance < 5; instance += 1)
      expect(await probeShared(cluster.connection, randomUUID())).toEqual({ ok: true });
  });

  test('is verified by the host of the Secret, because its nodes announce addresses', async () => {
    const otherServers = cluster.connection.otherServers?.map(({ port }) => ({ host: '127.0.0.1', port })) ?? [];
    const connection = { ...cluster.connection, host: '127.0.0.1', otherServers };
    expect(await probeShared(connection, randomUUID())).toMatchObject({
      message: expect.stringMatching(/does not match certificate's altnames/),
    });
  });

  test('answers no call while the slot moves, whichever Redis keys have moved, and afterwards everything is there once', async () => {
    const instanceUid = cluster.newUid();
    const log = createMemoryLog();
    const { store, spend, repeat, read } = await open(instanceUid, log);
    await spend(7n);
    for (let round = 0; round < 2; round += 1) {
      const move = await cluster.beginMove(instanceUid);
      const during = spend(1n);
      let isAnswered = false;
      during.then(() => {
        isAnswered = true;
      });
      for (let moved = 0; moved < 12; moved += 1) {
        for (const call of [repeat(), read(), store.accounts(false, 10), store.begin(1, true)])
          await expect(call).rejects.toThrow(/^ASK |non local key/);
        await move.moveKeys(1);
      }
      expect(await probeShared(cluster.connection, instanceUid)).toEqual({
        ok: false,
        reason: 'StoreUnreachable',
        message: expect.stringMatching(/ASK .*: the slot of this instance is moving to another node/),
      });
      expect(isAnswered).toBe(false);
      await move.end();
      expect(await during).toMatchObject({ outcome: 'done', counters: [{ spent: 13n + BigInt(round) }] });
      expect(await probeShared(cluster.connection, instanceUid)).toEqual({ ok: true });
    }
    expect(await read()).toMatchObject([{ spent: 14n }]);
    // The connection ends with the first call after a move.
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'info', 'warn', 'info']);
  });

  test('has everything after a failover to a replica that is not late', async () => {
    const { spend, read } = await open(cluster.newUid());
    await spend(7n);
    await cluster.failOver();
    expect(await spend(1n)).toMatchObject({ outcome: 'done', counters: [{ spent: 13n }] });
    expect(await read()).toMatchObject([{ spent: 13n }]);
  });

  test('shows every process that it is behind, after a failover to a late replica', async () => {
    const instanceUid = cluster.newUid();
    const [one, two] = [await open(instanceUid), await open(instanceUid)];
    await one.spend(1n);
    await two.spend(1n);
    await cluster.failOverToLateReplica(() => one.spend(1n));
    expect(await two.spend(1n)).toMatchObject({ outcome: 'done', storeCalls: 3 });
    expect(await one.spend(1n)).toMatchObject({ outcome: 'stale', why: 'wentBack' });
  });
});

test.skipIf(whyNoRedis() !== undefined)('a Cluster of one node is used; without its slots it says so', async () => {
  const server = await startRedis(['--cluster-enabled', 'yes']);
  onTestFinished(server.stop);
  expect(await probeShared(server.connection, 'one')).toEqual({
    ok: false,
    reason: 'StoreUnreachable',
    message: expect.stringMatching(/CLUSTERDOWN .*: check that the Cluster serves every slot/),
  });
  await commandTo(server, 'CLUSTER', 'ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => `${slot}`));
  await eventually(
    async () => `${await commandTo(server, 'CLUSTER', 'INFO')}`,
    (info) => info.includes('cluster_state:ok'),
  );
  expect(await probeShared(server.connection, 'one')).toEqual({ ok: true });
});
