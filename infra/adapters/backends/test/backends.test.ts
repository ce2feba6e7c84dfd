import { expect, test } from 'vitest';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { settleDown } from '../../../../test/gateway/time.ts';
import type { Database } from '../../postgres/database.ts';
import { createBackends } from '../backends.ts';

const SHARED = { type: 'redis', host: 'redis', port: 6379, password: '', tls: false } as const;
const at = (host: string, password = 'p'): DatabaseConnection => ({
  host,
  port: 5432,
  username: 'u',
  password,
  dbname: 'd',
});
const instance = (uid: string) => ({ uid, namespace: 'team-a', name: uid });
const MINUTE = 60_000;

/** Flushes and maintenance that end when they are told to. */
function underTest() {
  const begun: string[] = [];
  const maintained: string[] = [];
  let isOver: () => Promise<void> = async () => undefined;
  const ends = new Map<string, (error?: Error) => void>();
  const closed: string[] = [];
  const clock = { millis: 0, now: () => clock.millis };
  const backends = createBackends({
    clock,
    maxReplyBytes: 1000,
    openDatabase: ({ host, password }) => {
      const close = async () => void closed.push(`${host} ${password}`);
      const database = { host, close, disconnect: close, withWorkMemory: () => database };
      return database as unknown as Database;
    },
    flush: ({ uid }) =>
      new Promise((resolve, reject) => {
        begun.push(uid);
        ends.set(uid, (error) => (error === undefined ? resolve() : reject(error)));
      }),
    maintain: (database) => {
      maintained.push((database as unknown as { readonly host: string }).host);
      return isOver();
    },
    probeShared: async () => ({ ok: true }),
  });
  const maintainUntil = (over: () => Promise<void>) => {
    isOver = over;
    return backends.maintain();
  };
  return { backends, begun, maintained, maintainUntil, ends, closed, clock };
}

test('four instances of one database are flushed at a time, the others in order; another database is not waited for', async () => {
  const { backends, begun, ends } = underTest();
  const flushes = ['1', '2', '3', '4', '5', '6'].map((uid) => backends.flush(instance(uid), workOn('one')));
  const other = backends.flush(instance('7'), workOn('other'));
  await settleDown();
  expect(begun).toEqual(['1', '2', '3', '4', '7']);
  ends.get('3')?.(new Error('the store is away'));
  await expect(flushes[2]).rejects.toThrow('the store is away');
  await settleDown();
  expect(begun).toEqual(['1', '2', '3', '4', '7', '5']);
  for (const uid of ['1', '2', '4', '5', '7']) ends.get(uid)?.();
  await Promise.all([other, ...[0, 1, 3, 4].map((place) => flushes[place])]);
  expect(begun).toEqual(['1', '2', '3', '4', '7', '5', '6']);
  ends.get('6')?.();
  await flushes[5];
});

const workOn = (name: string) => ({ store: SHARED, database: at(name), cursor: { from: 0, move: () => undefined } });

test('a database with many instances is maintained once, after their flushes, and again only if there was a flush', async () => {
  const { backends, ends, maintained } = underTest();
  const flushOf = async (...uids: ReadonlyArray<string>) => {
    const flushes = uids.map((uid) => backends.flush(instance(uid), workOn('one')));
    for (const uid of uids) {
      await settleDown();
      ends.get(uid)?.();
    }
    await Promise.all(flushes);
  };
  await flushOf('1', '2', '3', '4', '5', '6');
  expect(maintained).toEqual([]);
  await backends.maintain();
  await backends.maintain();
  expect(maintained).toEqual(['one']);
  await flushOf('7');
  await backends.maintain();
  expect(maintained).toEqual(['one', 'one']);
});

test('databases that nobody has maintained when the time was over are the first next time', async () => {
  const { backends, ends, maintained, maintainUntil, clock } = underTest();
  const names = Array.from({ length: 10 }, (_, place) => `${place}`);
  const flushAll = async () => {
    const flushes = names.map((name) => backends.flush(instance(name), workOn(name)));
    await settleDown();
    for (const name of names) ends.get(name)?.();
    await Promise.all(flushes);
  };
  await flushAll();
  await maintainUntil(async () => {
    await settleDown();
    clock.millis += MINUTE;
  });
  expect(maintained).toEqual(names.slice(0, 8));
  maintained.length = 0;
  await flushAll();
  await maintainUntil(async () => undefined);
  expect(maintained).toEqual([...names.slice(8), ...names.slice(0, 8)]);
});

test('the pool of a password that was rotated is closed when nobody has asked for it for ten minutes; others stay', async () => {
  const { backends, closed, clock } = underTest();
  const [other, kept] = [backends.database(at('other')), backends.database(at('one', 'new'))];
  backends.database(at('one', 'old'));
  for (let minute = 0; minute < 10; minute += 1, clock.millis += MINUTE) {
    expect(backends.database(at('one', 'new'))).toBe(kept);
    expect(backends.database(at('other'))).toBe(other);
    expect(closed).toEqual([]);
  }
  backends.database(at('one', 'new'));
  expect(closed).toEqual(['one old']);
  await backends.close();
  expect(closed).toEqual(['one old', 'other p', 'one new']);
});

test('of passwords that are rotated without end, few pools stay open; one that is asked for stays, and every one ends', async () => {
  const { backends, closed, clock } = underTest();
  const kept = backends.database(at('one'));
  for (let turn = 0; turn < 1000; turn += 1, clock.millis += 50) {
    backends.database(at('rotated', `${turn}`));
    expect(backends.database(at('one'))).toBe(kept);
  }
  expect(1001 - closed.length).toBe(128);
  expect(closed.slice(0, 2)).toEqual(['rotated 0', 'rotated 1']);
  await backends.close();
  expect(new Set(closed).size).toBe(1001);
});
