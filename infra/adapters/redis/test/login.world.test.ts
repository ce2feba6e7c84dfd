// Logins and certificates: what a wrong one says.
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { reasonOf } from '#core/failure/error-text.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { whyNoRedis } from '../../../../test/support/redis.ts';
import { type StrictRedis, startStrictRedis } from '../../../../test/support/redis-login.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { probeShared } from '../probe.ts';
import { openRedis } from '../tcp.ts';

describeUnless(whyNoRedis(), 'a Redis with an ACL user, a private authority and client certificates', () => {
  let redis: StrictRedis;
  beforeAll(async () => {
    redis = await startStrictRedis();
  });
  afterAll(() => redis?.server.stop());

  test('passes the probe', async () => {
    expect(await probeShared(redis.connection, randomUUID())).toEqual({ ok: true });
  });

  test.each([
    ['another password', { password: 'wrong' }, /WRONGPASS.*: check the user name and the password/],
    ['another user', { username: 'nobody' }, /WRONGPASS.*: check the user name and the password/],
    [
      'the authorities of Node',
      { ca: undefined },
      /certificate.*: check the key of the Secret of redisSecretRef that `caSecret` maps/,
    ],
    [
      'no client certificate',
      { clientCertificate: undefined, clientKey: undefined },
      /or requires a client certificate/,
    ],
  ])('with %s the probe says what to check', async (_, change, message) => {
    const connection = Object.fromEntries(
      Object.entries({ ...redis.connection, ...change }).filter(([, value]) => value !== undefined),
    ) as unknown as StrictRedis['connection'];
    expect(await probeShared(connection, randomUUID())).toEqual({
      ok: false,
      reason: 'StoreUnreachable',
      message: expect.stringMatching(message),
    });
  });

  test('a rotated password is read again when a connection is refused; open connections stay', async () => {
    const admin = new Redis({ host: '127.0.0.1', port: redis.server.connection.port, protocol: 2 });
    onTestFinished(() => admin.disconnect());
    let password = 'change-me';
    let reads = 0;
    const readLogin = () => {
      reads += 1;
      return { ...redis.connection, password };
    };
    const store = openRedis(redis.connection, { log: createMemoryLog(), readLogin });
    onTestFinished(store.close);
    const ping = () => store.evaluate('return 1', '{uid}:meta', []);
    expect(await ping()).toBe(1);
    await admin.call('ACL', 'SETUSER', 'gateway', 'resetpass', '>another');
    expect(await ping()).toBe(1);
    expect(reads).toBe(0);
    await admin.call('CLIENT', 'KILL', 'USER', 'gateway');
    await eventually(
      () => ping().then(String, reasonOf),
      (outcome) => outcome !== '1',
    );
    password = 'another';
    expect(
      await eventually(
        () => ping().then(String, reasonOf),
        (outcome) => outcome === '1',
      ),
    ).toBe('1');
    await admin.call('ACL', 'SETUSER', 'gateway', 'resetpass', '>change-me');
  });

  test('a wrong password in the Secret does not replace the one that Redis accepts', async () => {
    const admin = new Redis({ host: '127.0.0.1', port: redis.server.connection.port, protocol: 2 });
    onTestFinished(() => admin.disconnect());
    const log = createMemoryLog();
    const readLogin = () => ({ ...redis.connection, password: 'wrong' });
    const store = openRedis(redis.connection, { log, readLogin });
    onTestFinished(store.close);
    const ping = () => store.evaluate('return 1', '{uid}:meta', []);
    expect(await ping()).toBe(1);
    const isConnectedAgain = () => log.lines.some(({ message }) => message === 'the counter store is connected again');
    await admin.call('CLIENT', 'KILL', 'USER', 'gateway');
    await eventually(isConnectedAgain, (isConnected) => isConnected);
    expect(await ping()).toBe(1);
    // Neither is accepted: the log has the reason.
    await admin.call('ACL', 'SETUSER', 'gateway', 'resetpass', '>another');
    await admin.call('CLIENT', 'KILL', 'USER', 'gateway');
    await eventually(
      () => log.lines.some(({ fields }) => String(fields.why).startsWith('WRONGPASS')),
      (isLogged) => isLogged,
    );
    await admin.call('ACL', 'SETUSER', 'gateway', 'resetpass', '>change-me');
    await eventually(
      () => ping().then(String, reasonOf),
      (outcome) => outcome === '1',
    );
  });
});
