import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { StoreHealth } from '#core/ports/backends.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { inTime } from '../../../../test/support/in-time.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../../test/support/redis.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { createRedisCounterStore } from '../counter-store.ts';
import { probeRedis } from '../probe-redis.ts';
import { openRedis } from '../tcp.ts';

const missing = whyNoRedis();
const COUNTER = { scopeId: 'key', window: { start: 0, end: 10 ** 15 } };
const counters = [COUNTER];

/** Whether the work failed, within the time limit. */
const failed = (work: Promise<unknown>): Promise<boolean> =>
  inTime(
    work.then(
      () => false,
      () => true,
    ),
  );

describeUnless(missing, 'a Redis', () => {
  let server: TestRedis;
  beforeAll(async () => {
    server = await startRedis(['--requirepass', 'secret'], 'secret');
  });
  afterAll(() => server?.stop());

  test('that is gone fails calls within a second, is logged once, and works again by itself', async () => {
    const log = createMemoryLog();
    const redis = openRedis(server.connection, { log });
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: randomUUID() });
    await accounts.read(counters);
    await server.kill();
    for (let attempt = 0; attempt < 5; attempt += 1) {
      expect(await failed(accounts.read(counters))).toBe(true);
    }
    await server.start();
    await eventually(
      () => failed(accounts.read(counters)),
      (has) => !has,
    );
    expect(
      log.lines.filter(({ message }) => message === 'the connection to the counter store ended, and is opened again'),
    ).toHaveLength(1);
    expect(JSON.stringify(log.lines)).not.toContain('secret');
    await redis.close();
  });

  test('that is absent at start fails calls within a second, and works as soon as it is there', async () => {
    await server.kill();
    const redis = openRedis(server.connection, { log: createMemoryLog() });
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: randomUUID() });
    await import('ioredis');
    expect(await failed(accounts.read(counters))).toBe(true);
    await server.start();
    await eventually(
      () => failed(accounts.read(counters)),
      (has) => !has,
    );
    await redis.close();
  });

  test('that is frozen fails calls within two seconds, and works again by itself', async () => {
    const redis = openRedis(server.connection, { log: createMemoryLog() });
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: randomUUID() });
    await accounts.read(counters);
    const thaw = server.freeze();
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(await failed(accounts.read(counters))).toBe(true);
    }
    thaw();
    await eventually(
      () => failed(accounts.read(counters)),
      (has) => !has,
    );
    await redis.close();
  });

  test('that is out of memory fails calls and its probe with those words', async () => {
    const full = await startRedis(['--maxmemory', '1', '--maxmemory-policy', 'noeviction']);
    onTestFinished(full.stop);
    const redis = openRedis(full.connection, { log: createMemoryLog() });
    onTestFinished(redis.close);
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: randomUUID() });
    await accounts.begin(1, true);
    await expect(accounts.load(1, [{ ...COUNTER, spent: 1n }])).rejects.toThrow(/^OOM command not allowed/);
    const health = await probeRedis(full.connection, 'instance-1');
    expect(health).toMatchObject({ ok: false, message: expect.stringMatching(/OOM.*more memory/) });
  });

  test.each([
    ['is full', ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'], /^OOM/],
    ['is a replica', ['--replicaof', '127.0.0.1', '1'], /^READONLY/],
  ])('that %s is found out before an epoch is raised for it', async (_, options, why) => {
    const other = await startRedis(options);
    onTestFinished(other.stop);
    const redis = openRedis(other.connection, { log: createMemoryLog() });
    onTestFinished(redis.close);
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: randomUUID() });
    // Reading works.
    expect(await accounts.accounts(false, 1)).toEqual([]);
    await expect(accounts.begin(0, true)).rejects.toThrow(why);
  });

  test('that became a replica is replaced by the server that its name resolves to now', async () => {
    const log = createMemoryLog();
    const redis = openRedis(server.connection, { log });
    const accounts = createRedisCounterStore({ evaluate: redis.evaluate, instanceUid: randomUUID() });
    await accounts.begin(1, true);
    const { host, port, password } = server.connection;
    const direct = new Redis({ host, port, password, protocol: 2 });
    onTestFinished(async () => {
      await direct.replicaof('NO', 'ONE');
      direct.disconnect();
      await redis.close();
    });
    await direct.replicaof('127.0.0.1', '1');
    await expect(accounts.begin(2, true)).rejects.toThrow(/^READONLY/);
    const lines = await eventually(
      async () => log.lines.map(({ message }) => message),
      (messages) => messages.includes('the counter store is connected again'),
    );
    expect(lines).toContain('the connection to the counter store ended, and is opened again');
  });

  describe('that is probed', () => {
    const probe = (change: Partial<TestRedis['connection']> = {}) =>
      inTime<StoreHealth>(probeRedis({ ...server.connection, ...change }, 'instance-1'));

    test('is healthy when it answers, writes and evicts nothing', async () => {
      expect(await probe()).toMatchObject({ ok: true });
    });

    test.each([
      [
        'with a wrong password',
        { password: 'wrong' },
        /WRONGPASS.*check the user name and the password in the Secret of redisSecretRef/,
      ],
      [
        'without a password',
        { password: '' },
        /NOAUTH.*check the user name and the password in the Secret of redisSecretRef/,
      ],
      [
        'on a port without a listener',
        { port: 1 },
        /ECONNREFUSED.*check the host and port in the Secret of redisSecretRef/,
      ],
      ['under a name that is not there', { host: 'nowhere.invalid' }, /ENOTFOUND|EAI_AGAIN/],
      ['over TLS that it does not speak', { tls: true }, /whether the server uses TLS/],
    ])('%s is unreachable, with advice on what to check', async (_, change, message) => {
      const health = await probe(change);
      expect(health).toMatchObject({ ok: false, reason: 'StoreUnreachable' });
      expect(health).toMatchObject({ message: expect.stringMatching(message) });
    });

    test('is unreachable within two seconds when frozen', async () => {
      const thaw = server.freeze();
      const health = await probe();
      thaw();
      expect(health).toMatchObject({ ok: false, reason: 'StoreUnreachable' });
    });

    test('evicts when its policy is not noeviction', async () => {
      const other = await startRedis(['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru']);
      onTestFinished(other.stop);
      const health = await probeRedis(other.connection, 'instance-1');
      expect(health).toMatchObject({ ok: false, reason: 'StoreEvicts' });
      expect(health).toMatchObject({ message: expect.stringMatching(/allkeys-lru.*set it to noeviction/) });
    });

    test('is healthy when its policy may not be read: the docs say what to check', async () => {
      const other = await startRedis(['--rename-command', 'CONFIG', '']);
      onTestFinished(other.stop);
      expect(await probeRedis(other.connection, 'instance-1')).toEqual({ ok: true });
    });

    test('is unreachable when it may not be written to', async () => {
      const other = await startRedis(['--replicaof', '127.0.0.1', '1']);
      onTestFinished(other.stop);
      const health = await probeRedis(other.connection, 'instance-1');
      expect(health).toMatchObject({ ok: false, message: expect.stringMatching(/one primary/) });
    });
  });
});
