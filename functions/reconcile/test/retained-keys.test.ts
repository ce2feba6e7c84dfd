// A key with deletionPolicy Retain continues working without its object, until a key adopts it or its Secret is
// deleted.
import { beforeEach, describe, expect, test } from 'vitest';
import { ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import type { KeyPolicy } from '#core/ports/policy.ts';
import { MAX_RETAINED } from '#core/ports/registry.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { OWNED_LABEL, OWNED_LABEL_VALUE, RETAINED_LABEL } from '#crds/names/group.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { BLOCKED_ANNOTATION, KEY_UID_ANNOTATION } from '../key/secret-shape.ts';

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
      RetainSecret: 1,
      PutScope: 1,
      RecordEvent: 1,
      RemoveFinalizer: 1,
    });
    const retained = harness.cluster.objects(RESOURCES.events).find(({ reason }) => reason === 'KeyRetained');
    expect(retained?.message).toBe(
      'spec.deletionPolicy is Retain: the key value continues to work, and a VirtualKey with the alias "chat" can adopt it; the value is in Secret "chat-key": delete the Secret to end the value',
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

  test('moves to another namespace with its Secret, labels, annotations, value and spend', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.spend('chat', '3');
    const secret = await harness.get(RESOURCES.secrets, 'chat-key');
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    const { labels = {}, annotations = {} } = secret?.metadata ?? {};
    await harness.cluster.create(RESOURCES.secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'chat-key', namespace: 'team-a', labels, annotations },
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

describe('a key with deletionPolicy Retain that is deleted while something cannot be read', () => {
  const minute = () => harness.clock.pass(60_000);
  const readyMessage = async () => {
    const { conditions = [] } = await harness.status(virtualKeys, 'chat');
    return conditions.find(({ type }) => type === 'Ready')?.message;
  };
  const name = (dbname: string) => harness.edit(RESOURCES.secrets, 'db', { data: { dbname: btoa(dbname) } });

  test('waits for its Secret, and the status shows it', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.remove(virtualKeys, 'chat');
    minute();
    harness.cluster.inject(({ verb, resource, name: secret }) => {
      if (verb === 'get' && resource === RESOURCES.secrets && secret === 'chat-key')
        throw new ClusterError('injected: 500', 500);
      return undefined;
    });
    await harness.resync();
    expect(await readyMessage()).toBe(
      'deletion waits until Secret "chat-key" can be read, because spec.deletionPolicy is Retain: the log of the reconciler has the cause. To end the key value instead, set spec.deletionPolicy to Delete',
    );
    harness.cluster.inject(() => undefined);
    await harness.resync();
    expect(await isDeleted()).toBe(true);
    expect(await harness.works(value)).toBe(true);
  });

  test('is released after 20 seconds without its database, with an event and a record in the log', async () => {
    await working({ deletionPolicy: 'Retain' });
    await harness.remove(virtualKeys, 'chat');
    harness.refuse(true);
    await harness.resync();
    expect(await isDeleted()).toBe(false);
    harness.clock.pass(21_000);
    await harness.resync();
    expect(await isDeleted()).toBe(true);
    expect(harness.events('chat')).toContain('KeyRetained');
    const forced = harness.log.lines.filter(({ message }) => message === 'a deletion was forced');
    expect(JSON.stringify(forced)).toContain('its row stays in the database until a resync marks the key as retained');
  });

  test('and is blocked then is retained as blocked, until a VirtualKey adopts it that is not', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    harness.refuse(true);
    await harness.edit(virtualKeys, 'chat', { spec: { blocked: true } });
    await harness.remove(virtualKeys, 'chat');
    minute();
    await harness.resync();
    expect(await isDeleted()).toBe(true);
    harness.refuse(false);
    await harness.resync();
    expect(await harness.policy(value)).toMatchObject({ blocked: true, retained: 'chat-key' });
    await harness.apply(makeKey());
    await harness.resync();
    expect(await harness.policy(value)).toMatchObject({ blocked: false });
    const { labels, annotations } = (await harness.get(RESOURCES.secrets, 'chat-key'))?.metadata ?? {};
    expect(labels).not.toHaveProperty([RETAINED_LABEL]);
    expect(annotations).not.toHaveProperty([BLOCKED_ANNOTATION]);
  });

  test.each([
    ['is deleted', () => harness.remove(RESOURCES.secrets, 'chat-key')],
    ['gets another value', () => harness.edit(RESOURCES.secrets, 'chat-key', { data: { key: btoa('sk-forged') } })],
    [
      'loses its label',
      () => harness.edit(RESOURCES.secrets, 'chat-key', { metadata: { labels: { [RETAINED_LABEL]: null } } }),
    ],
  ])('is not retained if its Secret %s before the database is back', async (_, end) => {
    const value = await working({ deletionPolicy: 'Retain' });
    harness.refuse(true);
    await harness.remove(virtualKeys, 'chat');
    minute();
    await harness.resync();
    await end();
    harness.refuse(false);
    await harness.resync();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.aliases()).toEqual([]);
  });

  test('and is created again before the database is back continues with value and spend', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.spend('chat', '3');
    harness.refuse(true);
    await harness.remove(virtualKeys, 'chat');
    minute();
    await harness.resync();
    await harness.apply(makeKey());
    await harness.resync();
    harness.refuse(false);
    await harness.trigger('VirtualKey', 'chat');
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, currentSpend: '3' });
    expect(await harness.works(value)).toBe(true);
  });

  test('because its instance names an empty database for a moment is retained in the right one', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.spend('chat', '3');
    await name('other');
    await harness.remove(virtualKeys, 'chat');
    await harness.trigger('VirtualKey', 'chat');
    await name('gateway');
    await harness.resync();
    expect(await harness.works(value)).toBe(true);
    await harness.apply(makeKey());
    await harness.resync();
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, currentSpend: '3' });
  });

  test('because its Secret was just renamed, without its database, is retained in the previous Secret', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    harness.refuse(true);
    await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: { name: 'renamed' } } });
    await harness.remove(virtualKeys, 'chat');
    minute();
    await harness.resync();
    harness.refuse(false);
    await harness.resync();
    expect(await harness.works(value)).toBe(true);
  });

  test('is retained, although its Secret is immutable and its template has changed', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.edit(RESOURCES.secrets, 'chat-key', { immutable: true });
    await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: { data: { extra: 'text' } } } });
    await harness.remove(virtualKeys, 'chat');
    minute();
    await harness.resync();
    expect(await isDeleted()).toBe(true);
    expect(await harness.works(value)).toBe(true);
  });
});

describe('a restore of PostgreSQL from a backup that is older than the retention', () => {
  const uidOf = async () => (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const claim = async () => (await harness.database().claims(await uidOf()))[0];
  /** The claim has the policy of the backup again. */
  const restore = async (policy: KeyPolicy | undefined) => {
    const { holder } = (await claim()) ?? {};
    if (holder === undefined || policy === undefined) throw new Error('there is nothing to restore');
    const write = { instanceUid: await uidOf(), kind: 'key', alias: 'chat', generation: 99 } as const;
    await harness.database().putScope({ ...write, holder, policy });
  };

  test('leaves a retained key working, and a VirtualKey adopts it', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await harness.spend('chat', '3');
    const { retained: _, ...policy } = (await harness.policy(value)) ?? ({} as KeyPolicy);
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    await restore(policy);
    expect((await harness.resync()).actions).toEqual({ PutScope: 1 });
    expect((await harness.resync()).actions).toEqual({});
    expect(await harness.policy(value)).toMatchObject({ retained: 'chat-key' });
    await harness.apply(makeKey());
    await harness.resync();
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, currentSpend: '3' });
  });

  test('ends a retained key whose value was rotated after the backup: the previous value may have leaked', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    const policy = await harness.policy(value);
    const annotations = { 'auth.gateway-operator.dev/rotate': 'now' };
    await harness.edit(virtualKeys, 'chat', { metadata: { annotations } });
    await harness.resync();
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    const rotated = await harness.value('chat-key');
    expect(rotated).not.toBe(value);
    await harness.database().removeValue((await claim())?.scopeId ?? '', sha256(rotated ?? ''));
    await restore(policy);
    await harness.resync();
    expect([await harness.works(value), await harness.works(rotated)]).toEqual([false, false]);
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

describe('a key with deletionPolicy Retain, in a namespace with as many retained keys as it may have', () => {
  /** Keys that were retained before, with their Secrets. */
  const retain = async (count: number) => {
    const instanceUid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    for (let place = 0; place < count; place += 1) {
      const [name, uid] = [`old-${place}`, `uid-${place}`];
      const metadata = { labels: { [OWNED_LABEL]: OWNED_LABEL_VALUE }, annotations: { [KEY_UID_ANNOTATION]: uid } };
      await harness.apply({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `${name}-key`, namespace: 'default', ...metadata },
      });
      const policy: KeyPolicy = {
        scopeId: crypto.randomUUID(),
        kind: 'key',
        name,
        blocked: false,
        models: [],
        anchor: 0,
        chargedScopeIds: [],
        object: { namespace: 'default', name },
        retained: `${name}-key`,
      };
      const holder = { uid, namespace: 'default', name };
      await harness.database().putScope({ instanceUid, kind: 'key', alias: name, holder, policy, generation: 1 });
    }
  };
  const message = async () =>
    (await harness.status(virtualKeys, 'chat')).conditions?.find(({ type }) => type === 'Ready')?.message;
  let value = '';
  beforeEach(async () => {
    value = await working({ deletionPolicy: 'Retain' });
    await harness.spend('chat', '3');
    await retain(MAX_RETAINED);
    await harness.remove(virtualKeys, 'chat');
  });

  test.each([
    ['resync', () => harness.resync()],
    ['trigger', () => harness.trigger('VirtualKey', 'chat')],
  ])('waits in deletion after a %s, reports it without a failure, and works for any time', async (_, run) => {
    expect((await run()).failed).toEqual({});
    harness.clock.pass(60_000);
    expect((await run()).failed).toEqual({});
    expect([await isDeleted(), await harness.works(value)]).toEqual([false, true]);
    expect(harness.events('chat').filter((reason) => reason === 'TooManyRetained')).toHaveLength(1);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False Deleting');
    expect(await message()).toBe(
      'deletion waits: namespace default has 500 retained keys on instance default/main, and may not have more. The key value continues working. Delete Secrets of retained keys that nobody needs (list them: kubectl get secrets -n default -l gateway-operator.dev/retained=true), or set spec.deletionPolicy to Delete',
    );
    const settled = harness.writes();
    await run();
    expect(harness.writes()).toBe(settled);
  });

  test('is retained when another one ends', async () => {
    await harness.resync();
    await harness.remove(RESOURCES.secrets, 'old-7-key');
    await harness.resync();
    await harness.resync();
    expect([await isDeleted(), await harness.works(value)]).toEqual([true, true]);
    await harness.apply(makeKey());
    await harness.resync();
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ isActive: true, currentSpend: '3' });
  });

  test('ends when its deletionPolicy becomes Delete', async () => {
    await harness.resync();
    await harness.edit(virtualKeys, 'chat', { spec: { deletionPolicy: 'Delete' } });
    await harness.trigger('VirtualKey', 'chat');
    expect([await isDeleted(), await harness.works(value)]).toEqual([true, false]);
    expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
  });

  test('ends when a person removes the finalizer: no claim stays that nothing counts', async () => {
    await harness.resync();
    harness.clock.pass(60_000);
    await harness.resync();
    await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: null } });
    await harness.resync();
    await harness.resync();
    expect([await isDeleted(), await harness.works(value)]).toEqual([true, false]);
  });

  test('does not keep its namespace from being deleted, which deletes its Secret', async () => {
    await harness.resync();
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.resync();
    expect([await isDeleted(), await harness.works(value)]).toEqual([true, false]);
  });
});
