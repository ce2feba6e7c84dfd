// A key with deletionPolicy Retain continues working without its object, until a key adopts it or its Secret is
// deleted.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { RETAINED_LABEL } from '#crds/names/group.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { KEY_UID_ANNOTATION } from '../key/secret-shape.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const working = async (spec: object = {}) => {
  await harness.apply(makeKey(spec));
  await harness.resync();
  return (await harness.value('chat-key')) ?? '';
};
const isDeleted = async () => (await harness.get(virtualKeys, 'chat')) === undefined;

describe('a key with deletionPolicy Retain', () => {
  test('has a Secret with our label and no owner, and continues working without its object, with alias and spend', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    expect((await harness.get(RESOURCES.secrets, 'chat-key'))?.metadata.ownerReferences).toBeUndefined();
    await harness.spend('chat', '3');
    await harness.remove(virtualKeys, 'chat');
    expect((await harness.resync()).failed).toEqual({});
    harness.cluster.collectGarbage();
    expect(await isDeleted()).toBe(true);
    await harness.resync();
    expect(await harness.works(value)).toBe(true);
    await harness.apply(makeKey({ keyAlias: 'chat' }, 'thief'));
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'thief')).toBe('False AliasTaken');
    expect(await harness.works(value)).toBe(true);
    await harness.remove(virtualKeys, 'thief');
    await harness.apply(makeKey());
    await harness.resync();
    expect(await harness.value('chat-key')).toBe(value);
    expect(await harness.works(value)).toBe(true);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({
      isActive: true,
      currentSpend: '3',
      keyValue: value,
    });
    expect((await harness.resync()).actions).toEqual({});
  });

  test('reports where its value is when it is deleted, and its Secret has the label retained until a key adopts it', async () => {
    await working({ deletionPolicy: 'Retain' });
    const label = async () => (await harness.get(RESOURCES.secrets, 'chat-key'))?.metadata.labels?.[RETAINED_LABEL];
    expect(await label()).toBeUndefined();
    await harness.remove(virtualKeys, 'chat');
    expect((await harness.resync()).actions).toMatchObject({
      PutSecret: 1,
      PutScope: 1,
      RecordEvent: 1,
      RemoveFinalizer: 1,
    });
    const retained = harness.cluster.objects(RESOURCES.events).find(({ reason }) => reason === 'KeyRetained');
    expect(retained?.message).toBe(
      'its deletionPolicy is Retain: the key value continues working until a VirtualKey with the alias "chat" adopts it; the value is in Secret "chat-key": delete the Secret to end the value',
    );
    expect(await label()).toBe('true');
    const settled = harness.writes();
    expect((await harness.resync()).actions).toEqual({});
    expect(harness.writes()).toBe(settled);
    await harness.apply(makeKey());
    await harness.resync();
    expect(await label()).toBeUndefined();
    expect((await harness.resync()).actions).toEqual({});
  });

  test('whose Secret is deleted afterwards is retired, and its alias is free', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.resync();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.aliases()).toEqual([]);
  });

  test('ends when its Secret is deleted, although a finalizer of another program keeps the Secret', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    await harness.edit(RESOURCES.secrets, 'chat-key', { metadata: { finalizers: ['example.com/backup'] } });
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.resync();
    expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeDefined();
    expect(await harness.works(value)).toBe(false);
  });

  test('moves to another namespace with its Secret, value and spend', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.spend('chat', '3');
    const secret = await harness.get(RESOURCES.secrets, 'chat-key');
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    const { labels } = secret?.metadata ?? {};
    await harness.cluster.create(RESOURCES.secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'chat-key', namespace: 'team-a', ...(labels === undefined ? {} : { labels }) },
      data: secret?.data,
    });
    await harness.apply(makeKey({}, 'chat', 'team-a'));
    await harness.resync();
    expect(await harness.status(virtualKeys, 'chat', 'team-a')).toMatchObject({
      keyValue: value,
      currentSpend: '3',
      isActive: true,
    });
    expect(await harness.works(value)).toBe(true);
    // The Secret that was copied keeps its label until a person deletes it. The key continues to work then.
    expect((await harness.get(RESOURCES.secrets, 'chat-key'))?.metadata.labels?.[RETAINED_LABEL]).toBe('true');
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.resync();
    expect(await harness.works(value)).toBe(true);
  });

  test('whose Secret lost the annotation of its key before the deletion has the annotation restored, and continues working', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    const metadata = { annotations: { [KEY_UID_ANNOTATION]: null }, labels: { [RETAINED_LABEL]: 'true' } };
    await harness.edit(RESOURCES.secrets, 'chat-key', { metadata });
    await harness.remove(virtualKeys, 'chat');
    for (let run = 0; run < 3; run += 1) await harness.resync();
    expect(await isDeleted()).toBe(true);
    expect(await harness.works(value)).toBe(true);
  });

  test('that gets its deletionPolicy directly before its deletion is retained', async () => {
    const value = await working();
    await harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    harness.cluster.collectGarbage();
    expect(await isDeleted()).toBe(true);
    expect(await harness.value('chat-key')).toBe(value);
    expect(await harness.works(value)).toBe(true);
  });
});

describe('a Secret in deletion that a finalizer of another program keeps', () => {
  const keepByFinalizer = async () => {
    await harness.edit(RESOURCES.secrets, 'chat-key', { metadata: { finalizers: ['example.com/x'] } });
    await harness.remove(RESOURCES.secrets, 'chat-key');
  };

  test('is no proof for a VirtualKey that wants to adopt the value', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    await keepByFinalizer();
    await harness.apply(makeKey());
    await harness.resync();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False SecretNotFound');
  });

  test('ends the value of its VirtualKey, which gets a new one when the Secret is gone', async () => {
    const value = await working();
    await keepByFinalizer();
    const secret = await harness.get(RESOURCES.secrets, 'chat-key');
    for (let run = 0; run < 2; run += 1) {
      await harness.resync();
      expect(await harness.works(value)).toBe(false);
      expect(await harness.ready(virtualKeys, 'chat')).toBe('False SecretNotFound');
    }
    expect((await harness.resync()).actions).toEqual({});
    expect(await harness.get(RESOURCES.secrets, 'chat-key')).toEqual(secret);
    await harness.edit(RESOURCES.secrets, 'chat-key', { metadata: { finalizers: [] } });
    await harness.resync();
    const next = await harness.value('chat-key');
    expect(next).not.toBe(value);
    expect(await harness.works(next)).toBe(true);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });

  test('does not keep a VirtualKey that is deleted with Retain', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await keepByFinalizer();
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    expect(await isDeleted()).toBe(true);
    expect(await harness.works(value)).toBe(false);
  });
});
