// Keys whose Secrets a run reads: which, how many, in what order.
import { serialize } from 'node:v8';
import { expect, test } from 'vitest';
import { MAX_KEYS, RESOURCES } from '#core/ports/cluster.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { createHarness, sha256 } from '../../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, PLATFORM } from '../../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../../limits.ts';
import type { ObserveContext } from '../../observe/context.ts';
import { createKeyShares } from '../../observe/key-shares.ts';
import { readKeys, selectKeys } from '../../observe/keys.ts';
import { toOwnObjectView } from '../../observe/objects.ts';
import { createCursors, createRoundRobin } from '../../round-robin.ts';
import { createWorld, unreadKey } from '../../world.ts';

const COUNT = 12_000;
const BATCH = 5000;

/** VirtualKeys that were edited. */
function createKeys(): Map<string, VirtualKey> {
  const keys = Array.from({ length: COUNT }, (_, index): [string, VirtualKey] => {
    const name = `key-${index}`;
    const { metadata, ...rest } = makeKey({}, name);
    const creationTimestamp = new Date(Date.UTC(2026, 0, 1) - index * 1000).toISOString();
    const own = toOwnObjectView({ ...rest, metadata: { ...metadata, uid: name, generation: 1, creationTimestamp } });
    return [`default/${name}`, own?.object as VirtualKey];
  });
  return new Map(keys);
}

/** The context of a run that has listed many keys, of which some are in its world. */
const createContext = (complete: 'all' | undefined, keys: Map<string, VirtualKey>) => {
  const { cluster, log } = createHarness();
  const deps = { cluster, log, hash: sha256 } as unknown as ObserveContext['deps'];
  const ofRun = {
    limits: PROCESS_LIMITS,
    roundRobin: createRoundRobin(createCursors(), { hash: sha256, now: 0, moves: true }),
  };
  const context = { deps, now: 0, all: { keys: { size: COUNT }, complete }, ...ofRun } as unknown as ObserveContext;
  const part = { path: 'default/main', shares: createKeyShares(keys.values(), PROCESS_LIMITS, ofRun.roundRobin) };
  const views = new Map([...keys].map(([path, key]) => [path, unreadKey(key)]));
  return { cluster, context, part, world: createWorld(PLATFORM, { keys: views }) };
};

test('if more keys changed than fit in a batch, each has its turn, whatever other keys change meanwhile', async () => {
  const keys = createKeys();
  const { cluster, context, part, world } = createContext('all', keys);
  let read = 0;
  cluster.inject(({ verb }) => {
    if (verb === 'get') read += 1;
    return undefined;
  });
  await readKeys(context, world, selectKeys(context, world, part));
  expect([...world.keys.keys()]).toEqual([...keys.keys()]);
  expect(read).toBe(BATCH);
  expect(world.deferred.size).toBe(COUNT - BATCH);
  // All of them stay changed, as if they were edited again before each run.
  const waiting = new Set(world.deferred);
  for (let run = 1; run < COUNT / BATCH; run += 1) {
    const shares = createKeyShares(keys.values(), PROCESS_LIMITS, context.roundRobin);
    const taken = selectKeys(context, world, { ...part, shares });
    expect(taken).toHaveLength(BATCH);
    for (const { metadata } of taken) waiting.delete(`VirtualKey/default/${metadata.name}`);
  }
  expect([...waiting]).toEqual([]);
});

test('while a database is not migrated yet, no key counts as changed because of it', async () => {
  const [path, key] = [...createKeys()][0] as [string, VirtualKey];
  const conditions = [{ type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '' }];
  const settled = { ...key, status: { observedGeneration: 1, keySecretRef: 'key-0-key', keyID: 'a', conditions } };
  const { context, part, world } = createContext(undefined, new Map([[path, settled as VirtualKey]]));
  expect(selectKeys(context, world, part)).toEqual([]);
  expect(world.keys.get(path)?.secret).toEqual({ state: 'unread' });
});

test('a Secret of 1 MB that many keys name is read once, and little of it is kept', async () => {
  const secretTemplate = { name: 'shared', labels: { app: 'chat' } };
  const owner = (index: number) => ({ apiVersion: 'v1', kind: 'Other', name: `o${index}`, uid: `o${index}` });
  const fill = (length: number) =>
    Object.fromEntries(Array.from({ length }, (_, index) => [`x${index}`, 'x'.repeat(60)]));
  const keys = new Map([...createKeys()].slice(0, 200));
  for (const [path, key] of keys) keys.set(path, { ...key, spec: { ...key.spec, secretTemplate } });
  const { cluster, context, world } = createContext('all', keys);
  await cluster.create(RESOURCES.secrets, {
    ...{ apiVersion: 'v1', kind: 'Secret' },
    metadata: {
      ...{ name: 'shared', namespace: 'default', labels: { ...fill(500), app: 'chat' }, annotations: fill(1500) },
      ownerReferences: Array.from({ length: 100 }, (_, index) => owner(index)),
    },
    data: { ...fill(MAX_KEYS), key: btoa('k'.repeat(100_000)) },
  });
  let read = 0;
  cluster.inject(({ verb }) => {
    if (verb === 'get') read += 1;
    return undefined;
  });
  await readKeys(context, world, [...keys.values()]);
  expect(read).toBe(1);
  const secrets = [...world.keys.values()].map(({ secret }) => secret);
  expect(secrets[0]).toMatchObject({ state: 'present', labels: { app: 'chat' }, hash: sha256('k'.repeat(100_000)) });
  expect(serialize(secrets).byteLength / secrets.length).toBeLessThan(1000);
});

test('keys of one namespace that change all the time, on any number of instances, do not displace those of others', () => {
  const keys = createKeys();
  const others = [...keys].slice(0, 1800).map(([path, key], index): [string, VirtualKey] => {
    const namespace = `n${index % 9}`;
    return [`${namespace}/${path}`, { ...key, metadata: { ...key.metadata, namespace } }];
  });
  const { context, part, world } = createContext('all', new Map([...keys, ...others]));
  const ofNamespace = (wanted: string) =>
    new Map([...world.keys].filter(([, { object }]) => object.metadata.namespace === wanted));
  // Half of the batch, and the part of the other half that the others do not need.
  expect(selectKeys(context, { ...world, keys: ofNamespace('default') }, part)).toHaveLength(BATCH - 9 * 200);
  for (let other = 0; other < 9; other += 1) {
    const own = { ...world, keys: ofNamespace(`n${other}`) };
    expect(selectKeys(context, own, { ...part, path: `n${other}/own` })).toHaveLength(200);
  }
});

test('a deleted key that only a finalizer of others keeps does not count as changed', () => {
  const [path, key] = [...createKeys()][0] as [string, VirtualKey];
  const metadata = { ...key.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/theirs'] };
  const { context, part, world } = createContext(undefined, new Map([[path, { ...key, metadata }]]));
  expect(selectKeys(context, world, part)).toEqual([]);
});

test('a trigger for a blocked key replaces its lost Secret, however many keys there are', async () => {
  const harness = createHarness({ limits: { ...PROCESS_LIMITS, secrets: 1 } });
  const others = Array.from({ length: 80 }, (_, index) => makeKey({ keyAlias: `other-${index}` }, `other-${index}`));
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({ blocked: true }), ...others);
  for (let run = 0; run < 3; run += 1) await harness.resync();
  const leaked = await harness.value('chat-key');
  await harness.remove(RESOURCES.secrets, 'chat-key');
  await harness.trigger('VirtualKey', 'chat');
  const value = await harness.value('chat-key');
  expect(value).toMatch(/^sk-/);
  expect(value).not.toBe(leaked);
  expect(await harness.policy(leaked)).toBeUndefined();
});
