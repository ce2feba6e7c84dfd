// Checks of Secrets take little time, whatever a tenant writes into a Secret that hundreds of entries name.
import { expect, test } from 'vitest';
import { fromBase64, toBase64 } from '../json/base64.ts';
import { toDatabaseConnection, toStoreConnection } from '../rules/connections.ts';
import { checkCredentials, toReadSecret } from '../rules/secrets.ts';

const entry = { index: 0, identifier: 'm', gatewayParams: { model: 'openai/x' } } as const;

const secretOf = (data: Record<string, string>) => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'n' } },
  data,
});

test('hundreds of entries enumerate the keys of a Secret once, and read each value once, whether it exists or not', () => {
  const work = { enumerated: 0, read: 0 };
  const data = new Proxy<Record<string, string>>(
    { apiKey: toBase64('sk'), apiBase: toBase64('http://a') },
    {
      ownKeys: (target) => {
        work.enumerated += 1;
        return Reflect.ownKeys(target);
      },
      get: (target, key) => {
        work.read += 1;
        return Reflect.get(target, key);
      },
    },
  );
  const secret = toReadSecret(secretOf(data), true);
  const check = (keys: Record<string, string>) => checkCredentials({ nameRef: 's', keys }, entry, 'n', secret);
  const fits = { apiKey: 'apiKey', apiBase: 'apiBase', more: 'apiKey' };
  expect(Array.from({ length: 500 }, () => check(fits)).flat()).toEqual([]);
  const missing = Array.from({ length: 500 }, () => check({ apiKey: 'token' })).flat();
  expect(missing).toHaveLength(500);
  expect(missing[0]).toMatchObject({
    ...{ rule: 'SecretKeyMissing', message: expect.stringMatching(/ \(it has apiBase, apiKey\)$/) },
  });
  expect(work).toEqual({ enumerated: 1, read: 2 });
});

test('the names of the keys of a Secret are cut in messages', () => {
  const secret = toReadSecret(secretOf({ ['x'.repeat(253)]: '' }), true);
  const [finding] = checkCredentials({ nameRef: 's', keys: { apiKey: 'apiKey' } }, entry, 'n', secret);
  expect(finding?.message).toContain(`(it has ${'x'.repeat(63)}…)`);
});

test('a value that is longer than any credential is refused with its length and the limit', () => {
  const secret = toReadSecret(secretOf({ apiKey: toBase64('k'.repeat(20_000)) }), true);
  expect(checkCredentials({ nameRef: 's', keys: { apiKey: 'apiKey' } }, entry, 'n', secret)).toMatchObject([
    {
      rule: 'SecretKeyInvalid',
      path: 'spec.models[0].modelCredentials.keys.apiKey',
      message: expect.stringContaining('of Secret "s" has 20000 characters, but at most 16384 are allowed'),
    },
  ]);
});

test.each(['host', 'username', 'password', 'dbname'])('a %s of more than 8 KiB is no part of a connection', (long) => {
  const keys = {
    ...{ hostSecret: 'host', usernameSecret: 'username', passwordSecret: 'password', dbnameSecret: 'dbname' },
    portSecret: 'port',
  };
  const data = (length: number) => ({
    ...{ host: 'aA==', username: 'dQ==', password: '', dbname: 'ZA==', port: toBase64('5432') },
    [long]: toBase64('x'.repeat(length)),
  });
  const ref = { nameRef: 's', keys };
  const problem = { ok: false, failure: { reason: 'SecretKeyInvalid', key: long } };
  expect(toDatabaseConnection(ref, data(8192))).toMatchObject({ ok: true });
  expect(toDatabaseConnection(ref, data(9000))).toMatchObject(problem);
  if (long === 'host' || long === 'password') expect(toStoreConnection(ref, data(9000))).toMatchObject(problem);
});

test('base64 of any text is read again, however long it is', () => {
  const text = 'ä€𝄞 '.repeat(100_000);
  expect(fromBase64(toBase64(text))).toBe(text);
});
