import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { KubeObject } from '../../object.ts';
import { createStore, type StoreOptions } from '../../store/store.ts';

const folder = mkdtempSync(join(tmpdir(), 'store-'));
afterAll(() => rmSync(folder, { recursive: true }));

const key = (name: string) => ({ resource: '/configmaps', namespace: 'default', name });
const object = (name: string, data?: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'default', name },
  data,
});

const errors: unknown[] = [];
const log = { warn: () => undefined, error: (message: string, fields?: object) => void errors.push([message, fields]) };

function openStore(options: Omit<StoreOptions, 'log'> = { file: ':memory:' }) {
  const store = createStore({ ...options, log });
  store.open();
  return store;
}

test('a write on anything but the present version is not done', () => {
  const store = openStore();
  store.write({ do: 'create', ...key('a'), object: object('a') });
  expect(store.write({ do: 'create', ...key('a'), object: object('a') })).toBe('exists');
  expect(store.write({ do: 'update', ...key('a'), object: object('a', { x: 'y' }), from: '7' })).toBe('changed');
  expect(store.write({ do: 'delete', ...key('b'), object: object('b'), from: '1' })).toBe('missing');
  expect(store.write({ do: 'update', ...key('a'), object: object('a', { x: 'y' }), from: '1' })).toMatchObject({
    object: { metadata: { resourceVersion: '2' } },
  });
});

test('a file keeps objects to the letter, and the changes that watches resume over', () => {
  const file = join(folder, 'kept.db');
  const first = openStore({ file });
  const odd = { '\u0000': '\ud800', __proto__: null, b: 1, a: 2 };
  first.write({ do: 'create', ...key('a'), object: object('a', odd) });
  first.write({ do: 'update', ...key('a'), object: object('a', { v: '2' }), from: '1' });
  first.write({ do: 'create', ...key('b'), object: object('b', odd) });
  first.write({ do: 'delete', ...key('a'), object: object('a', { v: '2' }), from: '2' });
  const [events, kept] = [first.since(1), first.get(key('b'))];
  first.close();
  const second = openStore({ file });
  expect(second.revision()).toBe(4);
  expect(second.since(1)).toEqual(events);
  expect(JSON.stringify(second.get(key('b')))).toBe(JSON.stringify(kept));
  expect(second.get(key('a'))).toBeUndefined();
  second.close();
});

test('the log does not grow beyond its length, in memory or in the file', () => {
  const file = join(folder, 'compacted.db');
  const store = openStore({ file, historyLength: 10 });
  store.write({ do: 'create', ...key('a'), object: object('a') });
  for (let from = 1; from < 100; from++) {
    store.write({ do: 'update', ...key('a'), object: object('a', { from }), from: String(from) });
  }
  expect(store.since(1)).toBeUndefined();
  store.close();
  const reopened = openStore({ file, historyLength: 10 });
  expect(reopened.since(reopened.compactedRevision())?.length).toBeLessThanOrEqual(12);
  reopened.close();
});

test('a store tells what came after a revision, and that it no longer knows', () => {
  const store = openStore({ file: ':memory:', historyLength: 100 });
  for (let i = 1; i <= 111; i++) store.write({ do: 'create', ...key(`n${i}`), object: object(`n${i}`) });
  expect(store.since(109)?.map(({ revision }) => revision)).toEqual([110, 111]);
  expect(store.since(111)).toEqual([]);
  expect(store.since(0)).toHaveLength(111);
  store.write({ do: 'create', ...key('last'), object: object('last') });
  expect(store.compactedRevision()).toBe(11);
  expect(store.since(10)).toBeUndefined();
  expect(store.since(11)).toHaveLength(101);
  store.close();
});

test('a file belongs to one store at a time, and to one user', () => {
  const file = join(folder, 'taken.db');
  const store = openStore({ file });
  expect(() => openStore({ file })).toThrow(`another API server runs on ${file}; stop it first`);
  expect(store.write({ do: 'create', ...key('a'), object: object('a') })).toMatchObject({ object: {} });
  expect(statSync(file).mode & 0o077).toBe(0);
  store.close();
  openStore({ file }).close();
});

test('a subscriber hears of each write, in order, and of nothing that was not written', () => {
  const store = openStore();
  const heard: Array<[string, number]> = [];
  store.subscribe(({ type, revision }) => void heard.push([type, revision]));
  store.write({ do: 'create', ...key('a'), object: object('a') });
  const broken = Object.assign(object('b'), { toJSON: () => new Date(Number.NaN).toISOString() });
  expect(() => store.write({ do: 'create', ...key('b'), object: broken })).toThrow();
  store.write({ do: 'delete', ...key('a'), object: object('a'), from: '1' });
  expect(heard).toEqual([
    ['ADDED', 1],
    ['DELETED', 2],
  ]);
});

test('a subscriber that fails takes no write back and keeps no other from hearing of it', () => {
  const store = openStore();
  const heard: string[] = [];
  const error = new Error('broken');
  store.subscribe(() => {
    throw error;
  });
  store.subscribe(({ name }) => void heard.push(name));
  expect(store.write({ do: 'create', ...key('a'), object: object('a') })).toMatchObject({ object: {} });
  expect(store.get(key('a'))).toBeDefined();
  expect(heard).toEqual(['a']);
  expect(errors).toEqual([['API server: a listener failed at a change', { ...key('a'), error }]]);
});
