// Does deletion never stick, never leak, and never take what is not ours?
import { beforeEach, describe, expect, test } from 'vitest';
import { ClusterError, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../test/reconcile/objects.ts';

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

describe('a deleted key', () => {
  test('stops working, and its claim and Secret are gone after one run', async () => {
    const value = await working();
    await bed.remove(virtualKeys, 'chat');
    await bed.hint('VirtualKey', 'chat');
    expect(await gone()).toBe(true);
    expect(await bed.works(value)).toBe(false);
    expect(await bed.aliases()).toEqual([]);
    expect(await bed.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
  });

  test('leaves a Secret of its name that is not ours alone', async () => {
    await working();
    await bed.remove(RESOURCES.secrets, 'chat-key');
    await bed.apply(makeSecret('chat-key', { other: 'x' }));
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    expect(await gone()).toBe(true);
    expect(await bed.get(RESOURCES.secrets, 'chat-key')).toBeDefined();
  });

  test('goes at once where the instance is gone', async () => {
    await working();
    await bed.remove(gatewayInstances, 'main');
    await bed.sweep();
    expect(await bed.get(gatewayInstances, 'main')).toBeUndefined();
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    expect(await gone()).toBe(true);
  });

  test('waits for the database for 20 seconds, then it is let go; that is told, and a sweep finds the claim later', async () => {
    const value = await working();
    bed.refuse(true);
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False Deleting');
    bed.clock.pass(21_000);
    await bed.sweep();
    expect(await gone()).toBe(true);
    expect(bed.log.lines.some(({ level, message }) => level === 'warn' && message === 'a deletion was forced')).toBe(
      true,
    );
    bed.refuse(false);
    expect(await bed.works(value)).toBe(true);
    await bed.sweep();
    expect(await bed.works(value)).toBe(false);
    expect(await bed.aliases()).toEqual([]);
  });

  test('whose finalizer was removed by hand is found by the next sweep', async () => {
    const value = await working();
    await bed.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
    await bed.remove(virtualKeys, 'chat');
    await bed.sweep();
    expect(await bed.works(value)).toBe(false);
    expect(await bed.aliases()).toEqual([]);
  });

  test('that is made anew under its alias at once gets a new value and a whole budget', async () => {
    const value = await working();
    await bed.spend('chat', '3');
    await bed.edit(virtualKeys, 'chat', { metadata: { finalizers: [] } });
    await bed.remove(virtualKeys, 'chat');
    bed.cluster.collectGarbage();
    await bed.apply(makeKey());
    await bed.hint('VirtualKey', 'chat');
    const minted = await bed.value('chat-key');
    expect(minted).not.toBe(value);
    expect([await bed.works(value), await bed.works(minted)]).toEqual([false, true]);
    expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ currentSpend: '0' });
  });

  test('in a namespace that is being deleted goes too, and nothing is created there', async () => {
    await bed.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a' } });
    await bed.apply(makeKey({}, 'chat', 'team-a'));
    await bed.sweep();
    const value = await bed.value('chat-key', 'team-a');
    await bed.apply(makeKey({ keyAlias: 'late' }, 'late', 'team-a'));
    const uid = (await bed.cluster.get(RESOURCES.namespaces, undefined, 'team-a'))?.metadata.uid ?? '';
    await bed.cluster.delete(RESOURCES.namespaces, undefined, 'team-a', uid);
    const first = await bed.sweep();
    expect(first.failed).toEqual({});
    expect(await bed.get(RESOURCES.secrets, 'late-key', 'team-a')).toBeUndefined();
    bed.cluster.collectGarbage();
    expect((await bed.sweep()).failed).toEqual({});
    bed.cluster.collectGarbage();
    expect(bed.cluster.objects(virtualKeys)).toEqual([]);
    expect(await bed.works(value)).toBe(false);
  });
});

describe('a finalizer that is left alone', () => {
  test('of a key whose claim, value and Secret are gone holds nobody up', async () => {
    await working();
    const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    const [claim] = await bed.database().claims(uid);
    await bed.database().retire([claim?.scopeId ?? '']);
    await bed.remove(RESOURCES.secrets, 'chat-key');
    await bed.remove(virtualKeys, 'chat');
    expect((await bed.sweep()).actions).toMatchObject({ RemoveFinalizer: 1 });
    expect(await gone()).toBe(true);
  });

  test.each([
    ['User', users, makeUser({ autoCreateKey: false })],
    ['Team', teams, makeTeam()],
    ['VirtualKey', virtualKeys, makeKey()],
  ])('of a %s that no run ever saw, of an instance that never was, holds nobody up', async (_, kind, object) => {
    await bed.remove(gatewayInstances, 'main');
    const { name } = object.metadata;
    await bed.apply({ ...object, metadata: { ...object.metadata, finalizers: ['gateway-operator.dev/cleanup'] } });
    await bed.remove(kind, name);
    await bed.sweep();
    expect(await bed.get(kind, name)).toBeUndefined();
  });

  test('of an instance whose Secrets are gone and that this process never saw is let go after 20 seconds', async () => {
    await working();
    bed.restart();
    for (const name of ['db', 'store', 'openai']) await bed.remove(RESOURCES.secrets, name);
    await bed.remove(gatewayInstances, 'main');
    await bed.sweep();
    expect(await bed.get(gatewayInstances, 'main')).toBeDefined();
    bed.clock.pass(20_000);
    await bed.sweep();
    expect(await bed.get(gatewayInstances, 'main')).toBeUndefined();
    expect(bed.log.lines.some(({ message }) => message === 'a deletion was forced')).toBe(true);
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
  });
});

describe('a deleted instance', () => {
  test('goes in one run with keys left, which stop working and say InstanceNotFound', async () => {
    const value = await working();
    const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    await bed.remove(gatewayInstances, 'main');
    await bed.hint('GatewayInstance', 'main');
    expect(await bed.get(gatewayInstances, 'main')).toBeUndefined();
    expect(await bed.database().policies(uid).find(value)).toBeUndefined();
    expect(await bed.database().claims(uid)).toEqual([]);
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False InstanceNotFound');
  });

  test('whose Secrets went first is cleaned where its database last was', async () => {
    await working();
    const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    for (const name of ['db', 'store', 'openai']) await bed.remove(RESOURCES.secrets, name);
    await bed.remove(gatewayInstances, 'main');
    await bed.sweep();
    expect(await bed.get(gatewayInstances, 'main')).toBeUndefined();
    expect(await bed.database().claims(uid)).toEqual([]);
  });

  test('whose database is away is tried for 20 seconds, then let go', async () => {
    await working();
    bed.restart();
    bed.refuse(true);
    await bed.remove(gatewayInstances, 'main');
    await bed.sweep();
    expect(await bed.ready(gatewayInstances, 'main')).toBe('False Deleting');
    // What it waits for, and until when, is told before and while somebody waits for it.
    const { conditions } = (await bed.status(gatewayInstances, 'main')) as {
      conditions: ReadonlyArray<{ type: string; message: string }>;
    };
    const said = conditions.find(({ type }) => type === 'Ready')?.message ?? '';
    const until = new Date(bed.clock.now() + 20_000).toISOString().replace('.000', '');
    expect(said).toContain(`it is being deleted and waits until ${until} for its database`);
    expect(said).toContain('refused');
    const events = bed.cluster.objects(RESOURCES.events).filter(({ reason }) => reason === 'Deleting');
    expect(events.map(({ message }) => message)).toEqual([said]);
    bed.clock.pass(20_000);
    await bed.sweep();
    expect(await bed.get(gatewayInstances, 'main')).toBeUndefined();
  });

  test('that is made anew gives its keys back the values that their Secrets have, on a new ledger', async () => {
    const value = await working();
    await bed.spend('chat', '3');
    await bed.remove(gatewayInstances, 'main');
    await bed.sweep();
    await bed.apply(makeInstance());
    await bed.sweep();
    expect(await bed.value('chat-key')).toBe(value);
    expect(await bed.works(value)).toBe(true);
    expect(await bed.status(virtualKeys, 'chat')).toMatchObject({ isActive: true, currentSpend: '0' });
  });
});

test('everything of a file can be deleted at once, and nothing is left', async () => {
  await bed.apply(makeKey(), makeUser(), makeTeam());
  await bed.sweep();
  for (const object of bed.cluster.objects().filter(({ kind }) => kind !== 'Event' && kind !== 'ConfigMap')) {
    const resource = {
      VirtualKey: 'virtualkeys',
      User: 'users',
      Team: 'teams',
      GatewayInstance: 'gatewayinstances',
      Secret: 'secrets',
    }[object.kind];
    const group = object.apiVersion.includes('/') ? (object.apiVersion.split('/')[0] ?? '') : '';
    const { namespace, name, uid } = object.metadata;
    await bed.cluster.delete(
      { group, version: '', plural: resource ?? '', kind: object.kind },
      namespace,
      name,
      uid ?? '',
    );
  }
  expect((await bed.sweep()).failed).toEqual({});
  bed.cluster.collectGarbage();
  expect(bed.cluster.objects().filter(({ kind }) => kind !== 'Event')).toEqual([]);
});

test.each([
  ['User', 'users'],
  ['Team', 'teams'],
  ['VirtualKey', 'virtualkeys'],
])('a kind whose CRD is gone is empty: without %ss everything else is still let go', async (_, plural) => {
  await bed.apply(makeKey(), makeUser(), makeTeam());
  await bed.sweep();
  bed.unserved.add(plural);
  for (const kind of [virtualKeys, users, teams, gatewayInstances].filter((one) => one.plural !== plural))
    for (const { metadata } of bed.cluster.objects(kind)) await bed.remove(kind, metadata.name);
  expect((await bed.sweep()).failed).toEqual({});
  const left = [virtualKeys, users, teams, gatewayInstances].filter((one) => one.plural !== plural);
  expect(left.flatMap((kind) => bed.cluster.objects(kind))).toEqual([]);
});

test('a kind whose CRD is gone frees no alias and no spend: its claims stay until the kind is served', async () => {
  await bed.apply(makeKey(), makeTeam());
  await bed.sweep();
  const before = await bed.aliases();
  bed.unserved.add('teams');
  expect((await bed.sweep()).failed).toEqual({});
  expect((await bed.hint('VirtualKey', 'chat')).failed).toEqual({});
  expect(await bed.aliases()).toEqual(before);
  bed.unserved.clear();
  expect((await bed.sweep()).failed).toEqual({});
  expect(await bed.aliases()).toEqual(before);
});

test('a list that fails for another cause still ends the run: nothing is known, and nothing is planned', async () => {
  await bed.apply(makeKey());
  bed.cluster.inject(({ verb, resource }) => {
    if (verb === 'list' && resource.plural === 'users')
      throw new ClusterError('listing users: 404 page not found', 404);
    return undefined;
  });
  await expect(bed.sweep()).rejects.toThrow(/404 page not found/);
});
