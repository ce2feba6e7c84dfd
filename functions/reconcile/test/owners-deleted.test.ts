// Keys whose user or team is deleted.
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { recordOf } from '../../../test/doubles/policies.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeTeam(), makeUser());
  await harness.resync();
});

describe('a user that is deleted', () => {
  test('has its own key deleted too, by the deletionPolicy of that key', async () => {
    const value = await harness.value('alice-key');
    await harness.remove(users, 'alice');
    await harness.resync();
    expect(await harness.works(value)).toBe(false);
    expect(await harness.get(users, 'alice')).toBeUndefined();
  });

  test('whose key has Retain keeps the key value and spend for the key that adopts it, and blocks it until then', async () => {
    await harness.edit(virtualKeys, 'alice', { spec: { deletionPolicy: 'Retain' } });
    await harness.resync();
    const value = await harness.value('alice-key');
    await harness.remove(users, 'alice');
    await harness.resync();
    harness.cluster.collectGarbage();
    await harness.resync();
    expect(await harness.get(virtualKeys, 'alice')).toBeUndefined();
    const instance = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    const found = await recordOf(harness.database().policies(instance), sha256(value ?? ''));
    expect(found?.scopes.map(({ kind, blocked }) => `${kind} ${blocked}`)).toEqual(['key true', 'namespace false']);
    expect(await harness.value('alice-key')).toBe(value);
    await harness.apply(makeKey({ keyAlias: 'alice' }, 'alice'));
    await harness.resync();
    expect(await harness.policy(value)).toMatchObject({ blocked: false, chargedScopeIds: [] });
    expect(await harness.value('alice-key')).toBe(value);
  });

  test('stops the keys that name it, and they work again when it is created again', async () => {
    await harness.apply(makeKey({ userRef: { name: 'alice' } }), makeKey({ userRef: { name: 'alice' } }, 'other'));
    await harness.edit(users, 'alice', { spec: { autoCreateKey: false } });
    await harness.resync();
    await harness.remove(users, 'alice');
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('False UserNotFound');
    await harness.apply(makeUser({ autoCreateKey: false }));
    await harness.resync();
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
  });
});

test('a deleted team stops the keys that name it, their status names it, and its members are no longer charged to it', async () => {
  await harness.edit(teams, 'research', { spec: { members: [{ name: 'alice' }] } });
  await harness.apply(makeKey({ teamRef: { name: 'research' } }));
  await harness.resync();
  await harness.remove(teams, 'research');
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('False TeamNotFound');
  expect(await harness.ready(virtualKeys, 'alice')).toBe('True Ready');
  // The policy has the reason too, except while spec.blocked is true.
  const instance = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const policyOf = async () => {
    const value = await harness.value('chat-key');
    return (await recordOf(harness.database().policies(instance), sha256(value ?? '')))?.key;
  };
  expect(await policyOf()).toMatchObject({ blocked: true, missingOwnerReason: 'TeamNotFound' });
  await harness.edit(virtualKeys, 'chat', { spec: { blocked: true } });
  await harness.resync();
  expect((await policyOf())?.missingOwnerReason).toBeUndefined();
  await harness.edit(virtualKeys, 'chat', { spec: { blocked: false } });
  await harness.apply(makeTeam());
  await harness.resync();
  expect(await policyOf()).toMatchObject({ blocked: false });
  expect((await policyOf())?.missingOwnerReason).toBeUndefined();
});

test('a deleted team that only a user names stops the keys of that user without a teamRef, in the trigger for the team', async () => {
  await harness.edit(users, 'alice', { spec: { teamRefs: [{ name: 'research' }] } });
  await harness.apply(makeTeam({ teamAlias: 'Other' }, 'other'));
  await harness.apply(makeKey({ userRef: { name: 'alice' }, teamRef: { name: 'other' } }));
  await harness.resync();
  const values = [await harness.value('alice-key'), await harness.value('chat-key')];
  await harness.remove(teams, 'research');
  await harness.trigger('Team', 'research');
  const policies = harness.database().policies((await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '');
  const found = await Promise.all(values.map((value) => recordOf(policies, sha256(value ?? ''))));
  expect(found.map((policy) => policy?.key.blocked)).toEqual([true, false]);
});

test.each([
  [
    'is kept by a finalizer of another program',
    async () => harness.edit(users, 'alice', { metadata: { finalizers: ['a/b'] } }),
  ],
  ['waits for a database that cannot be reached', async () => harness.refuse(true)],
])('a user who is deleted and %s does not keep other statuses from being written', async (_, prepare) => {
  await harness.apply(makeKey({ userRef: { name: 'alice' } }), makeTeam({ teamAlias: 'Other' }, 'other'));
  await harness.resync();
  await prepare();
  await harness.remove(users, 'alice');
  await harness.edit(virtualKeys, 'chat', { spec: { blocked: true } });
  await harness.edit(teams, 'other', { spec: { blocked: true } });
  for (let run = 0; run < 2; run += 1) expect((await harness.resync()).failed).toEqual({});
  for (const [kind, name] of [
    [virtualKeys, 'chat'],
    [teams, 'other'],
  ] as const) {
    const { observedGeneration } = await harness.status(kind, name);
    expect(observedGeneration).toBe((await harness.get(kind, name))?.metadata.generation);
  }
});
