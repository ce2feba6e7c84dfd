// A namespace whose VirtualKeys, Users and Teams are too large is not changed, and does not delay others.
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { KeyPolicy } from '#core/ports/policy.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { FINALIZER } from '#crds/names/group.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../limits.ts';

const MIB = 1024 * 1024;
const small = { limits: { ...PROCESS_LIMITS, objectBytes: 4 * MIB } };

/** Members of a large Team. Only the first member exists. */
const membersWith = (first: string) =>
  [first, ...Array.from({ length: 1000 }, (_, index) => `${index}`.padEnd(245, 'x'))].map((name) => ({ name }));

const applyTeams = async (harness: Harness, count: number, namespace: string) => {
  for (let index = 0; index < count; index += 1)
    await harness.apply(
      makeTeam({ teamAlias: `${namespace}-${index}`, members: membersWith('nobody') }, `a-${index}`, namespace),
    );
};

/** A VirtualKey of some 40 KiB. */
const makeLargeKey = (index: number, namespace = 'default') =>
  makeKey(
    {
      modelMaxBudget: Object.fromEntries(
        Array.from({ length: 64 }, (_, model) => [
          `${model}`.padStart(60, 'm'),
          { maxBudget: '1', budgetDuration: '1d' },
        ]),
      ),
      secretTemplate: { data: { a: 'ä'.repeat(4000), b: '→'.repeat(4000), c: '→'.repeat(4000) } },
    },
    `large-${index}`,
    namespace,
  );

/** The complete policies by which a gateway serves the keys: claims have only digests. */
const policies = async (harness: Harness) => {
  const ofKeys = harness.cluster.objects(virtualKeys).map(async ({ metadata: { name, namespace } }) => {
    const value = await harness.value(`${name}-key`, namespace);
    return [name, await harness.policy(value)] as const;
  });
  return new Map(await Promise.all(ofKeys));
};

/** Keys that are charged to a Team: through its member, through the User's teamRefs, and through their own teamRef. */
async function applyTeamWithKeys(harness: Harness) {
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({}, 'other', 'b'));
  await harness.apply(makeUser({ autoCreateKey: false }, 'alice', 'a'));
  await harness.apply(makeUser({ autoCreateKey: false, teamRefs: [{ name: 'team' }] }, 'bob', 'a'));
  await harness.apply(makeTeam({ maxBudget: '5', members: membersWith('alice') }, 'team', 'a'));
  await harness.apply(
    makeKey({ userRef: { name: 'alice' } }, 'of-member', 'a'),
    makeKey({ userRef: { name: 'bob' } }, 'of-user', 'a'),
    makeKey({ teamRef: { name: 'team' } }, 'of-team', 'a'),
  );
  await harness.resync();
}

const KEYS = ['of-member', 'of-user', 'of-team'];

test('a Team of a namespace that is too large still limits its keys, and they continue working', async () => {
  const harness = createHarness(small);
  await applyTeamWithKeys(harness);
  const before = await policies(harness);
  for (const alias of KEYS)
    expect(before.get(alias)).toMatchObject({
      blocked: false,
      chargedScopeIds: { length: alias === 'of-team' ? 1 : 2 },
    });
  await applyTeams(harness, 15, 'a');
  await harness.edit(virtualKeys, 'other', { spec: { maxBudget: '20' } }, 'b');
  const report = await harness.resync();
  expect(report.oversizedNamespaces).toEqual([
    { namespace: 'a', objects: 21, size: expect.stringMatching(/^\d MiB$/), limit: '4 MiB, 6 MiB of all namespaces' },
  ]);
  expect(JSON.stringify(harness.log.lines)).toContain('a namespace is oversized');
  expect(await harness.metrics.render()).toContain('gateway_operator_reconcile_oversized_namespaces 1');
  const after = await policies(harness);
  for (const alias of KEYS) {
    expect(after.get(alias)).toEqual(before.get(alias));
    expect(await harness.ready(virtualKeys, alias, 'a')).toBe('True Ready');
    expect(await harness.works(await harness.value(`${alias}-key`, 'a'))).toBe(true);
  }
  // Another namespace on the same instance is planned for.
  expect(after.get('other')).toMatchObject({ budget: { limit: '20000000000' } });
  // The number of keys is unknown now.
  expect(await harness.status(gatewayInstances, 'main')).toMatchObject({ keys: { total: 4, active: 4 } });
  expect(await harness.ready(teams, 'a-1', 'a')).toBe('nothing');
});

test('a trigger loads only the Teams that concern it, and leaves objects that are too large to the next resync', async () => {
  const harness = createHarness(small);
  await applyTeamWithKeys(harness);
  await applyTeams(harness, 15, 'a');
  for (const alias of KEYS) await harness.edit(virtualKeys, alias, { spec: { maxBudget: '20' } }, 'a');
  const before = await policies(harness);
  for (const alias of KEYS) {
    expect((await harness.trigger('VirtualKey', alias, 'a')).oversizedNamespaces).toBe(undefined);
    const { chargedScopeIds } = before.get(alias) as { chargedScopeIds: ReadonlyArray<string> };
    expect((await policies(harness)).get(alias)).toMatchObject({
      chargedScopeIds,
      blocked: false,
      budget: { limit: '20000000000' },
    });
  }
  expect((await harness.trigger('User', 'bob', 'a')).oversizedNamespaces).toBe(undefined);
  const writes = harness.writes();
  const report = await harness.trigger('Team', 'team', 'a');
  expect(report).toMatchObject({ actions: {}, failed: {}, oversizedNamespaces: [{ namespace: 'a' }] });
  expect(report.underWay).toBe(undefined);
  expect(harness.writes()).toBe(writes);
});

test('an instance is planned for, however large the keys in its namespace are', async () => {
  const harness = createHarness(small);
  await harness.apply(...makeSecrets(), makeInstance());
  await harness.apply(
    makeKey({}, 'own'),
    makeKey({}, 'victim', 'b'),
    makeKey({ deletionPolicy: 'Retain' }, 'leaked', 'b'),
  );
  await harness.resync();
  const [own, leaked] = [await harness.value('own-key'), await harness.value('leaked-key', 'b')];
  await harness.remove(virtualKeys, 'leaked', 'b');
  await harness.resync();
  expect(await harness.works(leaked)).toBe(true);
  for (let index = 0; index < 200; index += 1) await harness.apply(makeLargeKey(index));
  await harness.remove(RESOURCES.secrets, 'leaked-key', 'b');
  expect((await harness.resync()).oversizedNamespaces).toMatchObject([{ namespace: 'default', objects: 201 }]);
  expect(await harness.ready(gatewayInstances, 'main')).toBe('True Ready');
  expect(await harness.works(leaked)).toBe(false);
  expect(await harness.works(own)).toBe(true);
  expect(await harness.aliases()).toEqual(expect.arrayContaining(['own', 'victim']));
  // The trigger after an edit of the instance.
  await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
  await harness.trigger('GatewayInstance', 'main');
  expect(await harness.ready(virtualKeys, 'victim', 'b')).toBe('False NamespaceNotAllowed');
  expect(await harness.works(own)).toBe(true);
});

test('deletions in a namespace that is too large are done, and then the namespace is planned again', async () => {
  const harness = createHarness(small);
  await applyTeamWithKeys(harness);
  await applyTeams(harness, 12, 'a');
  await harness.resync();
  const value = await harness.value('of-team-key', 'a');
  await harness.remove(virtualKeys, 'of-team', 'a');
  await harness.remove(users, 'bob', 'a');
  expect((await harness.resync()).oversizedNamespaces).toHaveLength(1);
  expect(await harness.get(virtualKeys, 'of-team', 'a')).toBe(undefined);
  expect(await harness.get(users, 'bob', 'a')).toBe(undefined);
  expect(await harness.works(value)).toBe(false);
  for (let index = 0; index < 12; index += 1) await harness.remove(teams, `a-${index}`, 'a');
  expect((await harness.resync()).oversizedNamespaces).toBe(undefined);
  expect(await harness.ready(virtualKeys, 'of-user', 'a')).toBe('False UserNotFound');
  expect(await harness.ready(virtualKeys, 'of-member', 'a')).toBe('True Ready');
});

test.each([
  ['no other namespace', { from: 'Same' }],
  ['other namespaces', { from: 'Selector', selector: { matchLabels: { 'kubernetes.io/metadata.name': 'b' } } }],
])('keys of a namespace that is too large stop working when the instance allows %s', async (_, allowedNamespaces) => {
  const harness = createHarness(small);
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({}, 'key', 'a'));
  await harness.resync();
  const value = await harness.value('key-key', 'a');
  await applyTeams(harness, 15, 'a');
  expect((await harness.resync()).oversizedNamespaces).toMatchObject([{ namespace: 'a' }]);
  expect(await harness.works(value)).toBe(true);
  await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces } });
  await harness.resync();
  expect(await harness.works(value)).toBe(false);
});

test('large deleted Teams are all cleaned up, some in each run', async () => {
  const harness = createHarness(small);
  await harness.apply(...makeSecrets(), makeInstance());
  await applyTeams(harness, 9, 'a');
  await harness.resync();
  for (let index = 9; index < 40; index += 1)
    await harness.apply(makeTeam({ members: membersWith('nobody'), teamAlias: `${index}` }, `a-${index}`, 'a'));
  await harness.resync();
  for (const team of harness.cluster.objects(teams))
    await harness.edit(teams, team.metadata.name, { metadata: { finalizers: [FINALIZER] } }, 'a');
  for (const team of harness.cluster.objects(teams)) await harness.remove(teams, team.metadata.name, 'a');
  const left: number[] = [];
  for (let turn = 0; turn < 6; turn += 1) {
    await harness.resync();
    left.push(harness.cluster.objects(teams).length);
  }
  expect(left[0]).toBeGreaterThan(0);
  expect(left[0]).toBeLessThan(40);
  expect(left.at(-1)).toBe(0);
  expect(await harness.aliases()).toEqual([]);
});

test('in a namespace that is too large only claims of objects that are gone are retired, within the deletion guard', async () => {
  const harness = createHarness(small);
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({ deletionPolicy: 'Retain' }, 'leaked', 'a'));
  for (let index = 0; index < 30; index += 1)
    await harness.apply(makeKey({}, `a${index}`, 'a'), makeKey({}, `b${index}`, 'b'));
  await harness.resync();
  const leaked = await harness.value('leaked-key', 'a');
  await harness.remove(virtualKeys, 'leaked', 'a');
  await harness.resync();
  await applyTeams(harness, 15, 'a');
  const lose = async (namespace: string, from: number, to: number) => {
    for (let index = from; index < to; index += 1) {
      await harness.edit(virtualKeys, `${namespace}${index}`, { metadata: { finalizers: null } }, namespace);
      await harness.remove(virtualKeys, `${namespace}${index}`, namespace);
    }
  };
  const count = async (namespace: string) =>
    (await harness.aliases()).filter((alias) => alias.startsWith(namespace)).length;
  await lose('a', 0, 3);
  await lose('b', 0, 3);
  await harness.remove(RESOURCES.secrets, 'leaked-key', 'a');
  expect(await harness.works(leaked)).toBe(true);
  expect(await harness.resync()).toMatchObject({ actions: { RetireScope: 7 }, oversizedNamespaces: [{}] });
  expect(await harness.works(leaked)).toBe(false);
  expect([await count('a'), await count('b')]).toEqual([27, 27]);
  await lose('a', 3, 20);
  await lose('b', 3, 6);
  expect((await harness.resync()).guarded).toMatchObject([{ action: 'RetireScope', count: 17, total: 27 }]);
  expect([await count('a'), await count('b')]).toEqual([27, 24]);
});

test.each([
  [virtualKeys, 'of-team', ['of-team']],
  [users, 'alice', ['of-member']],
  [teams, 'team', KEYS],
] as const)('a $kind of a namespace that is too large is blocked by its spec', async (kind, name, stopped) => {
  const harness = createHarness(small);
  await applyTeamWithKeys(harness);
  const before = await policies(harness);
  await applyTeams(harness, 15, 'a');
  await harness.edit(kind, name, { spec: { blocked: true } }, 'a');
  expect((await harness.resync()).oversizedNamespaces).toHaveLength(1);
  expect(await blockedKeys(harness)).toEqual(stopped.toSorted());
  // All else stays as it is, and nothing is left to do.
  if (kind === virtualKeys)
    expect(await policies(harness)).toEqual(before.set(name, { ...before.get(name), blocked: true } as KeyPolicy));
  expect((await harness.resync()).actions).toEqual({});
  // An operator that restarts with a trigger does not undo it, and the end of the block waits for the namespace.
  await harness.edit(kind, name, { spec: { blocked: false } }, 'a');
  await harness.resync();
  expect(await blockedKeys(harness)).toEqual(stopped.toSorted());
  for (let index = 0; index < 15; index += 1) await harness.remove(teams, `a-${index}`, 'a');
  await harness.resync();
  await harness.resync();
  expect(await blockedKeys(harness)).toEqual([]);
});

/** The names of keys whose values a gateway refuses because of a block. */
async function blockedKeys(harness: Harness): Promise<ReadonlyArray<string>> {
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const ofKeys = KEYS.map(async (name) => {
    const hash = sha256((await harness.value(`${name}-key`, 'a')) ?? '');
    const record = (await harness.database().policies(uid).find([hash])).get(hash);
    return record?.scopes?.some(({ blocked }) => blocked) === false ? [] : [name];
  });
  return (await Promise.all(ofKeys)).flat().toSorted();
}
