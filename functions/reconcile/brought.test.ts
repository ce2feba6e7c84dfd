// Does a key that comes from elsewhere keep its value and its spend: another namespace, or a backup?
import { beforeEach, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets } from '../../test/reconcile/objects.ts';

const second = { connectionRef: { instanceRef: { name: 'second', namespace: 'default' } } };

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance(), makeInstance({}, 'second'));
});

const working = async (spec: object = {}) => {
  await bed.apply(makeKey(spec));
  await bed.sweep();
  await bed.spend('chat', '3');
  await bed.sweep();
  return (await bed.value('chat-key')) ?? '';
};
/** As a backup or a person copies it: without what the API server gave it. */
const copyOf = (secret: KubeObject | undefined, namespace = 'default', name = 'chat-key'): KubeObject => {
  const { labels = {}, annotations = {} } = secret?.metadata ?? {};
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, labels, annotations }, data: secret?.data };
};
const kept = (value: string) => ({ keyValue: value, currentSpend: '3', isActive: true });

test('a key that is restored from a backup with its Secret, both with other uids, keeps value and spend', async () => {
  const value = await working();
  const backup = copyOf(await bed.get(RESOURCES.secrets, 'chat-key'));
  // The cluster is lost: nothing runs any more that could clean up.
  await bed.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
  await bed.remove(virtualKeys, 'chat');
  await bed.remove(RESOURCES.secrets, 'chat-key');
  await bed.apply(backup, makeKey());
  bed.restart();
  await bed.sweep();
  expect(await bed.status(virtualKeys, 'chat')).toMatchObject(kept(value));
  expect((await bed.sweep()).actions).toEqual({});
});

test('a retained key moves to another instance of the same database, also under another alias, with value and spend', async () => {
  const value = await working({ deletionPolicy: 'Retain' });
  await bed.remove(virtualKeys, 'chat');
  await bed.sweep();
  await bed.apply(makeKey({ ...second, keyAlias: 'moved', secretTemplate: { name: 'chat-key' } }, 'moved'));
  await bed.sweep();
  expect(await bed.status(virtualKeys, 'moved')).toMatchObject(kept(value));
  expect([await bed.works(value, 'second'), await bed.works(value, 'main')]).toEqual([true, false]);
  expect((await bed.sweep()).actions).toEqual({});
});

test('a key that was not retained does not move: its copied Secret is a conflict, and it goes on working where it is', async () => {
  const value = await working();
  await bed.apply(copyOf(await bed.get(RESOURCES.secrets, 'chat-key'), 'default', 'moved-key'));
  await bed.apply(makeKey({ ...second, keyAlias: 'moved' }, 'moved'));
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'moved')).toBe('False SecretConflict');
  expect([await bed.works(value, 'second'), await bed.works(value, 'main')]).toEqual([false, true]);
});
