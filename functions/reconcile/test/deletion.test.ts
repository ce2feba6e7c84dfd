// Deletion: it never hangs, leaves nothing behind, and never deletes objects of others.
import { beforeEach, describe, expect, test } from 'vitest';
import { SchemaMissing } from '#core/ports/backends.ts';
import { ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

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
const DAY = 86_400_000;
/** From now on the instance names a database that it has never used. */
const nameOtherDatabase = () => harness.edit(RESOURCES.secrets, 'db', { data: { dbname: btoa('other') } });
const refuseToRead = (error: Error) => {
  harness.onDatabase = (method) => {
    if (method === 'instance') throw error;
  };
};
const isDeleted = async () => (await harness.get(virtualKeys, 'chat')) === undefined;

describe('a deleted key', () => {
  test('stops working, and its claim and Secret are gone after one run', async () => {
    const value = await working();
    await harness.remove(virtualKeys, 'chat');
    await harness.trigger('VirtualKey', 'chat');
    expect(await isDeleted()).toBe(true);
    expect(await harness.works(value)).toBe(false);
    expect(await harness.aliases()).toEqual([]);
    expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
  });

  test('does not delete a Secret of its name that is not ours', async () => {
    await working();
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.apply(makeSecret('chat-key', { other: 'x' }));
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    expect(await isDeleted()).toBe(true);
    expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeDefined();
  });

  test('is released immediately if the instance is gone', async () => {
    await working();
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    expect(await isDeleted()).toBe(true);
  });

  test('waits for the database for 20 seconds and is then released; the log reports it, and a resync finds the claim later', async () => {
    const value = await working();
    harness.refuse(true);
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False Deleting');
    harness.clock.pass(21_000);
    await harness.resync();
    expect(await isDeleted()).toBe(true);
    expect(
      harness.log.lines.some(({ level, message }) => level === 'warn' && message === 'a deletion was forced'),
    ).toBe(true);
    harness.refuse(false);
    expect(await harness.works(value)).toBe(true);
    await harness.resync();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.aliases()).toEqual([]);
  });

  test.each([
    ['does not have its instance', nameOtherDatabase],
    ['lacks the schema', async () => refuseToRead(new SchemaMissing('no schema'))],
  ])('waits for 20 seconds if its database %s: the claim may be in another one', async (_, prepare) => {
    const value = await working();
    // Nothing opens the instance in that database.
    await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await prepare();
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    expect(await isDeleted()).toBe(false);
    harness.clock.pass(21_000);
    await harness.resync();
    expect(await isDeleted()).toBe(true);
    expect(harness.log.lines.some(({ message }) => message === 'a deletion was forced')).toBe(true);
    expect(await harness.works(value)).toBe(true);
  });

  test('whose deletionTimestamp is far in the future is released immediately if the database cannot be reached', async () => {
    await working();
    harness.clock.pass(DAY);
    await harness.remove(virtualKeys, 'chat');
    harness.clock.pass(-DAY);
    harness.refuse(true);
    await harness.resync();
    expect(await isDeleted()).toBe(true);
  });

  test('whose finalizer was removed by hand is found by the next resync', async () => {
    const value = await working();
    await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
    await harness.remove(virtualKeys, 'chat');
    await harness.resync();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.aliases()).toEqual([]);
  });

  test('that is created again with its alias, but without its Secret, gets a new value and no spend', async () => {
    const value = await working();
    await harness.spend('chat', '3');
    await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
    await harness.remove(virtualKeys, 'chat');
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.apply(makeKey());
    await harness.trigger('VirtualKey', 'chat');
    const minted = await harness.value('chat-key');
    expect(minted).not.toBe(value);
    expect([await harness.works(value), await harness.works(minted)]).toEqual([false, true]);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '0' });
  });

  test('in a namespace that is being deleted is released too, and nothing is created there', async () => {
    await harness.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a' } });
    await harness.apply(makeKey({}, 'chat', 'team-a'));
    await harness.resync();
    const value = await harness.value('chat-key', 'team-a');
    await harness.apply(makeKey({ keyAlias: 'late' }, 'late', 'team-a'));
    const uid = (await harness.cluster.get(RESOURCES.namespaces, undefined, 'team-a'))?.metadata.uid ?? '';
    await harness.cluster.delete(RESOURCES.namespaces, undefined, 'team-a', uid);
    const first = await harness.resync();
    expect(first.failed).toEqual({});
    expect(await harness.get(RESOURCES.secrets, 'late-key', 'team-a')).toBeUndefined();
    harness.cluster.collectGarbage();
    expect((await harness.resync()).failed).toEqual({});
    harness.cluster.collectGarbage();
    expect(harness.cluster.objects(virtualKeys)).toEqual([]);
    expect(await harness.works(value)).toBe(false);
  });
});

describe('an object with a finalizer but without data', () => {
  test('is released: a key whose claim, value and Secret are gone', async () => {
    await working();
    const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    const [claim] = await harness.database().claims(uid);
    await harness.database().retire([claim?.scopeId ?? '']);
    await harness.remove(RESOURCES.secrets, 'chat-key');
    await harness.remove(virtualKeys, 'chat');
    expect((await harness.resync()).actions).toMatchObject({ RemoveFinalizer: 1 });
    expect(await isDeleted()).toBe(true);
  });

  test.each([
    ['User', users, makeUser({ autoCreateKey: false })],
    ['Team', teams, makeTeam()],
    ['VirtualKey', virtualKeys, makeKey()],
  ])('is released: a %s that no run ever saw, of an instance that never existed', async (_, kind, object) => {
    await harness.remove(gatewayInstances, 'main');
    const { name } = object.metadata;
    await harness.apply({ ...object, metadata: { ...object.metadata, finalizers: ['gateway-operator.dev/cleanup'] } });
    await harness.remove(kind, name);
    await harness.resync();
    expect(await harness.get(kind, name)).toBeUndefined();
  });

  test('is released after 20 seconds: an instance whose Secrets are gone and that this process never saw', async () => {
    await working();
    harness.restart();
    for (const name of ['db', 'store', 'openai']) await harness.remove(RESOURCES.secrets, name);
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(await harness.get(gatewayInstances, 'main')).toBeDefined();
    harness.clock.pass(20_000);
    await harness.resync();
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
    expect(harness.log.lines.some(({ message }) => message === 'a deletion was forced')).toBe(true);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
  });
});

describe('a deleted instance', () => {
  test('is released in one run although it has keys; they stop working and show InstanceNotFound', async () => {
    const value = await working();
    const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    await harness.remove(gatewayInstances, 'main');
    await harness.trigger('GatewayInstance', 'main');
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
    const hash = sha256(value);
    const answers = await harness.database().policies(uid).find([hash]);
    expect(answers.get(hash)).toBeUndefined();
    expect(await harness.database().claims(uid)).toEqual([]);
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
  });

  test('waits for 20 seconds if its database does not have it: its VirtualKeys may work in another one', async () => {
    await working();
    await harness.edit(gatewayInstances, 'main', { spec: { paused: true } });
    await nameOtherDatabase();
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(await harness.get(gatewayInstances, 'main')).toBeDefined();
    harness.clock.pass(21_000);
    await harness.resync();
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
    expect(harness.log.lines.some(({ message }) => message === 'a deletion was forced')).toBe(true);
  });

  test('whose Secrets were deleted first is closed in its last known database', async () => {
    await working();
    const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    for (const name of ['db', 'store', 'openai']) await harness.remove(RESOURCES.secrets, name);
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
    expect(await harness.database().claims(uid)).toEqual([]);
  });

  test('whose database cannot be reached is tried for 20 seconds and then released', async () => {
    await working();
    harness.restart();
    harness.refuse(true);
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    expect(await harness.ready(gatewayInstances, 'main')).toBe('False Deleting');
    // The status shows the cause and the end of the wait from the first run.
    const { conditions } = (await harness.status(gatewayInstances, 'main')) as {
      conditions: ReadonlyArray<{ type: string; message: string }>;
    };
    const readyMessage = conditions.find(({ type }) => type === 'Ready')?.message ?? '';
    const until = new Date(harness.clock.now() + 20_000).toISOString().replace('.000', '');
    expect(readyMessage).toContain(`After ${until} the finalizer`);
    expect(readyMessage).toContain('refused');
    const events = harness.cluster.objects(RESOURCES.events).filter(({ reason }) => reason === 'Deleting');
    expect(events.map(({ message }) => message)).toEqual([readyMessage]);
    harness.clock.pass(20_000);
    await harness.resync();
    expect(await harness.get(gatewayInstances, 'main')).toBeUndefined();
  });

  test('that is created again has the key values from the Secrets of its keys, with a new ledger', async () => {
    const value = await working();
    await harness.spend('chat', '3');
    await harness.remove(gatewayInstances, 'main');
    await harness.resync();
    await harness.apply(makeInstance());
    await harness.resync();
    expect(await harness.value('chat-key')).toBe(value);
    expect(await harness.works(value)).toBe(true);
    expect(await harness.status(virtualKeys, 'chat')).toMatchObject({ isActive: true, currentSpend: '0' });
  });
});

test('all objects of a file can be deleted at the same time, and nothing is left', async () => {
  await harness.apply(makeKey(), makeUser(), makeTeam());
  await harness.resync();
  for (const object of harness.cluster.objects().filter(({ kind }) => kind !== 'Event' && kind !== 'ConfigMap')) {
    const resource = {
      VirtualKey: 'virtualkeys',
      User: 'users',
      Team: 'teams',
      GatewayInstance: 'gatewayinstances',
      Secret: 'secrets',
    }[object.kind];
    const group = object.apiVersion.includes('/') ? (object.apiVersion.split('/')[0] ?? '') : '';
    const { namespace, name, uid } = object.metadata;
    await harness.cluster.delete(
      { group, version: '', plural: resource ?? '', kind: object.kind },
      namespace,
      name,
      uid ?? '',
    );
  }
  expect((await harness.resync()).failed).toEqual({});
  harness.cluster.collectGarbage();
  expect(harness.cluster.objects().filter(({ kind }) => kind !== 'Event')).toEqual([]);
});

test.each([
  ['User', 'users'],
  ['Team', 'teams'],
  ['VirtualKey', 'virtualkeys'],
])(
  'a kind whose CRD is gone counts as empty: without %ss all other deleted objects are still released',
  async (_, plural) => {
    await harness.apply(makeKey(), makeUser(), makeTeam());
    await harness.resync();
    harness.unserved.add(plural);
    for (const kind of [virtualKeys, users, teams, gatewayInstances].filter((one) => one.plural !== plural))
      for (const { metadata } of harness.cluster.objects(kind)) await harness.remove(kind, metadata.name);
    expect((await harness.resync()).failed).toEqual({});
    const left = [virtualKeys, users, teams, gatewayInstances].filter((one) => one.plural !== plural);
    expect(left.flatMap((kind) => harness.cluster.objects(kind))).toEqual([]);
  },
);

test('claims of a kind whose CRD is gone stay until the kind is served again', async () => {
  await harness.apply(makeKey(), makeTeam());
  await harness.resync();
  const before = await harness.aliases();
  harness.unserved.add('teams');
  expect((await harness.resync()).failed).toEqual({});
  expect((await harness.trigger('VirtualKey', 'chat')).failed).toEqual({});
  expect(await harness.aliases()).toEqual(before);
  harness.unserved.clear();
  expect((await harness.resync()).failed).toEqual({});
  expect(await harness.aliases()).toEqual(before);
});

test('a list that fails for another cause ends the run: nothing is planned', async () => {
  await harness.apply(makeKey());
  harness.cluster.inject(({ verb, resource }) => {
    if (verb === 'list' && resource.plural === 'users')
      throw new ClusterError('listing users: 404 page not found', 404);
    return undefined;
  });
  await expect(harness.resync()).rejects.toThrow(/404 page not found/);
});
