// A spec is in force after a restore of the cluster, in which generations are lower than those in the database.
import { beforeEach, expect, test } from 'vitest';
import type { KeyPolicy } from '#core/ports/policy.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createChat } from '../../../test/reconcile/chat.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeSecrets } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});
const { chat, ready, working, editKey } = createChat(() => harness);

/** The database has the policy of a later generation than the restored object. */
async function store(generation: number, value: string, more: Partial<KeyPolicy> = {}): Promise<void> {
  const instanceUid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const policy = await harness.policy(value);
  const claim = (await harness.database().claims(instanceUid)).find(({ kind }) => kind === 'key');
  if (policy === undefined || claim === undefined) throw new Error('the key does not work');
  const { kind, alias, holder } = claim;
  await harness.database().putScope({ instanceUid, kind, alias, holder, policy: { ...policy, ...more }, generation });
}

test('a block is in force after one run, and each later edit too', async () => {
  const value = await working();
  await store(9, value);
  await editKey({ blocked: true });
  expect((await harness.resync()).failed).toEqual({});
  expect(await harness.policy(value)).toMatchObject({ blocked: true });
  expect(await ready()).toBe('False Blocked');
  await editKey({ blocked: false, maxBudget: '3' });
  await harness.resync();
  expect(await harness.policy(value)).toMatchObject({ blocked: false, budget: { limit: '3000000000' } });
  expect((await harness.resync()).actions).toEqual({});
});

test('a key that is deleted is retained', async () => {
  const value = await working({ deletionPolicy: 'Retain' });
  await store(9, value);
  await harness.remove(virtualKeys, 'chat');
  await harness.resync();
  expect(await harness.get(virtualKeys, 'chat')).toBeUndefined();
  expect(await harness.policy(value)).toMatchObject({ retained: 'chat-key' });
});

test('a retained key that is restored has the policy of its spec', async () => {
  const value = await working({ deletionPolicy: 'Retain' });
  await store(9, value, { retained: 'chat-key', blocked: true });
  await harness.resync();
  expect(await harness.policy(value)).toMatchObject({ blocked: false });
  expect(await harness.policy(value)).not.toHaveProperty('retained');
  expect(await ready()).toBe('True Ready');
});

test('a run with an outdated list does not overwrite a later policy', async () => {
  const value = await working();
  await editKey({ maxBudget: '3' });
  const limits = new Set<string | undefined>();
  harness.onDatabase = async (method) => {
    limits.add((await harness.policy(value))?.budget?.limit);
    if (method !== 'putScope' || limits.has('later')) return;
    limits.add('later');
    await editKey({ maxBudget: '2' });
    await store(3, value);
  };
  await harness.resync();
  expect(await harness.policy(value)).toMatchObject({ budget: { limit: '2000000000' } });
  expect([...limits]).toEqual(['10000000000', 'later', '2000000000']);
});

test('no status shows a policy that other runs overwrite again and again', async () => {
  const value = await working();
  const { conditions } = await chat();
  let generation = 9;
  harness.onDatabase = async (method) => {
    generation += 1;
    if (method === 'putScope') await store(generation, value);
  };
  await editKey({ blocked: true });
  await harness.resync();
  expect(await harness.policy(value)).toMatchObject({ blocked: false });
  expect(await chat()).toMatchObject({ isActive: true, observedGeneration: 1, conditions });
  harness.onDatabase = () => undefined;
  await harness.resync();
  expect(await harness.policy(value)).toMatchObject({ blocked: true });
  expect(await ready()).toBe('False Blocked');
});
