import { expect, test } from 'vitest';
import { INHERITED_NAMES } from '../../../test/support/inherited-names.ts';
import { type StoreConnection, storeName } from '../ports/backends.ts';
import { toDatabaseConnection, toServiceHost, toStoreConnection, withServiceHosts } from '../rules/connections.ts';

const encode = (data: Record<string, string>) =>
  Object.fromEntries(Object.entries(data).map(([name, value]) => [name, Buffer.from(value).toString('base64')]));

const database = {
  nameRef: 'db',
  keys: { hostSecret: 'h', passwordSecret: 'p', usernameSecret: 'u', dbnameSecret: 'd' },
};
const store = { nameRef: 'kv', keys: { hostSecret: 'h', portSecret: 'n', passwordSecret: 'p' } };
const good = { h: 'db.example', u: 'me', p: '', d: 'gateway' };

test.each([
  ['db.example', 'db.example', 5432],
  ['db.example:6000', 'db.example', 6000],
  ['[::1]:6000', '::1', 6000],
  ['db.example\n', 'db.example', 5432],
])('a database host %j means %s port %i', (text, host, port) => {
  const read = toDatabaseConnection(database, encode({ ...good, h: text }));
  expect(read).toEqual({ ok: true, value: { host, port, username: 'me', password: '', dbname: 'gateway' } });
});

test.each(['', 'postgres://db', 'db:', 'db:0', 'db:70000', 'a:b:c'])('a database host %j is refused by name', (h) => {
  const read = toDatabaseConnection(database, encode({ ...good, h }));
  expect(read.ok === false && read.failure.key).toBe('h');
});

test('a missing key is named', () => {
  const { d: _, ...rest } = good;
  const read = toDatabaseConnection(database, encode(rest));
  expect(read.ok === false && read.failure).toMatchObject({ reason: 'SecretKeyMissing', key: 'd' });
});

const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----';
const KEY = '-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----';

/** The Secret has each value under a key of its own, such as `my-sslmode`, which the mapping names. */
const toOwn = (values: Record<string, string>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`my-${name}`, value]));
const mapping = (values: object) => ({
  ...database,
  keys: { ...database.keys, ...Object.fromEntries(Object.keys(values).map((name) => [`${name}Secret`, `my-${name}`])) },
});

test.each([
  [{}, {}],
  [{ sslmode: '', sslrootcert: '' }, {}],
  [{ sslmode: 'disable' }, { sslmode: 'disable' }],
  [{ sslmode: 'prefer\n' }, { sslmode: 'prefer' }],
  [{ sslmode: 'require' }, { sslmode: 'require' }],
  [
    { sslmode: 'require', sslrootcert: `${PEM}\n` },
    { sslmode: 'require', sslrootcert: PEM },
  ],
  [
    { sslmode: 'verify-ca', sslrootcert: PEM },
    { sslmode: 'verify-ca', sslrootcert: PEM },
  ],
  [
    { sslmode: 'verify-full', sslrootcert: PEM },
    { sslmode: 'verify-full', sslrootcert: PEM },
  ],
  [
    { sslmode: 'verify-full', sslrootcert: 'system\n' },
    { sslmode: 'verify-full', sslrootcert: 'system' },
  ],
  [{ sslrootcert: 'system' }, { sslmode: 'verify-full', sslrootcert: 'system' }],
  [
    { sslmode: 'require', sslcert: `${PEM}\n`, sslkey: `${KEY}\n` },
    { sslmode: 'require', sslcert: PEM, sslkey: KEY },
  ],
])('TLS values %j of a database Secret mean %j', (entries, tls) => {
  const read = toDatabaseConnection(mapping(entries), encode({ ...good, ...toOwn(entries) }));
  const plain = { host: 'db.example', port: 5432, username: 'me', password: '', dbname: 'gateway' };
  expect(read).toEqual({ ok: true, value: { ...plain, ...tls } });
});

test('values of a database Secret that are not mapped are not read', () => {
  const read = toDatabaseConnection(database, encode({ ...good, sslmode: 'verify-full', sslrootcert: 'system' }));
  expect(read.ok && Object.keys(read.value)).toEqual(['host', 'port', 'username', 'password', 'dbname']);
});

test.each(['sslmode', 'sslrootcert', 'sslcert', 'sslkey'])('a mapped key for %s that is missing is named', (name) => {
  const all = { sslmode: 'verify-full', sslrootcert: PEM, sslcert: PEM, sslkey: KEY };
  const { [name]: _, ...rest } = all as Record<string, string>;
  const read = toDatabaseConnection(mapping(all), encode({ ...good, ...toOwn(rest) }));
  expect(read.ok === false && read.failure).toMatchObject({ reason: 'SecretKeyMissing', key: `my-${name}` });
});

test.each<[Record<string, string>, string]>([
  [{ sslmode: 'allow' }, 'my-sslmode'],
  [{ sslmode: 'Require' }, 'my-sslmode'],
  [{ sslmode: 'verify-ca' }, 'my-sslmode'],
  [{ sslmode: 'verify-full', sslrootcert: '' }, 'my-sslrootcert'],
  [{ sslmode: 'verify-full', sslrootcert: '/etc/ssl/root.crt' }, 'my-sslrootcert'],
  [{ sslmode: 'verify-full', sslrootcert: `${PEM}\n`.repeat(2000) }, 'my-sslrootcert'],
  [{ sslmode: 'verify-ca', sslrootcert: 'system' }, 'my-sslmode'],
  [{ sslmode: 'require', sslrootcert: 'system' }, 'my-sslmode'],
  [{ sslmode: 'prefer', sslrootcert: PEM }, 'my-sslmode'],
  [{ sslrootcert: PEM }, 'my-sslrootcert'],
  [{ sslmode: 'require', sslcert: 'x', sslkey: KEY }, 'my-sslcert'],
  [{ sslmode: 'require', sslcert: PEM, sslkey: PEM }, 'my-sslkey'],
  [{ sslmode: 'require', sslcert: PEM, sslkey: KEY.replaceAll('PRIVATE', 'ENCRYPTED PRIVATE') }, 'my-sslkey'],
])('TLS values %j of a database Secret, which would verify less than they say, are refused at %s', (values, key) => {
  const read = toDatabaseConnection(mapping(values), encode({ ...good, ...toOwn(values) }));
  expect(read.ok === false && read.failure).toMatchObject({ reason: 'SecretKeyInvalid', key });
});

test.each([
  [{ h: 'memory' }, { type: 'memory' }],
  [
    { h: 'kv', n: '6379', p: 'x' },
    { type: 'redis', host: 'kv', port: 6379, password: 'x', tls: false },
  ],
  [
    { h: 'rediss://kv', n: '6380', p: '' },
    { type: 'redis', host: 'kv', port: 6380, password: '', tls: true },
  ],
  [
    { h: 'a:26379', n: '6379', p: '' },
    { type: 'redis', host: 'a', port: 26379, password: '', tls: false },
  ],
  [
    { h: 'kv:6379\n', p: '' },
    { type: 'redis', host: 'kv', port: 6379, password: '', tls: false },
  ],
  [
    { h: 'rediss://a:26379,[fd00::5]:7', p: '' },
    {
      type: 'redis',
      host: 'a',
      port: 26379,
      otherServers: [{ host: 'fd00::5', port: 7 }],
      password: '',
      tls: true,
    },
  ],
  [
    { h: 'rediss://a:26379,b,[fd00::5]:7', n: '6379', p: '' },
    {
      type: 'redis',
      host: 'a',
      port: 26379,
      otherServers: [
        { host: 'b', port: 6379 },
        { host: 'fd00::5', port: 7 },
      ],
      password: '',
      tls: true,
    },
  ],
  [
    { h: 'https://eu1.example', p: 't' },
    { type: 'upstash', url: 'https://eu1.example', token: 't' },
  ],
  [
    { h: 'http://127.0.0.1:80', p: 't' },
    { type: 'upstash', url: 'http://127.0.0.1:80', token: 't' },
  ],
])('a store secret %j is %j', (data, value) => {
  expect(toStoreConnection(store, encode(data))).toEqual({ ok: true, value });
});

test.each([
  [{ h: 'kv', p: '' }, 'n'],
  [{ h: 'rediss://kv', p: '' }, 'n'],
  [{ h: 'a:26379,b', p: '' }, 'n'],
  [{ h: '[fd00::5]', p: '' }, 'n'],
  [{ h: 'fd00::5', p: '' }, 'n'],
  [{ h: 'kv:6379' }, 'p'],
  [{ h: 'kv:70000', p: '' }, 'h'],
  [{ h: 'kv', n: 'x', p: '' }, 'n'],
  [{ h: 'kv/0', n: '1', p: '' }, 'h'],
  [{ h: 'a,', n: '1', p: '' }, 'h'],
  [{ h: 'a:0,b', n: '1', p: '' }, 'h'],
  [{ h: 'a,rediss://b', n: '1', p: '' }, 'h'],
  [{ h: 'fd00::5', n: '1', p: '' }, 'h'],
  [{ h: Array(11).fill('a').join(','), n: '1', p: '' }, 'h'],
  [{ h: 'http://eu1.example', p: 't' }, 'h'],
  [{ h: 'https://eu1.example' }, 'p'],
])('a store secret %j is refused at key %s', (data, key) => {
  const read = toStoreConnection(store, encode(data));
  expect(read.ok === false && read.failure.key).toBe(key);
});

const mapped = {
  ...store,
  keys: {
    ...store.keys,
    usernameSecret: 'my-user',
    caSecret: 'my-ca',
    clientCertificateSecret: 'my-cert',
    clientKeySecret: 'my-key',
  },
};
const tlsStore = { h: 'rediss://kv', n: '6380', p: 'x', 'my-user': 'u', 'my-ca': PEM, 'my-cert': PEM, 'my-key': KEY };

test('a store Secret has an ACL user, authorities and a client certificate, if they are mapped', () => {
  const value = { type: 'redis', host: 'kv', port: 6380, password: 'x', username: 'u', tls: true };
  const certificates = { ca: PEM, clientCertificate: PEM, clientKey: KEY };
  expect(toStoreConnection(mapped, encode(tlsStore))).toEqual({ ok: true, value: { ...value, ...certificates } });
});

test.each([
  ...['my-user', 'my-ca', 'my-cert', 'my-key'].map((key) => ['SecretKeyMissing', key, { [key]: undefined }] as const),
  ['SecretKeyInvalid', 'h', { h: 'kv' }],
  ['SecretKeyInvalid', 'my-ca', { 'my-ca': 'system' }],
  ['SecretKeyInvalid', 'my-ca', { 'my-ca': `${PEM}\n`.repeat(2000) }],
  ['SecretKeyInvalid', 'my-cert', { 'my-cert': KEY }],
  ['SecretKeyInvalid', 'my-key', { 'my-key': PEM }],
] as const)('a mapped key of a store Secret that cannot be used is %s at %s', (reason, key, change) => {
  const data = Object.fromEntries(Object.entries({ ...tlsStore, ...change }).filter(([, text]) => text !== undefined));
  expect(toStoreConnection(mapped, encode(data as Record<string, string>))).toMatchObject({ failure: { reason, key } });
});

const sentinels = {
  ...store,
  keys: { ...store.keys, sentinelMasterSecret: 'my-master', sentinelPasswordSecret: 'my-pw' },
};
const sentinelData = { h: 'a,b', n: '26379', p: 'x', 'my-master': 'main\n', 'my-pw': 'y' };

test('a store Secret names the primary of Sentinels, and their password, if they are mapped', () => {
  const otherServers = [{ host: 'b', port: 26379 }];
  const value = { type: 'redis', host: 'a', port: 26379, otherServers, password: 'x', tls: false };
  const expected = { ...value, sentinelMaster: 'main', sentinelPassword: 'y' };
  expect(toStoreConnection(sentinels, encode(sentinelData))).toEqual({ ok: true, value: expected });
  expect(storeName(expected as StoreConnection)).toBe('redis a:26379,b:26379 main');
});

test.each([
  ['SecretKeyMissing', 'my-master', { 'my-master': undefined }],
  ['SecretKeyMissing', 'my-pw', { 'my-pw': undefined }],
  ['SecretKeyInvalid', 'my-master', { 'my-master': '' }],
] as const)('a key for Sentinels that cannot be used is %s at %s', (reason, key, change) => {
  const data = Object.entries({ ...sentinelData, ...change }).filter(([, text]) => text !== undefined);
  const read = toStoreConnection(sentinels, encode(Object.fromEntries(data) as Record<string, string>));
  expect(read).toMatchObject({ failure: { reason, key } });
});

test('every host of a store is one of the namespace, if it has no dot', () => {
  const read = toStoreConnection(store, encode({ h: 'a,b.example:7', n: '6379', p: '' }));
  expect(read.ok && withServiceHosts(read.value, 'apps')).toMatchObject({
    host: 'a.apps.svc',
    otherServers: [{ host: 'b.example', port: 7 }],
  });
});

test('Upstash and counters in memory need no mapped key', () => {
  expect(toStoreConnection(mapped, encode({ h: 'memory' }))).toMatchObject({ ok: true });
  expect(toStoreConnection(mapped, encode({ h: 'https://eu1.example', p: 't' }))).toMatchObject({ ok: true });
});

test.each([
  ['postgres', 'postgres.apps.svc'],
  ['cluster-rw', 'cluster-rw.apps.svc'],
  ['cluster-rw.apps', 'cluster-rw.apps'],
  ['db.example.com', 'db.example.com'],
  ['localhost', 'localhost'],
  ['10.0.0.7', '10.0.0.7'],
  ['::1', '::1'],
])('in the namespace apps the host %s is %s', (host, found) => {
  expect(toServiceHost(host, 'apps')).toBe(found);
});

test.each(INHERITED_NAMES)('a Secret has no key %s unless it has one of its own', (name) => {
  for (const key of ['hostSecret', 'usernameSecret', 'passwordSecret', 'dbnameSecret', 'portSecret']) {
    const read = toDatabaseConnection({ ...database, keys: { ...database.keys, [key]: name } }, encode(good));
    expect(read).toMatchObject({ failure: { reason: 'SecretKeyMissing', key: name } });
  }
  const full = { h: 'kv', n: '6379', p: '' };
  for (const key of ['hostSecret', 'portSecret', 'passwordSecret']) {
    const read = toStoreConnection({ ...store, keys: { ...store.keys, [key]: name } }, encode(full));
    expect(read).toMatchObject({ failure: { reason: 'SecretKeyMissing', key: name } });
  }
  const own = JSON.parse(JSON.stringify(encode(good)).replace('"h":', `"${name}":`));
  const there = { ...database, keys: { ...database.keys, hostSecret: name } };
  expect(toDatabaseConnection(there, own)).toMatchObject({ value: { host: 'db.example' } });
});
