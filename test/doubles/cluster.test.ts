import { beforeEach, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { describeCluster } from '#core/ports/test/cluster.promises.ts';
import { createMemoryCluster, type MemoryCluster } from './cluster.ts';

const ids = () => {
  let next = 0;
  return {
    next: () => {
      next += 1;
      return `00000000-0000-7000-8000-${String(next).padStart(12, '0')}`;
    },
  };
};
const clock = { now: () => Date.parse('2026-11-21T12:00:00.250Z') };
const make = () => createMemoryCluster({ clock, ids: ids() });

describeCluster('the cluster in memory', async () => ({ cluster: make(), namespace: 'team-a' }));

const map = (name: string, owner?: KubeObject, finalizers: string[] = []): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name,
    namespace: 'team-a',
    finalizers,
    ...(owner === undefined
      ? {}
      : {
          ownerReferences: [
            { apiVersion: 'v1', kind: 'ConfigMap', name: owner.metadata.name, uid: owner.metadata.uid ?? '' },
          ],
        }),
  },
});

let cluster: MemoryCluster;
beforeEach(() => {
  cluster = make();
});
const create = async (object: KubeObject) => {
  const written = await cluster.create(RESOURCES.configMaps, object);
  if (!written.ok) throw new Error(written.message);
  return written.object;
};
const names = () => cluster.objects().map(({ metadata }) => metadata.name);

test('objects whose owners are all gone are collected, their own dependants too, finalizers hold them', async () => {
  const owner = await create(map('owner'));
  const child = await create(map('child', owner));
  await create(map('grandchild', child));
  await create(map('held', owner, ['example.com/hold']));
  expect(cluster.collectGarbage()).toBe(0);
  await cluster.delete(RESOURCES.configMaps, 'team-a', 'owner', owner.metadata.uid ?? '');
  expect(cluster.collectGarbage()).toBe(3);
  expect(names()).toEqual(['held']);
});

test('a deleted namespace deletes its objects', async () => {
  const space = await cluster.create(RESOURCES.namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'team-a' },
  });
  await create(map('one'));
  await cluster.delete(RESOURCES.namespaces, undefined, 'team-a', (space.ok && space.object.metadata.uid) || '');
  expect(names()).toEqual(['team-a', 'one']);
  cluster.collectGarbage();
  expect(names()).toEqual([]);
});

test('calls are counted, and a fault can be set before or after a write', async () => {
  cluster.inject(({ verb, name }) =>
    verb === 'create' && name === 'b' ? 'lost' : name === 'c' ? 'forbidden' : undefined,
  );
  await create(map('a'));
  await expect(create(map('b'))).rejects.toThrow(/was lost/);
  expect(await cluster.create(RESOURCES.configMaps, map('c'))).toMatchObject({ ok: false, refusal: 'forbidden' });
  cluster.inject(() => {
    throw new Error('no route to host');
  });
  await expect(cluster.get(RESOURCES.configMaps, 'team-a', 'a')).rejects.toThrow('no route to host');
  expect(names()).toEqual(['a', 'b']);
  expect(cluster.calls.map(({ verb }) => verb)).toEqual(['create', 'create', 'create', 'get']);
});

test('a stored object cannot be changed from outside', async () => {
  const object = await create(map('a'));
  expect(() => Object.assign(object.metadata, { name: 'b' })).toThrow(TypeError);
});
