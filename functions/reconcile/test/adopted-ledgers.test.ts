// VirtualKeys that come from another namespace or from a backup keep their value and their spend.
import { beforeEach, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

const second = { connectionRef: { instanceRef: { name: 'second', namespace: 'default' } } };

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeInstance({}, 'second'));
});

const working = async (spec: object = {}) => {
  await harness.apply(makeKey(spec));
  await harness.resync();
  await harness.spend('chat', '3');
  await harness.resync();
  return (await harness.value('chat-key')) ?? '';
};
/** The object as in a backup or a copy: without the fields that the API server sets. */
const copyOf = (secret: KubeObject | undefined, namespace = 'default', name = 'chat-key'): KubeObject => {
  const { labels = {}, annotations = {}, ownerReferences = [] } = secret?.metadata ?? {};
  const metadata = { name, namespace, labels, annotations, ownerReferences };
  return { apiVersion: 'v1', kind: 'Secret', metadata, data: secret?.data };
};
const kept = (value: string) => ({ keyValue: value, currentSpend: '3', isActive: true });

test('a key that is restored from a backup together with its Secret keeps value and spend, although the uids differ', async () => {
  const value = await working();
  const backup = copyOf(await harness.get(RESOURCES.secrets, 'chat-key'));
  // The cluster is lost, so no process cleans up.
  await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
  await harness.remove(virtualKeys, 'chat');
  await harness.remove(RESOURCES.secrets, 'chat-key');
  await harness.apply(backup, makeKey());
  harness.cluster.collectGarbage();
  harness.restart();
  await harness.resync();
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject(kept(value));
  expect((await harness.resync()).actions).toEqual({});
});

test('a key that is restored without its Secret has a new value and no spend, and an event reports this', async () => {
  const value = await working();
  await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
  await harness.remove(virtualKeys, 'chat');
  await harness.remove(RESOURCES.secrets, 'chat-key');
  await harness.apply(makeKey());
  harness.restart();
  await harness.resync();
  expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '0', isActive: true });
  expect(await harness.works(value)).toBe(false);
  expect(harness.events('chat').filter((reason) => reason === 'KeyNotRestored')).toHaveLength(1);
});

test('the owner reference that an earlier version added to the Secret of a key is removed; those of other kinds stay', async () => {
  const value = await working();
  const { uid = '' } = (await harness.get(virtualKeys, 'chat'))?.metadata ?? {};
  const owner = { apiVersion: 'auth.gateway-operator.dev/v1alpha1', kind: 'VirtualKey', name: 'chat', uid };
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'theirs', uid: 'theirs' };
  await harness.edit(RESOURCES.secrets, 'chat-key', { metadata: { ownerReferences: [owner, other] } });
  expect((await harness.resync()).actions).toMatchObject({ PutSecret: 1 });
  expect((await harness.get(RESOURCES.secrets, 'chat-key'))?.metadata.ownerReferences).toEqual([other]);
  expect(await harness.value('chat-key')).toBe(value);
  expect((await harness.resync()).actions).toEqual({});
});

test('a deleted key keeps its finalizer until its Secret could be read and deleted', async () => {
  await working();
  await harness.remove(virtualKeys, 'chat');
  const { inject } = harness.cluster;
  inject(({ verb, resource, name }) =>
    verb === 'get' && resource === RESOURCES.secrets && name === 'chat-key' ? 'lost' : undefined,
  );
  await harness.resync();
  expect(await harness.get(virtualKeys, 'chat')).toBeDefined();
  inject(() => undefined);
  await harness.resync();
  expect(await harness.get(virtualKeys, 'chat')).toBeUndefined();
  expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
});

test('a retained key moves to another instance of the same database, also under another alias, with value and spend', async () => {
  const value = await working({ deletionPolicy: 'Retain' });
  await harness.remove(virtualKeys, 'chat');
  await harness.resync();
  await harness.apply(makeKey({ ...second, keyAlias: 'moved', secretTemplate: { name: 'chat-key' } }, 'moved'));
  await harness.resync();
  expect(await harness.status(virtualKeys, 'moved')).toMatchObject(kept(value));
  expect([await harness.works(value, 'second'), await harness.works(value, 'main')]).toEqual([true, false]);
  expect((await harness.resync()).actions).toEqual({});
});

test('a key that was not retained does not move: its copied Secret is a conflict, and the original continues working', async () => {
  const value = await working();
  await harness.apply(copyOf(await harness.get(RESOURCES.secrets, 'chat-key'), 'default', 'moved-key'));
  await harness.apply(makeKey({ ...second, keyAlias: 'moved' }, 'moved'));
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'moved')).toBe('False SecretConflict');
  expect([await harness.works(value, 'second'), await harness.works(value, 'main')]).toEqual([false, true]);
});
