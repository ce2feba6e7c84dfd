import { expect, test } from 'vitest';
import type { KubeObject } from '../object.ts';
import type { Ownership } from './ownership.ts';
import { createStore } from './store.ts';

const key = (name: string) => ({ resource: '/configmaps', namespace: 'default', name });
const object = (name: string, data?: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'default', name },
  data,
});

/** A database that remembers how many rows each batch had. */
function createDatabase(): Ownership & { batches: number[] } {
  const batches: number[] = [];
  return {
    batches,
    ready: async () => 1,
    async query(_text, values = []) {
      if (Array.isArray(values[0])) batches.push(values[0].length);
      return [];
    },
    release: async () => undefined,
  };
}

test('writes that come together go in one statement, but two on one object in two', async () => {
  const database = createDatabase();
  const store = createStore(database);
  await store.start();
  await Promise.all([store.write({ do: 'create', ...key('first'), object: object('first') })]);
  const written = await Promise.all([
    store.write({ do: 'create', ...key('a'), object: object('a') }),
    store.write({ do: 'create', ...key('b'), object: object('b') }),
    store.write({ do: 'create', ...key('a'), object: object('a') }),
  ]);
  expect(written.map((one) => (typeof one === 'string' ? one : one.object.metadata.resourceVersion))).toEqual([
    '2',
    '3',
    'exists',
  ]);
  expect(database.batches).toEqual([1, 2]);
});

test('a write on anything but the present version is not done', async () => {
  const store = createStore(createDatabase());
  await store.start();
  await store.write({ do: 'create', ...key('a'), object: object('a') });
  expect(await store.write({ do: 'update', ...key('a'), object: object('a', { x: 'y' }), from: '7' })).toBe('changed');
  expect(await store.write({ do: 'delete', ...key('b'), object: object('b'), from: '1' })).toBe('missing');
  expect(await store.write({ do: 'update', ...key('a'), object: object('a', { x: 'y' }), from: '1' })).toMatchObject({
    object: { metadata: { resourceVersion: '2' } },
  });
});

test('a list at an earlier revision shows what was there then', async () => {
  const store = createStore(createDatabase());
  await store.start();
  await store.write({ do: 'create', ...key('a'), object: object('a', { v: '1' }) });
  await store.write({ do: 'create', ...key('b'), object: object('b') });
  await store.write({ do: 'update', ...key('a'), object: object('a', { v: '2' }), from: '1' });
  await store.write({ do: 'delete', ...key('b'), object: object('b'), from: '2' });
  await store.write({ do: 'create', ...key('c'), object: object('c') });
  const at = (revision: number) =>
    store.listAt(revision, '/configmaps')?.map(({ metadata, data }) => [metadata.name, data]);
  expect(at(5)).toEqual([
    ['a', { v: '2' }],
    ['c', undefined],
  ]);
  expect(at(2)).toEqual([
    ['a', { v: '1' }],
    ['b', undefined],
  ]);
  expect(at(0)).toEqual([]);
});

test('who subscribed hears of each write, in order, and of nothing that was not written', async () => {
  const database = createDatabase();
  const store = createStore(database);
  await store.start();
  const heard: Array<[string, number]> = [];
  store.subscribe(({ type, revision }) => void heard.push([type, revision]));
  await store.write({ do: 'create', ...key('a'), object: object('a') });
  database.query = async () => {
    throw new Error('the database is gone');
  };
  await expect(store.write({ do: 'create', ...key('b'), object: object('b') })).rejects.toThrow('the database is gone');
  database.query = async () => [];
  await store.write({ do: 'delete', ...key('a'), object: object('a'), from: '1' });
  expect(heard).toEqual([
    ['ADDED', 1],
    ['DELETED', 2],
  ]);
});
