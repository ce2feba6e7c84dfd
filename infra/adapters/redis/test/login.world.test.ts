// Logins and certificates: what a wrong one says.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { whyNoRedis } from '../../../../test/support/redis.ts';
import { type StrictRedis, startStrictRedis } from '../../../../test/support/redis-login.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { probeShared } from '../probe.ts';

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
    ['the authorities of Node', { ca: undefined }, /certificate/],
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
});
