// Errors that users of other operators have reported: each test is a guarantee that those operators lacked.
import { beforeEach, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness, type Status } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});
const policyOf = async (alias: string) => {
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  return (await harness.database().claims(uid)).find((claim) => claim.alias === alias)?.policy;
};

test('the next run uses a rotated database password, for every key', async () => {
  await harness.apply(makeKey());
  await harness.resync();
  await harness.apply(makeSecret('db', { host: 'other', username: 'u', password: 'rotated', dbname: 'gateway' }));
  const report = await harness.resync();
  expect(report.failed).toEqual({});
  const { conditions } = await harness.status(gatewayInstances, 'main');
  expect(conditions?.find(({ type }) => type === 'DatabaseReady')?.message).toContain('other:5432');
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test.each([
  ['maxBudget', { maxBudget: '26' }, { budget: { limit: '26000000000' } }],
  ['a budget of zero', { maxBudget: '0' }, { budget: { limit: '0' } }],
  ['budgetDuration', { budgetDuration: '7d' }, { budget: { duration: '7d' } }],
  ['models', { models: ['small'] }, { models: ['small'] }],
  ['blocked', { blocked: true }, { blocked: true }],
])('an edit of %s of a user or a team is in force after one run, with one write', async (_, spec, expected) => {
  await harness.apply(makeUser({ autoCreateKey: false }), makeTeam());
  await harness.resync();
  await harness.edit(users, 'alice', { spec });
  await harness.edit(teams, 'research', { spec });
  expect((await harness.resync()).actions).toMatchObject({ PutScope: 2 });
  expect(await policyOf('alice@example.com')).toMatchObject(expected);
  expect(await policyOf('research')).toMatchObject(expected);
  expect((await harness.resync()).actions).toEqual({});
});

test('clearing a budget reaches the gateway: no budget is not a budget of zero', async () => {
  await harness.apply(makeUser({ autoCreateKey: false }));
  await harness.resync();
  await harness.edit(users, 'alice', { spec: { maxBudget: null, budgetDuration: null } });
  await harness.resync();
  expect(await policyOf('alice@example.com')).not.toHaveProperty('budget');
  expect(await harness.status(users, 'alice')).not.toHaveProperty('currentSpend');
  expect(await harness.ready(users, 'alice')).toBe('True Ready');
});

test('a Secret that cannot be written leaves no working value that nobody has, and the next run succeeds', async () => {
  await harness.apply(makeKey());
  harness.cluster.inject(({ verb, resource }) =>
    verb === 'create' && resource.plural === 'secrets' ? 'forbidden' : undefined,
  );
  const report = await harness.resync();
  expect(report.failed).toEqual({ PutSecret: 1 });
  expect(await harness.ready(virtualKeys, 'chat')).toBe('False ReconcileFailed');
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  expect((await harness.database().claims(uid)).flatMap(({ values }) => values)).toEqual([]);
  harness.cluster.inject(() => undefined);
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('a status that cannot be written stops nothing else, and is written by the next run', async () => {
  await harness.apply(makeKey());
  harness.cluster.inject(({ subresource, name }) =>
    subresource === 'status' && name === 'chat' ? 'forbidden' : undefined,
  );
  expect((await harness.resync()).failed).toEqual({ WriteStatus: 1 });
  expect(await harness.works(await harness.value('chat-key'))).toBe(true);
  harness.cluster.inject(() => undefined);
  expect((await harness.resync()).actions).toMatchObject({ WriteStatus: 1 });
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('an edit that could not be written leaves the key not ready until a run has written it', async () => {
  await harness.apply(makeKey());
  await harness.resync();
  await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '5' } });
  harness.onDatabase = (method) => {
    if (method === 'putScope') throw new Error('the disk is full');
  };
  for (let run = 0; run < 2; run += 1) {
    expect((await harness.resync()).failed).toEqual({ PutScope: 1 });
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False ReconcileFailed');
  }
  harness.onDatabase = () => undefined;
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  expect(await policyOf('chat')).toMatchObject({ budget: { limit: '5000000000' } });
});

test('an event that cannot be written stops nothing', async () => {
  await harness.apply(makeKey());
  harness.cluster.inject(({ resource, verb }) =>
    verb === 'create' && resource.plural === 'events' ? 'forbidden' : undefined,
  );
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('an alias is free text: slashes, quotes and other characters cause neither errors nor collisions', async () => {
  const aliases = ['a/b?c=d&e', `"; drop table claim; --`, `it's {"json":true}`, 'ключ 钥匙 🔑', 'A', 'a', '%2F..'];
  await harness.apply(...aliases.map((keyAlias, index) => makeKey({ keyAlias }, `k${index}`)));
  expect((await harness.resync()).failed).toEqual({});
  for (const [index] of aliases.entries()) expect(await harness.ready(virtualKeys, `k${index}`)).toBe('True Ready');
});

test('credentials of a model whose Secret has a similar name are not mixed up', async () => {
  const entry = (name: string) => ({
    modelName: name,
    identifier: name,
    requiresAuth: true,
    modelCredentials: { nameRef: name, keys: { apiKey: 'apiKey' } },
    gatewayParams: { model: `openai/${name}` },
  });
  await harness.apply(makeSecret('gpt-4o', { apiKey: 'x' }));
  await harness.edit(gatewayInstances, 'main', { spec: { models: [entry('gpt'), entry('gpt-4o')] } });
  await harness.resync();
  expect((await harness.status(gatewayInstances, 'main')).models).toMatchObject([
    { identifier: 'gpt', ready: false, reason: 'SecretNotFound' },
    { identifier: 'gpt-4o', ready: true },
  ]);
});

test('model names are served as they are written', async () => {
  await harness.apply(makeKey({ models: ['small', 'free'] }));
  await harness.resync();
  expect(await policyOf('chat')).toMatchObject({ models: ['small', 'free'] });
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
});

/** Changes something in the next run after it has read the keys, and before it reads their instances. */
async function overtake(happens: () => Promise<void>): Promise<void> {
  let overtaken = false;
  harness.cluster.inject(async ({ verb, resource }) => {
    if (overtaken || verb !== 'list' || resource.plural !== 'gatewayinstances') return undefined;
    overtaken = true;
    await happens();
    return undefined;
  });
}

test('a slow run does not undo an edit that was made meanwhile', async () => {
  await harness.apply(makeKey());
  await harness.resync();
  await overtake(async () => {
    await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '30', blocked: true } });
    await harness.trigger('VirtualKey', 'chat');
  });
  await harness.resync();
  expect(await policyOf('chat')).toMatchObject({ blocked: true, budget: { limit: '30000000000' } });
});

test('a slow run does not restore a key that was deleted meanwhile', async () => {
  await harness.apply(makeKey());
  await harness.resync();
  const value = await harness.value('chat-key');
  await overtake(async () => {
    await harness.remove(virtualKeys, 'chat');
    await harness.trigger('VirtualKey', 'chat');
  });
  await harness.resync();
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  expect(await harness.database().claims(uid)).toEqual([]);
  expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
  expect(await harness.works(value)).toBe(false);
});

test('a finalizer that another program adds during a run stays', async () => {
  await harness.apply(makeKey());
  await overtake(async () => {
    await harness.edit(virtualKeys, 'chat', { metadata: { finalizers: ['example.com/theirs'] } });
  });
  expect((await harness.resync()).failed).toEqual({});
  const key = await harness.get(virtualKeys, 'chat');
  expect(key?.metadata.finalizers).toEqual(['example.com/theirs', 'gateway-operator.dev/cleanup']);
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
});

test('an object whose spec only an older version accepted reports that, and can be deleted', async () => {
  await harness.apply(makeKey());
  await harness.resync();
  await harness.edit(virtualKeys, 'chat', { spec: { budgetDuration: '99999999d' } });
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('False InvalidSpec');
  await harness.remove(virtualKeys, 'chat');
  await harness.resync();
  expect(await harness.get(virtualKeys, 'chat')).toBeUndefined();
});

test.each([
  ['GatewayInstance', gatewayInstances, 'main'],
  ['VirtualKey', virtualKeys, 'chat'],
  ['User', users, 'alice'],
  ['Team', teams, 'research'],
] as const)(
  'a %s whose spec becomes invalid during a run is not planned by its previous spec',
  async (_, kind, name) => {
    harness = createHarness();
    await harness.apply(...makeSecrets(), makeInstance(), makeKey(), makeUser(), makeTeam());
    let isBroken = false;
    harness.onDatabase = async (method) => {
      if (method !== 'openInstance' && method !== 'putScope') return;
      await harness.cluster.patch(kind, 'default', name, { spec: null });
      isBroken = true;
    };
    const reasons = new Set<string>();
    harness.cluster.inject(({ verb, body, name: of, resource, subresource }) => {
      const ready = subresource === 'status' && resource === kind && of === name ? readyOf(body) : undefined;
      if (verb === 'patch' && isBroken && ready !== undefined) reasons.add(ready);
      return undefined;
    });
    const report = await harness.resync();
    expect(isBroken).toBe(true);
    expect(await harness.ready(kind, name)).toBe('False InvalidSpec');
    expect([...reasons]).toEqual(['InvalidSpec']);
    expect(report.failed).toEqual({});
    if (kind === virtualKeys) expect(await harness.get(RESOURCES.secrets, 'chat-key')).toBeUndefined();
  },
);

const readyOf = (body: unknown): string | undefined =>
  (body as { status?: Status }).status?.conditions?.find(({ type }) => type === 'Ready')?.reason;

test('objects, Secrets and statuses of any shape do not stop other objects', async () => {
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
  await harness.apply(makeKey(), makeKey({}, 'good'), makeUser(), makeTeam());
  await harness.resync();
  const before = await harness.value('good-key');
  for (const [kind, name] of [
    [virtualKeys, 'chat'],
    [users, 'alice'],
    [teams, 'research'],
    [gatewayInstances, 'bad'],
  ] as const) {
    if (kind === gatewayInstances) await harness.apply(makeInstance({}, 'bad'));
    const good = (await harness.get(kind, name))?.spec;
    for (const status of statuses) {
      await harness.cluster.patch(kind, 'default', name, { status: null }, 'status');
      await harness.cluster.patch(kind, 'default', name, { status }, 'status');
      expect((await harness.resync()).failed).toEqual({});
      expect(await harness.ready(kind, name)).toBe('True Ready');
    }
    for (const spec of specs) {
      await harness.cluster.patch(kind, 'default', name, { spec: null });
      await harness.cluster.patch(kind, 'default', name, { spec });
      expect((await harness.resync()).failed).toEqual({});
      expect(await harness.ready(kind, name)).toBe('False InvalidSpec');
      expect(await harness.ready(virtualKeys, 'good')).toBe('True Ready');
    }
    await harness.cluster.patch(kind, 'default', name, { spec: good });
    await harness.resync();
    expect(await harness.ready(kind, name)).toBe('True Ready');
  }
  for (const data of [null, {}, { key: null }, { key: '' }, { key: btoa(''), other: 'AA==' }, { key: '//79' }]) {
    await harness.edit(RESOURCES.secrets, 'chat-key', { data });
    expect((await harness.resync()).failed).toEqual({});
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
  }
  expect(await harness.value('good-key')).toBe(before);
});

test('a run that is slow between its last read and its write never undoes a block that a faster run wrote', async () => {
  await harness.apply(makeKey({ blocked: true }));
  await harness.resync();
  await harness.edit(virtualKeys, 'chat', { spec: { blocked: false } });
  let isFirst = true;
  harness.onDatabase = async (method) => {
    if (method !== 'putScope' || !isFirst) return;
    isFirst = false;
    await harness.edit(virtualKeys, 'chat', { spec: { blocked: true, maxBudget: '11' } });
    harness.restart();
    await harness.resync();
  };
  await harness.trigger('VirtualKey', 'chat');
  expect(await policyOf('chat')).toMatchObject({ blocked: true, budget: { limit: '11000000000' } });
});
