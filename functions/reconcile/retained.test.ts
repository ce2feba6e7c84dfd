// Does a key of deletionPolicy Retain go on working without its object, until somebody adopts it or takes its Secret away?
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { RETAINED_LABEL } from '#crds/group.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets } from '../../test/reconcile/objects.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance());
});

const working = async (spec: object = {}) => {
  await bed.apply(makeKey(spec));
  await bed.sweep();
  return (await bed.value('chat-key')) ?? '';
};
const gone = async () => (await bed.get(virtualKeys, 'chat')) === undefined;

describe('a key of deletionPolicy Retain', () => {
  test('has a Secret with our label and no owner, and goes on working after its object is gone, alias and spend kept', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    expect((await bed.get(RESOURCES.secrets, 'chat-key'))?.metadata.ownerReferences).toBeUndefined();
    await bed.spend('chat', '3');
    await bed.remove(virtualKeys, 'chat');
    expect((await bed.sweep()).failed).toEqual({});
    bed.cluster.collectGarbage();
    expect(await gone()).toBe(true);
    await bed.sweep();
    expect(await bed.works(value)).toBe(true);
    await bed.apply(makeKey({ keyAlias: 'chat' }, 'thief'));
    await bed.sweep();
    expect(await bed.ready(virtualKeys, 'thief')).toBe('False AliasTaken');
    expect(await bed.works(value)).toBe(true);
    await bed.remove(virtualKeys, 'thief');
    await bed.apply(makeKey());
    await bed.sweep();
    expect(await bed.value('chat-key')).toBe(value);
    expect(await bed.works(value)).toBe(true);
    expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ isActive: true, currentSpend: '3', keyValue: value });
    expect((await bed.get(RESOURCES.secrets, 'chat-key'))?.metadata.ownerReferences).toMatchObject([{ name: 'chat' }]);
    expect((await bed.sweep()).actions).toEqual({});
  });

  test('says where its value is when it goes, and its Secret has a label that says retained until a key adopts it', async () => {
    await working({ deletionPolicy: 'Retain' });
    const label = async () => (await bed.get(RESOURCES.secrets, 'chat-key'))?.metadata.labels?.[RETAINED_LABEL];
    expect(await label()).toBeUndefined();
    await bed.remove(virtualKeys, 'chat');
    expect((await bed.sweep()).actions).toMatchObject({
      PutSecret: 1,
      PutScope: 1,
      RecordEvent: 1,
      RemoveFinalizer: 1,
    });
    const told = bed.cluster.objects(RESOURCES.events).find(({ reason }) => reason === 'KeyRetained');
    expect(told?.message).toBe(
      'its deletionPolicy is Retain: the key goes on working until a VirtualKey of alias "chat" adopts it; its value is in Secret "chat-key": delete that to end it',
    );
    expect(await label()).toBe('true');
    const settled = bed.writes();
    expect((await bed.sweep()).actions).toEqual({});
    expect(bed.writes()).toBe(settled);
    await bed.apply(makeKey());
    await bed.sweep();
    expect(await label()).toBeUndefined();
    expect((await bed.sweep()).actions).toEqual({});
  });

  test('of which the Secret is deleted afterwards is retired, and its alias is free', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    await bed.remove(RESOURCES.secrets, 'chat-key');
    await bed.sweep();
    expect(await bed.works(value)).toBe(false);
    expect(await bed.aliases()).toEqual([]);
  });

  test('moves to another namespace with its Secret, value and spend', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await bed.spend('chat', '3');
    const secret = await bed.get(RESOURCES.secrets, 'chat-key');
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    const { labels } = secret?.metadata ?? {};
    await bed.cluster.create(RESOURCES.secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'chat-key', namespace: 'team-a', ...(labels === undefined ? {} : { labels }) },
      data: secret?.data,
    });
    await bed.apply(makeKey({}, 'chat', 'team-a'));
    await bed.sweep();
    expect(await bed.status(virtualKeys, 'chat', 'team-a')).toMatchObject({
      keyValue: value,
      currentSpend: '3',
      isActive: true,
    });
    expect(await bed.works(value)).toBe(true);
    // What was copied from says so until somebody deletes it, which the key does not mind.
    expect((await bed.get(RESOURCES.secrets, 'chat-key'))?.metadata.labels?.[RETAINED_LABEL]).toBe('true');
    await bed.remove(RESOURCES.secrets, 'chat-key');
    await bed.sweep();
    expect(await bed.works(value)).toBe(true);
  });

  test('that was owned until just now is released before it goes', async () => {
    const value = await working();
    await bed.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Retain' } });
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    bed.cluster.collectGarbage();
    expect(await gone()).toBe(true);
    expect(await bed.value('chat-key')).toBe(value);
    expect(await bed.works(value)).toBe(true);
  });
});
