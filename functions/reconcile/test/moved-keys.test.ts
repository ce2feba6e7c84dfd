// Retained keys that are moved to another namespace: the Secret proves that they may be. Clients have the value too.
import { beforeEach, describe, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import type { KeyPolicy } from '#core/ports/policy.ts';
import type { Claim } from '#core/ports/registry.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { OWNED_LABELS, RETAINED_LABEL } from '#crds/names/group.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { KEY_UID_ANNOTATION, PREVIOUS_UIDS_ANNOTATION } from '../key/secret-shape.ts';

let harness: Harness;
let value: string;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({ deletionPolicy: 'Retain', maxBudget: '50' }));
  await harness.resync();
  value = (await harness.value('chat-key')) ?? '';
  await harness.spend('chat', '3');
});

const secretIn = async (namespace: string, name = 'chat-key') =>
  (await harness.cluster.get(RESOURCES.secrets, namespace, name)) as KubeObject;

/** Creates a Secret with the value. */
const bring = async (namespace: string, metadata: Partial<KubeObject['metadata']>, name = 'chat-key') => {
  const head = { apiVersion: 'v1', kind: 'Secret' } as const;
  const data = { key: btoa(value) };
  await harness.cluster.create(RESOURCES.secrets, { ...head, metadata: { ...metadata, name, namespace }, data });
};

const retain = async (namespace = 'default') => {
  await harness.remove(virtualKeys, 'chat', namespace);
  await harness.resync();
};

/** Moves the key as docs/guides/move-or-restore-a-key.md describes it. */
const move = async (from: string, to: string, spec: object = {}) => {
  await retain(from);
  const { labels = {}, annotations = {} } = (await secretIn(from)).metadata;
  await bring(to, { labels, annotations });
  await harness.apply(makeKey({ deletionPolicy: 'Retain', maxBudget: '50', ...spec }, 'chat', to));
  await harness.resync();
  await harness.remove(RESOURCES.secrets, 'chat-key', from);
  await harness.resync();
};

const message = async (name: string, namespace: string) =>
  (await harness.status(virtualKeys, name, namespace)).conditions?.find(({ type }) => type === 'Ready')?.message;

const instanceUid = async () => (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
const claims = async () => harness.database().claims(await instanceUid());

describe('whoever has the value of a retained key, and a namespace of their own', () => {
  test.each([
    ['the same alias', {}, 'chat', 'False AliasTaken'],
    ['another alias', { keyAlias: 'mine' }, 'chat mine', 'False SecretConflict'],
  ])('does not get the key with %s, nor can they end it', async (_, spec, aliases, ready) => {
    await retain();
    await bring('team-b', { labels: OWNED_LABELS }, 'x-key');
    await harness.apply(makeKey({ keyAlias: 'chat', maxBudget: '0', ...spec }, 'x', 'team-b'));
    for (let run = 0; run < 3; run += 1) await harness.resync();
    expect(await harness.ready(virtualKeys, 'x', 'team-b')).toBe(ready);
    expect((await claims()).map(({ alias }) => alias).join(' ')).toBe(aliases);
    expect(await harness.policy(value)).toMatchObject({ object: { namespace: 'default' }, retained: 'chat-key' });
    await harness.remove(virtualKeys, 'x', 'team-b');
    for (let run = 0; run < 2; run += 1) await harness.resync();
    expect(await harness.works(value)).toBe(true);
    await harness.apply(makeKey({ maxBudget: '50' }));
    await harness.resync();
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ keyValue: value, currentSpend: '3' });
  });

  test('does not get it with the annotations of a VirtualKey of their own, nor with many uids', async () => {
    await harness.apply(makeKey({ keyAlias: 'own' }, 'own', 'team-b'));
    await harness.resync();
    await retain();
    const { labels = {}, annotations = {} } = (await secretIn('team-b', 'own-key')).metadata;
    const uid = (await secretIn('default')).metadata.annotations?.[KEY_UID_ANNOTATION];
    const many = [...Array.from({ length: 8 }, () => crypto.randomUUID()), uid].join(',');
    await bring('team-b', { labels, annotations: { ...annotations, [PREVIOUS_UIDS_ANNOTATION]: many } }, 'x-key');
    await harness.apply(makeKey({ keyAlias: 'chat', maxBudget: '0' }, 'x', 'team-b'));
    for (let run = 0; run < 3; run += 1) await harness.resync();
    expect(await harness.ready(virtualKeys, 'x', 'team-b')).toBe('False AliasTaken');
    expect(await harness.policy(value)).toMatchObject({ object: { namespace: 'default' } });
  });

  test('sees what the Secret lacks, and gets the key when it has that', async () => {
    await retain();
    await bring('team-a', { labels: OWNED_LABELS });
    await harness.apply(makeKey({ maxBudget: '50' }, 'chat', 'team-a'));
    await harness.resync();
    expect(await message('chat', 'team-a')).toBe(
      'spec.keyAlias: Duplicate value: "chat": is already used by a VirtualKey of another namespace, deleted with its key retained, on instance "default/main". Secret "chat-key" has the key value, but not the annotations of the retained Secret: copy that Secret with its labels and annotations to adopt the key, or choose another alias',
    );
    const { annotations = {} } = (await secretIn('default')).metadata;
    await harness.edit(RESOURCES.secrets, 'chat-key', { metadata: { annotations } }, 'team-a');
    await harness.resync();
    expect(await harness.status(virtualKeys, 'chat', 'team-a')).toMatchObject({ keyValue: value, currentSpend: '3' });
  });

  test('sees with another alias what to do', async () => {
    await retain();
    await bring('team-a', { labels: OWNED_LABELS });
    await harness.apply(makeKey({ keyAlias: 'mine' }, 'chat', 'team-a'));
    await harness.resync();
    expect(await message('chat', 'team-a')).toBe(
      'metadata.name: Invalid value: "chat": Secret "chat-key" already exists and is not this key\'s; delete it, or name another in spec.secretTemplate.name. To adopt a retained key, delete this VirtualKey, copy the Secret of the key with its labels and annotations, then create this VirtualKey again',
    );
  });
});

describe('a key that is moved to another namespace with its Secret, labels and annotations', () => {
  test.each([
    ['the same alias', {}],
    ['another alias', { keyAlias: 'moved' }],
  ])('keeps value and spend, with %s', async (_, spec) => {
    await move('default', 'team-a', spec);
    expect(await harness.status(virtualKeys, 'chat', 'team-a')).toMatchObject({
      keyValue: value,
      currentSpend: '3',
      isActive: true,
    });
    expect(await harness.works(value)).toBe(true);
    expect((await harness.resync()).actions).toEqual({});
  });

  test('keeps the uids of its previous VirtualKeys in its Secret, the newest first, and at most eight', async () => {
    const uids = [(await secretIn('default')).metadata.annotations?.[KEY_UID_ANNOTATION]];
    const namespaces = ['default', ...Array.from({ length: 10 }, (_, place) => `team-${place}`)];
    for (const [place, to] of namespaces.slice(1).entries()) {
      await move(namespaces[place] ?? '', to);
      const { annotations = {} } = (await secretIn(to)).metadata;
      expect(annotations[PREVIOUS_UIDS_ANNOTATION]).toBe(uids.slice(0, 8).join(','));
      uids.unshift(annotations[KEY_UID_ANNOTATION]);
    }
    expect(new Set(uids).size).toBe(11);
    expect(await harness.works(value)).toBe(true);
  });

  test('keeps them when its Secret is renamed, rotated, or written with another template', async () => {
    const uid = (await secretIn('default')).metadata.annotations?.[KEY_UID_ANNOTATION];
    await move('default', 'team-a');
    const kept = async (name: string) =>
      (await secretIn('team-a', name)).metadata.annotations?.[PREVIOUS_UIDS_ANNOTATION];
    const template = { name: 'renamed', annotations: { note: 'text' } };
    await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: template } }, 'team-a');
    await harness.resync();
    expect(await kept('renamed')).toBe(uid);
    const annotations = { 'auth.gateway-operator.dev/rotate': 'now' };
    await harness.edit(virtualKeys, 'chat', { metadata: { annotations } }, 'team-a');
    await harness.resync();
    expect(await kept('renamed')).toBe(uid);
    await harness.edit(virtualKeys, 'chat', { spec: { secretTemplate: { name: 'renamed' } } }, 'team-a');
    await harness.resync();
    expect(await kept('renamed')).toBe(uid);
  });

  test('and is retained again before its Secret was written keeps them too', async () => {
    const { uid } = (await harness.get(virtualKeys, 'chat'))?.metadata ?? {};
    await retain();
    const { labels = {}, annotations = {} } = (await secretIn('default')).metadata;
    await bring('team-a', { labels, annotations });
    await harness.apply(makeKey({ deletionPolicy: 'Retain', maxBudget: '50' }, 'chat', 'team-a'));
    harness.cluster.inject(({ verb, resource }) => {
      if (verb === 'patch' && resource === RESOURCES.secrets) throw new Error('injected');
      return undefined;
    });
    await harness.resync();
    harness.cluster.inject(() => undefined);
    await retain('team-a');
    const { annotations: marks = {} } = (await secretIn('team-a')).metadata;
    expect(marks[PREVIOUS_UIDS_ANNOTATION]).toBe(uid);
    expect(marks[KEY_UID_ANNOTATION]).not.toBe(uid);
    expect(await harness.works(value)).toBe(true);
  });
});

describe('a restore of PostgreSQL from a backup that is older than a move to another namespace', () => {
  /** A claim as a backup has it. */
  type Backup = { readonly claim: Claim; readonly policy: KeyPolicy };
  const backUp = async (): Promise<Backup> => {
    const [claim] = await claims();
    const policy = await harness.policy(value);
    if (claim === undefined || policy === undefined) throw new Error('there is nothing to back up');
    return { claim, policy };
  };
  const restore = async ({ claim: { holder, alias }, policy }: Backup) => {
    const formerHolders = (await claims()).map((claim) => claim.holder.uid);
    const proof = (await claims())[0]?.values[0]?.hash ?? '';
    const write = {
      instanceUid: await instanceUid(),
      kind: 'key',
      alias,
      generation: 99,
      formerHolders,
      proof,
    } as const;
    expect(await harness.database().putScope({ ...write, holder, policy })).toBe('written');
    expect(await claims()).toMatchObject([{ holder }]);
  };
  const expectMoved = async (namespace: string) => {
    for (let run = 0; run < 3; run += 1) await harness.resync();
    expect(await claims()).toMatchObject([{ holder: { namespace }, alias: 'chat' }]);
    expect(await harness.ready(virtualKeys, 'chat', namespace)).toBe('True Ready');
    expect(await harness.status(virtualKeys, 'chat', namespace)).toMatchObject({ keyValue: value, currentSpend: '3' });
    expect(await harness.works(value)).toBe(true);
    expect(await harness.policy(value)).not.toHaveProperty('retained');
    expect((await harness.resync()).actions).toEqual({});
  };

  test('and than the retention leaves the key where it is now, with value and spend', async () => {
    const backup = await backUp();
    await move('default', 'team-a');
    await restore(backup);
    await expectMoved('team-a');
  });

  test('but not than the retention leaves it there too', async () => {
    await retain();
    const backup = await backUp();
    const { labels = {}, annotations = {} } = (await secretIn('default')).metadata;
    await bring('team-a', { labels, annotations });
    await harness.apply(makeKey({ deletionPolicy: 'Retain', maxBudget: '50' }, 'chat', 'team-a'));
    for (let run = 0; run < 2; run += 1) await harness.resync();
    await restore(backup);
    await expectMoved('team-a');
    // The Secret that was copied is still there.
    expect((await secretIn('default')).metadata.labels?.[RETAINED_LABEL]).toBe('true');
  });

  test('and than a second move leaves it there too', async () => {
    const backup = await backUp();
    await move('default', 'team-a');
    await move('team-a', 'team-b');
    await restore(backup);
    await expectMoved('team-b');
  });
});

describe('after a restore of the cluster to before a move', () => {
  /** The objects of a backup, as `kubectl apply` restores them. */
  const backUp = async (namespace: string) => {
    const key = (await harness.get(virtualKeys, 'chat', namespace)) ?? expect.fail();
    return [await secretIn(namespace), key].map(({ apiVersion, kind, metadata, spec, data }) => {
      const { name, labels, annotations } = metadata;
      return structuredClone({ apiVersion, kind, metadata: { name, namespace, labels, annotations }, spec, data });
    }) as KubeObject[];
  };
  /** The objects are gone without the operator. */
  const lose = async (namespace: string) => {
    await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: null } }, namespace);
    await harness.remove(virtualKeys, 'chat', namespace);
    await harness.remove(RESOURCES.secrets, 'chat-key', namespace);
    harness.restart();
  };
  const restore = async (objects: ReadonlyArray<KubeObject>) => {
    for (const object of objects) await harness.apply(object);
    for (let run = 0; run < 3; run += 1) await harness.resync();
  };

  test.each([1, 2])('the key works in its former namespace with its spend, %i moves later', async (moves) => {
    const [from, ...path] = ['default', 'team-a', 'team-b'].slice(0, moves + 1);
    const objects = await backUp(from ?? '');
    let last = from ?? '';
    for (const next of path) {
      await move(last, next);
      last = next;
    }
    await lose(last);
    await restore(objects);
    expect(await harness.works(value)).toBe(true);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '3' });
    expect(await harness.value('chat-key')).toBe(value);
  });

  test.each(['empty', 'without the claim'])(
    'the key has its value, and no spend, if the database is %s',
    async (how) => {
      const objects = await backUp('default');
      await lose('default');
      if (how === 'empty') await harness.edit(RESOURCES.secrets, 'db', { data: { dbname: btoa('empty') } });
      // The claim is retired, as if the database were older than the key.
      else await harness.resync();
      await restore(objects);
      expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
      expect(await harness.value('chat-key')).toBe(value);
      expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '0' });
      const { uid = '' } = (await harness.get(virtualKeys, 'chat'))?.metadata ?? {};
      expect((await secretIn('default')).metadata.annotations).toMatchObject({ [KEY_UID_ANNOTATION]: uid });
    },
  );

  test("a Secret that names another VirtualKey, whose value works, stays that one's", async () => {
    await harness.apply(makeKey({ maxBudget: '50', secretTemplate: { name: 'chat-key' } }, 'second'));
    for (let run = 0; run < 3; run += 1) await harness.resync();
    expect(await harness.ready(virtualKeys, 'second')).toBe('False SecretConflict');
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    const { uid = '' } = (await harness.get(virtualKeys, 'chat'))?.metadata ?? {};
    expect((await secretIn('default')).metadata.annotations).toMatchObject({ [KEY_UID_ANNOTATION]: uid });
  });

  test('whoever waits with the alias does not get it while the VirtualKey may still arrive', async () => {
    const objects = await backUp('default');
    const adopted = `${await instanceUid()} lost`;
    await lose('default');
    await harness.edit(gatewayInstances, 'main', { metadata: { finalizers: null } });
    await harness.remove(gatewayInstances, 'main');
    await harness.apply({
      ...makeInstance(),
      metadata: {
        name: 'main',
        namespace: 'default',
        annotations: { 'instance.gateway-operator.dev/adopt-ledger': adopted },
      },
    });
    await harness.resync();
    await harness.apply(makeKey({ keyAlias: 'chat', maxBudget: '1000' }, 'steal', 'aaa'));
    await harness.trigger('VirtualKey', 'steal', 'aaa');
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'steal', 'aaa')).toBe('False AliasTaken');
    await restore(objects);
    expect(await harness.works(value)).toBe(true);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '3' });
  });

  test('a thief who has only the value gets nothing, while the key of the former namespace is away', async () => {
    await move('default', 'team-a');
    await lose('team-a');
    await bring('team-b', { labels: OWNED_LABELS });
    await harness.apply(makeKey({ maxBudget: '50' }, 'chat', 'team-b'));
    for (let run = 0; run < 3; run += 1) await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat', 'team-b')).not.toBe('True Ready');
  });

  test('a copy that stayed in the former namespace does not take a key that is retained', async () => {
    const [secret, key] = await backUp('default');
    await move('default', 'team-a');
    await retain('team-a');
    await restore([secret, key].filter((object) => object !== undefined));
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False AliasTaken');
    expect(await claims()).toMatchObject([{ holder: { namespace: 'team-a' } }]);
  });
});
