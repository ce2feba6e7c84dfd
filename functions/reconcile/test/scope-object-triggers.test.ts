// Triggers for scope objects of an instance with many model entries: they read what they need, and leave the instance
// to others.
import { beforeEach, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

const ENTRIES = Array.from({ length: 40 }, (_, index) => `model-${index}`);
const models = ENTRIES.map((name) => ({
  modelName: name,
  identifier: name,
  requiresAuth: true,
  modelCredentials: { nameRef: name, keys: { apiKey: 'apiKey' } },
  gatewayParams: { model: `openai/${name}`, inputCostPerMillionTokens: '1', outputCostPerMillionTokens: '1' },
}));

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), ...ENTRIES.map((name) => makeSecret(name, { apiKey: 'x' })));
  await harness.apply(makeInstance({ models, allowedNamespaces: { from: 'All' } }));
});

const instanceReads = () =>
  harness.cluster.calls.flatMap(({ verb, resource, namespace, name = '' }) =>
    verb === 'get' && resource === RESOURCES.secrets && namespace === 'default' ? name : [],
  );
const loseCredentials = (...names: ReadonlyArray<string>) =>
  Promise.all(names.map((name) => harness.remove(RESOURCES.secrets, name)));

test.each([
  ['VirtualKey', 'chat', virtualKeys],
  ['User', 'alice', users],
  ['Team', 'research', teams],
])(
  'a trigger for a %s reads only the Secrets of database and counter store, and writes nothing else',
  async (...of) => {
    const [kind, name, resource] = of;
    await harness.apply(makeKey({}, 'chat', 'team-a'), makeUser({ autoCreateKey: false }, 'alice', 'team-a'));
    await harness.apply(makeTeam({}, 'research', 'team-a'));
    await harness.resync();
    await harness.edit(resource, name, { spec: { maxBudget: '7' } }, 'team-a');
    harness.cluster.calls.length = 0;
    const { actions } = await harness.trigger(kind, name, 'team-a');
    expect(instanceReads().sort()).toEqual(['db', 'store']);
    expect(actions).toEqual({ PutScope: 1, WriteStatus: 1 });
  },
);

test('a trigger for a VirtualKey of a new or edited instance reads all its Secrets, until a run has evaluated its spec', async () => {
  await harness.apply(makeKey());
  await harness.trigger('VirtualKey', 'chat');
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
  expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  await harness.edit(gatewayInstances, 'main', { spec: { models: models.slice(0, 3) } });
  harness.cluster.calls.length = 0;
  await harness.trigger('VirtualKey', 'chat');
  expect(instanceReads()).toEqual(expect.arrayContaining(['model-0', 'model-1', 'model-2']));
  harness.cluster.calls.length = 0;
  await harness.trigger('VirtualKey', 'chat');
  expect(instanceReads()).not.toContain('model-0');
});

test.each([
  ['one model entry cannot serve', ['model-3']],
  ['no model entry can serve', ENTRIES],
])(
  'if %s, a trigger for a VirtualKey changes no condition of the instance, and its own as a resync does',
  async (...of) => {
    const [, lost] = of;
    await harness.apply(makeKey());
    await harness.resync();
    const before = await harness.get(gatewayInstances, 'main');
    await loseCredentials(...lost);
    await harness.trigger('VirtualKey', 'chat');
    expect(await harness.get(gatewayInstances, 'main')).toEqual(before);
    await harness.resync();
    const seen = [await harness.get(gatewayInstances, 'main'), await harness.get(virtualKeys, 'chat')];
    await harness.trigger('VirtualKey', 'chat');
    await harness.edit(virtualKeys, 'chat', { metadata: { labels: { a: 'b' } } });
    await harness.trigger('VirtualKey', 'chat');
    expect(await harness.get(gatewayInstances, 'main')).toEqual(seen[0]);
    expect((await harness.get(virtualKeys, 'chat'))?.status).toEqual(seen[1]?.status);
    expect(await harness.ready(virtualKeys, 'chat')).toBe(lost === ENTRIES ? 'False InstanceNotReady' : 'True Ready');
  },
);

test('a trigger for a VirtualKey reports a database that does not answer, and leaves the instance to a resync', async () => {
  await harness.apply(makeKey());
  await harness.resync();
  const before = await harness.get(gatewayInstances, 'main');
  harness.refuse(true);
  await harness.trigger('VirtualKey', 'chat');
  expect(await harness.ready(virtualKeys, 'chat')).toBe('False InstanceNotReady');
  expect(await harness.get(gatewayInstances, 'main')).toEqual(before);
  await harness.resync();
  expect(await harness.ready(gatewayInstances, 'main')).toBe('False DatabaseUnreachable');
});

test('reads of a trigger for a scope object count for its namespace, those of other runs for the namespace of the object', async () => {
  await harness.apply(makeKey({}, 'chat', 'team-a'));
  const readFor = () =>
    new Set(
      harness.cluster.calls.flatMap(({ verb, name, body }) =>
        verb === 'list' || (verb === 'get' && name !== undefined) ? (body as { readFor?: string })?.readFor : [],
      ),
    );
  for (const run of [() => harness.resync(), () => harness.trigger('GatewayInstance', 'main')]) {
    harness.cluster.calls.length = 0;
    await run();
    expect(readFor()).toEqual(new Set([undefined]));
  }
  harness.cluster.calls.length = 0;
  await harness.trigger('VirtualKey', 'chat', 'team-a');
  expect(readFor()).toEqual(new Set(['team-a']));
});
