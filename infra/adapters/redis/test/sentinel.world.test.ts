// A Redis behind Sentinels: which server is used, what a wrong Secret says, and failovers.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RedisAddress } from '#core/ports/backends.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { whyNoRedis } from '../../../../test/support/redis.ts';
import { startSentinel, type TestSentinel } from '../../../../test/support/redis-sentinel.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { openProcess } from '../../../../test/support/store-process.ts';
import { probeShared } from '../probe.ts';

describeUnless(whyNoRedis(), 'a Redis behind Sentinels, with TLS and ACL users', () => {
  let sentinel: TestSentinel;
  beforeAll(async () => {
    sentinel = await startSentinel();
  });
  afterAll(() => sentinel?.stop());

  test('passes the probe, also if one of the Sentinels is away', async () => {
    expect(await probeShared(sentinel.connection, randomUUID())).toEqual({ ok: true });
  });

  test('has Sentinels with the login of Redis if no password of Sentinels is mapped', async () => {
    const { sentinelPassword: _, ...connection } = sentinel.connection;
    expect(await probeShared(connection, randomUUID())).toEqual({ ok: true });
  });

  test.each<[string, (connection: RedisAddress) => RedisAddress, RegExp]>([
    [
      'another name of the primary',
      (connection) => ({ ...connection, sentinelMaster: 'other-name' }),
      /no primary of this name: check the key of the Secret of redisSecretRef that `sentinelMasterSecret` maps$/,
    ],
    [
      'another password of the Sentinels',
      (connection) => ({ ...connection, sentinelPassword: 'wrong-password' }),
      /Sentinel 127.0.0.1:\d+: WRONGPASS.*check the key of the Secret of redisSecretRef that `sentinelPasswordSecret` maps/,
    ],
    [
      'another password of Redis',
      (connection) => ({ ...connection, password: 'wrong-password' }),
      /127.0.0.1:\d+, which is named as the primary: WRONGPASS.*: check the user name and the password in the Secret of redisSecretRef$/,
    ],
    [
      'a Redis in place of the Sentinels',
      ({ sentinelPassword: _, otherServers: __, ...connection }) => ({ ...connection, ...sentinel.primaryServer() }),
      /is no Sentinel: remove `sentinelMasterSecret`/,
    ],
    [
      'Sentinels without the name of the primary',
      ({ sentinelMaster: _, otherServers = [], ...connection }) => ({
        ...connection,
        password: 'sentinel-pw',
        username: 'default',
        ...otherServers[0],
      }),
      /^Redis at 127.0.0.1:\d+ is a Sentinel: map `sentinelMasterSecret`/,
    ],
    [
      'several servers that are no Sentinels',
      ({ sentinelMaster: _, ...connection }) => ({ ...connection, otherServers: [sentinel.primaryServer()] }),
      /^Redis at 127.0.0.1:1,127.0.0.1:\d+ is no Cluster, although its host lists several servers/,
    ],
  ])('with %s the probe says what to check, without the value', async (_, change, message) => {
    const health = await probeShared(change(sentinel.connection), randomUUID());
    expect(health).toEqual({ ok: false, reason: 'StoreUnreachable', message: expect.stringMatching(message) });
    expect(JSON.stringify(health)).not.toMatch(/other-name|wrong-password|change-me|sentinel-pw/);
  });

  test('has everything after a failover to a replica that is not late', async () => {
    const log = createMemoryLog();
    const { spend, read } = await openProcess(sentinel.connection, { log, instanceUid: randomUUID() });
    await spend(7n);
    const before = sentinel.primary();
    await sentinel.failOver();
    expect(sentinel.primary()).not.toBe(before);
    expect(await spend(1n)).toMatchObject({ outcome: 'done', counters: [{ spent: 13n }] });
    expect(await read()).toMatchObject([{ spent: 13n }]);
    expect([...new Set(log.lines.map(({ message }) => message))]).toEqual([
      'the connection to the counter store ended, and is opened again',
      'the counter store is connected again',
    ]);
    expect(await probeShared(sentinel.connection, randomUUID())).toEqual({ ok: true });
  });

  test('shows every process that it is behind, after a failover to a late replica', async () => {
    const instanceUid = randomUUID();
    const open = () => openProcess(sentinel.connection, { instanceUid });
    const [one, two] = [await open(), await open()];
    await one.spend(1n);
    await two.spend(1n);
    await sentinel.failOverToLateReplica(() => one.spend(1n));
    expect(await two.spend(1n)).toMatchObject({ outcome: 'done', storeCalls: 3 });
    expect(await one.spend(1n)).toMatchObject({ outcome: 'stale', why: 'wentBack' });
  });
});
