// Does what goes wrong in other operators go right here? Each test is the promise that a user of theirs missed.
import { beforeEach, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../test/reconcile/objects.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance());
});
const policyOf = async (alias: string) => {
  const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  return (await bed.database().claims(uid)).find((claim) => claim.alias === alias)?.policy;
};

test('a rotated database password is picked up by the next run, by every key', async () => {
  await bed.apply(makeKey());
  await bed.sweep();
  await bed.apply(makeSecret('db', { host: 'other', username: 'u', password: 'rotated', dbname: 'gateway' }));
  const report = await bed.sweep();
  expect(report.failed).toEqual({});
  const { conditions } = await bed.status(gatewayInstances, 'main');
  expect(conditions?.find(({ type }) => type === 'DatabaseReady')?.message).toContain('other:5432');
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test.each([
  ['maxBudget', { maxBudget: '26' }, { budget: { limit: '26000000000' } }],
  ['a budget of zero', { maxBudget: '0' }, { budget: { limit: '0' } }],
  ['budgetDuration', { budgetDuration: '7d' }, { budget: { duration: '7d' } }],
  ['models', { models: ['small'] }, { models: ['small'] }],
  ['blocked', { blocked: true }, { blocked: true }],
])('an edit of %s of a user or a team is in force after one run, carried by one write', async (_, spec, expected) => {
  await bed.apply(makeUser({ autoCreateKey: false }), makeTeam());
  await bed.sweep();
  await bed.edit(users, 'alice', { spec });
  await bed.edit(teams, 'research', { spec });
  expect((await bed.sweep()).actions).toMatchObject({ PutScope: 2 });
  expect(await policyOf('alice@example.com')).toMatchObject(expected);
  expect(await policyOf('research')).toMatchObject(expected);
  expect((await bed.sweep()).actions).toEqual({});
});

test('clearing a budget reaches the gateway: no budget is not a budget of zero', async () => {
  await bed.apply(makeUser({ autoCreateKey: false }));
  await bed.sweep();
  await bed.edit(users, 'alice', { spec: { maxBudget: null, budgetDuration: null } });
  await bed.sweep();
  expect(await policyOf('alice@example.com')).not.toHaveProperty('budget');
  expect(await bed.status(users, 'alice')).not.toHaveProperty('currentSpend');
  expect(await bed.ready(users, 'alice')).toBe('True Ready');
});

test('a Secret that cannot be written leaves no key behind that nobody knows, and the next run succeeds', async () => {
  await bed.apply(makeKey());
  bed.cluster.inject(({ verb, resource }) =>
    verb === 'create' && resource.plural === 'secrets' ? 'forbidden' : undefined,
  );
  const report = await bed.sweep();
  expect(report.failed).toEqual({ PutSecret: 1 });
  expect(await bed.ready(virtualKeys, 'chat')).toBe('False ReconcileFailed');
  const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  expect((await bed.database().claims(uid)).flatMap(({ values }) => values)).toEqual([]);
  bed.cluster.inject(() => undefined);
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('a status that cannot be written stops nothing else, and is written by the next run', async () => {
  await bed.apply(makeKey());
  bed.cluster.inject(({ subresource, name }) =>
    subresource === 'status' && name === 'chat' ? 'forbidden' : undefined,
  );
  expect((await bed.sweep()).failed).toEqual({ WriteStatus: 1 });
  expect(await bed.works(await bed.value('chat-key'))).toBe(true);
  bed.cluster.inject(() => undefined);
  expect((await bed.sweep()).actions).toMatchObject({ WriteStatus: 1 });
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('an edit that could not be carried leaves the key not ready, until a run has really carried it', async () => {
  await bed.apply(makeKey());
  await bed.sweep();
  await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '5' } });
  bed.onDatabase = (method) => {
    if (method === 'putScope') throw new Error('the disk is full');
  };
  for (let run = 0; run < 2; run += 1) {
    expect((await bed.sweep()).failed).toEqual({ PutScope: 1 });
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False ReconcileFailed');
  }
  bed.onDatabase = () => undefined;
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
  expect(await policyOf('chat')).toMatchObject({ budget: { limit: '5000000000' } });
});

test('an event that cannot be written stops nothing', async () => {
  await bed.apply(makeKey());
  bed.cluster.inject(({ resource, verb }) =>
    verb === 'create' && resource.plural === 'events' ? 'forbidden' : undefined,
  );
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('an alias is free text: slashes, quotes and any letters neither break nor collide', async () => {
  const aliases = ['a/b?c=d&e', `"; drop table claim; --`, `it's {"json":true}`, 'ключ 钥匙 🔑', 'A', 'a', '%2F..'];
  await bed.apply(...aliases.map((keyAlias, index) => makeKey({ keyAlias }, `k${index}`)));
  expect((await bed.sweep()).failed).toEqual({});
  for (const [index] of aliases.entries()) expect(await bed.ready(virtualKeys, `k${index}`)).toBe('True Ready');
});

test('credentials of a model whose Secret has a similar name are not mixed up', async () => {
  const entry = (name: string) => ({
    modelName: name,
    identifier: name,
    requiresAuth: true,
    modelCredentials: { nameRef: name, keys: { apiKey: 'apiKey' } },
    gatewayParams: { model: `openai/${name}` },
  });
  await bed.apply(makeSecret('gpt-4o', { apiKey: 'x' }));
  await bed.edit(gatewayInstances, 'main', { spec: { models: [entry('gpt'), entry('gpt-4o')] } });
  await bed.sweep();
  expect((await bed.status(gatewayInstances, 'main')).models).toMatchObject([
    { identifier: 'gpt', ready: false, reason: 'SecretNotFound' },
    { identifier: 'gpt-4o', ready: true },
  ]);
});

test('model names are served as they are written', async () => {
  await bed.apply(makeKey({ models: ['small', 'free'] }));
  await bed.sweep();
  expect(await policyOf('chat')).toMatchObject({ models: ['small', 'free'] });
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
});

/** Happens in the next run after it has read the keys, and before it reads their instances. */
async function overtake(happens: () => Promise<void>): Promise<void> {
  let overtaken = false;
  bed.cluster.inject(async ({ verb, resource }) => {
    if (overtaken || verb !== 'list' || resource.plural !== 'gatewayinstances') return undefined;
    overtaken = true;
    await happens();
    return undefined;
  });
}

test('an edit that overtakes a slow run is not undone by it', async () => {
  await bed.apply(makeKey());
  await bed.sweep();
  await overtake(async () => {
    await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '30', blocked: true } });
    await bed.hint('VirtualKey', 'chat');
  });
  await bed.sweep();
  expect(await policyOf('chat')).toMatchObject({ blocked: true, budget: { limit: '30000000000' } });
});

test('a key that is deleted while a slow run has it in hand does not come back', async () => {
  await bed.apply(makeKey());
  await bed.sweep();
  const value = await bed.value('chat-key');
  await overtake(async () => {
    await bed.remove(virtualKeys, 'chat');
    await bed.hint('VirtualKey', 'chat');
  });
  await bed.sweep();
  const uid = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  expect(await bed.database().claims(uid)).toEqual([]);
  expect(await bed.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
  expect(await bed.works(value)).toBe(false);
});

test('a finalizer that somebody else sets while a run is at work stays', async () => {
  await bed.apply(makeKey());
  await overtake(async () => {
    await bed.edit(virtualKeys, 'chat', { metadata: { finalizers: ['example.com/theirs'] } });
  });
  expect((await bed.sweep()).failed).toEqual({});
  const key = await bed.get(virtualKeys, 'chat');
  expect(key?.metadata.finalizers).toEqual(['example.com/theirs', 'gateway-operator.dev/cleanup']);
  expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('an object whose spec an older version let in says so, and can be deleted', async () => {
  await bed.apply(makeKey());
  await bed.sweep();
  await bed.edit(virtualKeys, 'chat', { spec: { budgetDuration: '99999999d' } });
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'chat')).toBe('False InvalidSpec');
  await bed.remove(virtualKeys, 'chat');
  await bed.sweep();
  expect(await bed.get(virtualKeys, 'chat')).toBeUndefined();
});

test('objects, Secrets and statuses of any shape stop nobody else', async () => {
  const specs: ReadonlyArray<unknown> = [
    null,
    {},
    [],
    'x',
    { connectionRef: null },
    { connectionRef: { instanceRef: { name: 'main' } } },
  ];
  const statuses: ReadonlyArray<unknown> = [
    null,
    [],
    'x',
    { conditions: 'x' },
    { conditions: [{}] },
    { keyID: 7, keyValue: {}, currentSpend: [] },
  ];
  await bed.apply(makeKey(), makeKey({}, 'good'), makeUser(), makeTeam());
  await bed.sweep();
  const before = await bed.value('good-key');
  for (const [kind, name] of [
    [virtualKeys, 'chat'],
    [users, 'alice'],
    [teams, 'research'],
    [gatewayInstances, 'bad'],
  ] as const) {
    if (kind === gatewayInstances) await bed.apply(makeInstance({}, 'bad'));
    const good = (await bed.get(kind, name))?.spec;
    for (const status of statuses) {
      await bed.cluster.patch(kind, 'default', name, { status: null }, 'status');
      await bed.cluster.patch(kind, 'default', name, { status }, 'status');
      expect((await bed.sweep()).failed).toEqual({});
      expect(await bed.ready(kind, name)).toBe('True Ready');
    }
    for (const spec of specs) {
      await bed.cluster.patch(kind, 'default', name, { spec: null });
      await bed.cluster.patch(kind, 'default', name, { spec });
      expect((await bed.sweep()).failed).toEqual({});
      expect(await bed.ready(kind, name)).toBe('False InvalidSpec');
      expect(await bed.ready(virtualKeys, 'good')).toBe('True Ready');
    }
    await bed.cluster.patch(kind, 'default', name, { spec: good });
    await bed.sweep();
    expect(await bed.ready(kind, name)).toBe('True Ready');
  }
  for (const data of [null, {}, { key: null }, { key: '' }, { key: btoa(''), other: 'AA==' }, { key: '//79' }]) {
    await bed.edit(RESOURCES.secrets, 'chat-key', { data });
    expect((await bed.sweep()).failed).toEqual({});
    expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect(await bed.works(await bed.value('chat-key'))).toBe(true);
  }
  expect(await bed.value('good-key')).toBe(before);
});

test('a run that is slow between its last look and its write never undoes a block that a faster one carried', async () => {
  await bed.apply(makeKey({ blocked: true }));
  await bed.sweep();
  await bed.edit(virtualKeys, 'chat', { spec: { blocked: false } });
  let isFirst = true;
  bed.onDatabase = async (method) => {
    if (method !== 'putScope' || !isFirst) return;
    isFirst = false;
    await bed.edit(virtualKeys, 'chat', { spec: { blocked: true, maxBudget: '11' } });
    bed.restart();
    await bed.sweep();
  };
  await bed.hint('VirtualKey', 'chat');
  expect(await policyOf('chat')).toMatchObject({ blocked: true, budget: { limit: '11000000000' } });
});
