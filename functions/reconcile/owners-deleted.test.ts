// What becomes of keys when their user or team is deleted?
import { beforeEach, describe, expect, test } from 'vitest';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed, sha256 } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../test/reconcile/objects.ts';

let bed: Bed;
beforeEach(async () => {
  bed = createBed();
  await bed.apply(...makeSecrets(), makeInstance(), makeTeam(), makeUser());
  await bed.sweep();
});

describe('a user that is deleted', () => {
  test('takes its own key along, by the deletionPolicy of that key', async () => {
    const value = await bed.value('alice-key');
    await bed.remove(users, 'alice');
    await bed.sweep();
    expect(await bed.works(value)).toBe(false);
    expect(await bed.get(users, 'alice')).toBeUndefined();
  });

  test('whose key says Retain leaves that at work until somebody adopts it', async () => {
    await bed.edit(virtualKeys, 'alice', { spec: { deletionPolicy: 'Retain' } });
    await bed.sweep();
    const value = await bed.value('alice-key');
    await bed.remove(users, 'alice');
    await bed.sweep();
    bed.cluster.collectGarbage();
    await bed.sweep();
    expect(await bed.get(virtualKeys, 'alice')).toBeUndefined();
    const instance = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
    const found = await bed
      .database()
      .policies(instance)
      .find(sha256(value ?? ''));
    // Its user's budget goes on paying for it.
    expect(found?.scopes.map(({ kind, blocked }) => `${kind} ${blocked}`)).toEqual(['key false', 'user false']);
    expect(await bed.value('alice-key')).toBe(value);
  });

  test('stops the keys that name it, and they work again when it is back', async () => {
    await bed.apply(makeKey({ userRef: { name: 'alice' } }), makeKey({ userRef: { name: 'alice' } }, 'other'));
    await bed.edit(users, 'alice', { spec: { autoCreateKey: false } });
    await bed.sweep();
    await bed.remove(users, 'alice');
    await bed.sweep();
    expect(await bed.ready(virtualKeys, 'chat')).toBe('False UserNotFound');
    await bed.apply(makeUser({ autoCreateKey: false }));
    await bed.sweep();
    expect(await bed.ready(virtualKeys, 'chat')).toBe('True Ready');
  });
});

test('a team that is deleted stops the keys that name it, says so, and no longer pays for its members', async () => {
  await bed.edit(teams, 'research', { spec: { members: [{ name: 'alice' }] } });
  await bed.apply(makeKey({ teamRef: { name: 'research' } }));
  await bed.sweep();
  await bed.remove(teams, 'research');
  await bed.sweep();
  expect(await bed.ready(virtualKeys, 'chat')).toBe('False TeamNotFound');
  expect(await bed.ready(virtualKeys, 'alice')).toBe('True Ready');
  // The gateway can say so too, and says no longer that somebody blocked it.
  const instance = (await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const policyOf = async () => {
    const value = await bed.value('chat-key');
    return (
      await bed
        .database()
        .policies(instance)
        .find(sha256(value ?? ''))
    )?.key;
  };
  expect(await policyOf()).toMatchObject({ blocked: true, unpaid: 'TeamNotFound' });
  await bed.edit(virtualKeys, 'chat', { spec: { blocked: true } });
  await bed.sweep();
  expect((await policyOf())?.unpaid).toBeUndefined();
  await bed.edit(virtualKeys, 'chat', { spec: { blocked: false } });
  await bed.apply(makeTeam());
  await bed.sweep();
  expect(await policyOf()).toMatchObject({ blocked: false });
  expect((await policyOf())?.unpaid).toBeUndefined();
});

test('a team that only a user names stops the keys of that user that name none, at its own hint', async () => {
  await bed.edit(users, 'alice', { spec: { teamRefs: [{ name: 'research' }] } });
  await bed.apply(makeTeam({ teamAlias: 'Other' }, 'other'));
  await bed.apply(makeKey({ userRef: { name: 'alice' }, teamRef: { name: 'other' } }));
  await bed.sweep();
  const values = [await bed.value('alice-key'), await bed.value('chat-key')];
  await bed.remove(teams, 'research');
  await bed.hint('Team', 'research');
  const policies = bed.database().policies((await bed.get(gatewayInstances, 'main'))?.metadata.uid ?? '');
  const found = await Promise.all(values.map((value) => policies.find(sha256(value ?? ''))));
  expect(found.map((policy) => policy?.key.blocked)).toEqual([true, false]);
});

test.each([
  ['somebody else keeps by a finalizer', async () => bed.edit(users, 'alice', { metadata: { finalizers: ['a/b'] } })],
  ['waits for a database that is away', async () => bed.refuse(true)],
])('a user who is deleted and %s stops nobody from being told how they are', async (_, prepare) => {
  await bed.apply(makeKey({ userRef: { name: 'alice' } }), makeTeam({ teamAlias: 'Other' }, 'other'));
  await bed.sweep();
  await prepare();
  await bed.remove(users, 'alice');
  await bed.edit(virtualKeys, 'chat', { spec: { blocked: true } });
  await bed.edit(teams, 'other', { spec: { blocked: true } });
  for (let run = 0; run < 2; run += 1) expect((await bed.sweep()).failed).toEqual({});
  for (const [kind, name] of [
    [virtualKeys, 'chat'],
    [teams, 'other'],
  ] as const) {
    const { observedGeneration } = await bed.status(kind, name);
    expect(observedGeneration).toBe((await bed.get(kind, name))?.metadata.generation);
  }
});
