// Does every withdrawal reach every key value, also one whose VirtualKey is gone or cannot be planned for?
import { beforeEach, describe, expect, test } from 'vitest';
import { ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { FINALIZER } from '#crds/names/group.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../limits.ts';

const TENANT = 'tenant';
const FOREIGN = 'example.com/x';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const working = async (spec: object = {}) => {
  await harness.apply(makeKey(spec, 'chat', TENANT));
  await harness.resync();
  const value = (await harness.value('chat-key', TENANT)) ?? '';
  expect(await harness.policy(value)).toMatchObject({ blocked: false });
  return value;
};

const edit = (patch: Readonly<Record<string, unknown>>) => harness.edit(virtualKeys, 'chat', patch, TENANT);
const block = () => edit({ spec: { blocked: true } });
const remove = () => harness.remove(virtualKeys, 'chat', TENANT);
const ready = () => harness.ready(virtualKeys, 'chat', TENANT);
const allow = (allowedNamespaces: object) => harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces } });
const SELECTOR = { from: 'Selector', selector: { matchLabels: { llm: 'allowed' } } };
const unlabel = () =>
  harness.cluster.patch(RESOURCES.namespaces, undefined, TENANT, { metadata: { labels: { llm: null } } });

const resyncs = async (count = 2) => {
  for (let run = 0; run < count; run += 1) {
    expect((await harness.resync()).failed).toEqual({});
    harness.clock.pass(60_000);
  }
};

/** Deletes the VirtualKey without waiting for the operator: a finalizer of another program keeps the object. */
async function abandon(): Promise<void> {
  await edit({ metadata: { finalizers: [FOREIGN] } });
  await remove();
}

/** Finalizers that are too long to keep: nothing can be planned for the object. */
const malform = async () => {
  const { finalizers = [] } = (await harness.get(virtualKeys, 'chat', TENANT))?.metadata ?? {};
  const more = Array.from({ length: 80 }, (_, index) => `example.com/${'x'.repeat(240)}${index}`);
  await edit({ metadata: { finalizers: [...finalizers, ...more] } });
  return finalizers;
};

async function retain(): Promise<void> {
  await remove();
  await harness.resync();
  expect(await harness.get(virtualKeys, 'chat', TENANT)).toBeUndefined();
}

describe('a namespace that is no longer allowed', () => {
  test.each<[string, object, () => Promise<unknown>]>([
    ['ordinary', {}, async () => undefined],
    ['retained', { deletionPolicy: 'Retain' }, retain],
    ['in deletion without our finalizer', {}, abandon],
    [
      'retained and kept by another finalizer',
      { deletionPolicy: 'Retain' },
      async () => {
        await edit({ metadata: { finalizers: [FINALIZER, FOREIGN] } });
        await remove();
        await harness.resync();
      },
    ],
    ['malformed', {}, malform],
  ])('ends the value of a VirtualKey that is %s', async (_, spec, prepare) => {
    const value = await working(spec);
    await prepare();
    await allow({ from: 'Same' });
    await resyncs();
    expect(await harness.works(value)).toBe(false);
  });
});

describe('a namespace that a selector no longer allows', () => {
  beforeEach(async () => {
    const metadata = { name: TENANT, labels: { llm: 'allowed' } };
    await harness.apply({ apiVersion: 'v1', kind: 'Namespace', metadata });
    await allow(SELECTOR);
  });

  test.each<[string, object, () => Promise<unknown>]>([
    ['retained', { deletionPolicy: 'Retain' }, retain],
    ['malformed', {}, malform],
  ])('ends the value of a VirtualKey that is %s', async (_, spec, prepare) => {
    const value = await working(spec);
    await prepare();
    if (prepare === retain) {
      await resyncs();
      expect(await harness.works(value)).toBe(true);
    }
    await unlabel();
    await resyncs();
    expect(await harness.works(value)).toBe(false);
  });

  test('ends no value while the namespace cannot be read', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await retain();
    await unlabel();
    harness.cluster.inject(({ verb, resource }) => {
      if (verb === 'get' && resource === RESOURCES.namespaces) throw new Error('refused');
    });
    await resyncs();
    expect(await harness.policy(value)).toMatchObject({ blocked: false });
    expect(JSON.stringify(harness.log.lines)).toContain('a namespace cannot be read');
    harness.cluster.inject(() => undefined);
    await resyncs();
    expect(await harness.works(value)).toBe(false);
  });
});

describe('a namespace that cannot be read', () => {
  beforeEach(async () => {
    const metadata = { name: TENANT, labels: { llm: 'allowed' } };
    await harness.apply({ apiVersion: 'v1', kind: 'Namespace', metadata });
  });
  const refuse = () =>
    harness.cluster.inject(({ verb, resource }) => {
      if (verb === 'get' && resource === RESOURCES.namespaces) throw new ClusterError('403', 403);
    });
  const notLabelled = { matchExpressions: [{ key: 'llm', operator: 'DoesNotExist' }] };

  test('keeps its keys and their statuses, and the run of the others ends well', async () => {
    const value = await working();
    await allow(SELECTOR);
    await resyncs();
    const before = await harness.status(virtualKeys, 'chat', TENANT);
    await harness.apply(makeInstance({}, 'second'));
    refuse();
    const connectionRef = { instanceRef: { name: 'second', namespace: 'default' } };
    await harness.apply(makeKey({ connectionRef, keyAlias: 'more' }, 'more', TENANT));
    await resyncs();
    expect(await harness.works(value)).toBe(true);
    expect(await harness.status(virtualKeys, 'chat', TENANT)).toEqual(before);
    expect(await harness.ready(virtualKeys, 'more', TENANT)).toBe('True Ready');
    expect(await harness.status(gatewayInstances, 'main')).toMatchObject({ keys: { total: 1, active: 1 } });
  });

  test('gives nothing new, whatever the selector, until it can be read', async () => {
    await working();
    await allow({ from: 'Selector', selector: notLabelled });
    refuse();
    await harness.apply(makeKey({ keyAlias: 'new' }, 'new', TENANT));
    await resyncs();
    expect(await harness.value('new-key', TENANT)).toBeUndefined();
    await unlabel();
    harness.cluster.inject(() => undefined);
    await resyncs();
    expect(await harness.works(await harness.value('new-key', TENANT))).toBe(true);
  });

  test('does not keep a key from being blocked or deleted', async () => {
    const value = await working();
    await allow(SELECTOR);
    await resyncs();
    refuse();
    await block();
    await resyncs();
    expect(await harness.policy(value)).toMatchObject({ blocked: true });
    await remove();
    await resyncs();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.get(virtualKeys, 'chat', TENANT)).toBeUndefined();
  });
});

describe('a VirtualKey in deletion that only another finalizer keeps', () => {
  test('does not work, and its alias is free', async () => {
    const value = await working();
    await abandon();
    await resyncs();
    expect(await ready()).toBe('False Deleting');
    expect(await harness.works(value)).toBe(false);
    await harness.apply(makeKey({ keyAlias: 'chat' }, 'heir', TENANT));
    await resyncs();
    expect(await harness.ready(virtualKeys, 'heir', TENANT)).toBe('True Ready');
    await edit({ metadata: { finalizers: [] } });
    await resyncs();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.works(await harness.value('heir-key', TENANT))).toBe(true);
  });

  test('is retired by its trigger', async () => {
    const value = await working();
    await abandon();
    await harness.trigger('VirtualKey', 'chat', TENANT);
    expect(await harness.works(value)).toBe(false);
  });

  test('however many there are: the deletion guard counts no object that a person deleted', async () => {
    const names = Array.from({ length: 15 }, (_, index) => `many-${index}`);
    await harness.apply(...names.map((name) => makeKey({}, name, TENANT)));
    await resyncs(1);
    for (const name of names) {
      await harness.edit(virtualKeys, name, { metadata: { finalizers: [FOREIGN] } }, TENANT);
      await harness.remove(virtualKeys, name, TENANT);
    }
    expect(await harness.resync()).toMatchObject({ actions: { RetireScope: 15 } });
    expect(await harness.aliases()).toEqual([]);
  });

  test('works on if it was retained before, until it is blocked or its Secret is deleted', async () => {
    const value = await working({ deletionPolicy: 'Retain' });
    await edit({ metadata: { finalizers: [FINALIZER, FOREIGN] } });
    await remove();
    await resyncs();
    expect((await harness.get(virtualKeys, 'chat', TENANT))?.metadata.finalizers).toEqual([FOREIGN]);
    expect(await harness.policy(value)).toMatchObject({ blocked: false });
    await block();
    await resyncs();
    expect(await harness.policy(value)).toMatchObject({ blocked: true });
    await harness.remove(RESOURCES.secrets, 'chat-key', TENANT);
    await resyncs();
    expect(await harness.works(value)).toBe(false);
  });

  test('does not work in a namespace whose objects are too large either; a retained key there does', async () => {
    harness = createHarness({ limits: { ...PROCESS_LIMITS, objectBytes: 100_000 } });
    await harness.apply(...makeSecrets(), makeInstance());
    const value = await working();
    await harness.apply(makeKey({ deletionPolicy: 'Retain' }, 'kept', TENANT));
    await harness.resync();
    const kept = await harness.value('kept-key', TENANT);
    await harness.edit(virtualKeys, 'kept', { metadata: { finalizers: [FINALIZER, FOREIGN] } }, TENANT);
    await harness.remove(virtualKeys, 'kept', TENANT);
    await harness.resync();
    await abandon();
    const members = Array.from({ length: 900 }, (_, index) => ({ name: `${index}`.padEnd(245, 'x') }));
    await harness.apply(makeTeam({ members }, 'large', TENANT));
    const report = await harness.resync();
    expect(report.oversizedNamespaces).toMatchObject([{ namespace: TENANT }]);
    expect(await harness.works(value)).toBe(false);
    expect(await harness.works(kept)).toBe(true);
  });
});

describe('a malformed VirtualKey', () => {
  test('does not work; the same value works when it can be read again, with the spec of then', async () => {
    const value = await working();
    await harness.spend('chat', '3');
    const finalizers = await malform();
    await block();
    await resyncs();
    expect(await ready()).toBe('False InvalidSpec');
    expect(await harness.works(value)).toBe(false);
    await edit({ metadata: { finalizers }, spec: { blocked: false } });
    await resyncs();
    expect(await harness.policy(value)).toMatchObject({ blocked: false });
    expect(await harness.status(virtualKeys, 'chat', TENANT)).toMatchObject({ isActive: true, currentSpend: '3' });
  });

  test('that is deleted and kept by another finalizer is retired', async () => {
    const value = await working();
    await edit({ metadata: { finalizers: [FINALIZER, FOREIGN] }, spec: { budgetDuration: '99999999d' } });
    await resyncs();
    await remove();
    await resyncs();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.aliases()).toEqual([]);
  });
});

describe('a retained key', () => {
  test.each([
    ['Team', teams, 'research', { teamRef: { name: 'research' } }],
    ['User', users, 'bob', { userRef: { name: 'bob' } }],
    ['second Team', teams, 'research', { userRef: { name: 'bob' }, teamRef: { name: 'research' } }],
  ] as const)('is blocked when its %s is deleted, until a VirtualKey adopts it', async (_, kind, name, refs) => {
    await harness.apply(makeTeam({}, 'research', TENANT), makeUser({ autoCreateKey: false }, 'bob', TENANT));
    const value = await working({ ...refs, deletionPolicy: 'Retain' });
    await harness.spend('chat', '3');
    await retain();
    await resyncs();
    expect(await harness.policy(value)).toMatchObject({ blocked: false });
    await harness.remove(kind, name, TENANT);
    await resyncs();
    expect(await harness.policy(value)).toMatchObject({ blocked: true });
    expect((await harness.resync()).actions).toEqual({});
    await harness.apply(makeKey({}, 'chat', TENANT));
    await resyncs();
    expect(await harness.policy(value)).toMatchObject({ blocked: false, chargedScopeIds: [] });
    expect(await harness.status(virtualKeys, 'chat', TENANT)).toMatchObject({ isActive: true, currentSpend: '3' });
  });
});

test('a VirtualKey that is blocked because its Team is missing stays blocked when it is retained', async () => {
  await harness.apply(makeTeam({}, 'research', TENANT));
  const value = await working({ teamRef: { name: 'research' }, deletionPolicy: 'Retain' });
  await harness.remove(teams, 'research', TENANT);
  await resyncs();
  expect(await ready()).toBe('False TeamNotFound');
  await retain();
  await resyncs();
  expect(await harness.policy(value)).toMatchObject({ blocked: true, missingOwnerReason: 'TeamNotFound' });
});

describe('a VirtualKey whose owner, a User, is being deleted and kept by another finalizer', () => {
  beforeEach(async () => {
    await harness.apply(makeUser({ autoCreateKey: false }, 'bob', TENANT));
    await harness.resync();
  });
  const own = async () => {
    const uid = (await harness.get(users, 'bob', TENANT))?.metadata.uid;
    const owner = { apiVersion: 'auth.gateway-operator.dev/v1alpha1', kind: 'User', name: 'bob', uid };
    await harness.edit(users, 'bob', { metadata: { finalizers: [FOREIGN] } }, TENANT);
    await edit({ metadata: { ownerReferences: [owner] } });
    await harness.remove(users, 'bob', TENANT);
    await resyncs();
  };

  test('follows its spec', async () => {
    const value = await working();
    await own();
    await edit({ spec: { maxBudget: '1' } });
    await resyncs();
    expect(await harness.policy(value)).toMatchObject({ blocked: false, budget: { limit: '1000000000' } });
    await block();
    await resyncs();
    expect(await ready()).toBe('False Blocked');
    expect(await harness.policy(value)).toMatchObject({ blocked: true });
  });

  test('is blocked if it names the User', async () => {
    const value = await working({ userRef: { name: 'bob' } });
    await own();
    expect(await ready()).toBe('False UserNotFound');
    expect(await harness.policy(value)).toMatchObject({ blocked: true, missingOwnerReason: 'UserNotFound' });
  });
});

test('a VirtualKey that is deferred, because older ones change all the time, ends with its namespace', async () => {
  const harness = createHarness({ limits: { ...PROCESS_LIMITS, changedKeys: 5, secrets: 5 } });
  const names = Array.from({ length: 10 }, (_, index) => `older-${index}`);
  await harness.apply(...makeSecrets(), makeInstance());
  for (const name of [...names, 'youngest']) {
    await harness.apply(makeKey({}, name, 'tenant'));
    harness.clock.pass(1000);
  }
  for (let run = 0; run < 4; run += 1) await harness.resync();
  const value = (await harness.value('youngest-key', 'tenant')) ?? '';
  expect(await harness.works(value)).toBe(true);
  const edit = async (tag: string) => {
    for (const name of names) await harness.edit(virtualKeys, name, { spec: { tags: [tag] } }, 'tenant');
  };
  await edit('before');
  await harness.edit(virtualKeys, 'youngest', { spec: { tags: ['before'] } }, 'tenant');
  await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
  for (const tag of ['one', 'two']) {
    await edit(tag);
    await harness.resync();
  }
  expect(await harness.works(value)).toBe(false);
});

test('an edit of a VirtualKey has its turn, also if more older ones than a resync handles change before each resync', async () => {
  harness = createHarness({ limits: { ...PROCESS_LIMITS, changedKeys: 20, secrets: 10 } });
  const older = Array.from({ length: 60 }, (_, index) => `older-${index}`);
  await harness.apply(...makeSecrets(), makeInstance(), ...older.map((name) => makeKey({}, name, TENANT)));
  harness.clock.pass(1000);
  await harness.apply(makeKey({}, 'chat', TENANT));
  await resyncs(6);
  const value = (await harness.value('chat-key', TENANT)) ?? '';
  expect((await harness.policy(value))?.tags).not.toEqual(['edited']);
  await edit({ spec: { tags: ['edited'] } });
  for (let run = 0; run < 6; run += 1) {
    for (const name of older) await harness.edit(virtualKeys, name, { spec: { tags: [`${run}`] } }, TENANT);
    await resyncs(1);
  }
  expect(await harness.policy(value)).toMatchObject({ tags: ['edited'] });
});

test('more VirtualKeys than a resync handles are blocked in one resync, and nothing else of them changes', async () => {
  const harness = createHarness({ limits: { ...PROCESS_LIMITS, changedKeys: 5, secrets: 5 } });
  const names = Array.from({ length: 11 }, (_, index) => `key-${index}`);
  await harness.apply(...makeSecrets(), makeInstance());
  for (const name of names) await harness.apply(makeKey({}, name, 'tenant'));
  for (let run = 0; run < 4; run += 1) await harness.resync();
  const policies = () =>
    Promise.all(names.map(async (name) => harness.policy(await harness.value(`${name}-key`, 'tenant'))));
  const before = await policies();
  expect(before.every((policy) => policy?.blocked === false)).toBe(true);
  const editAll = async (spec: object) => {
    for (const name of names) await harness.edit(virtualKeys, name, { spec }, 'tenant');
  };
  await editAll({ blocked: true });
  await harness.resync();
  expect(await policies()).toEqual(before.map((policy) => ({ ...policy, blocked: true })));
  await editAll({ blocked: false });
  for (let run = 0; run < 4; run += 1) await harness.resync();
  expect(await policies()).toEqual(before);
  for (const name of names) expect(await harness.ready(virtualKeys, name, 'tenant')).toBe('True Ready');
});
