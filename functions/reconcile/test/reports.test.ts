// Reports of spend: thresholds and the soft budget of a key; and its tags and metadata in the policy.
import { beforeEach, describe, expect, test } from 'vitest';
import { member, textOf } from '#core/json/json.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { recordOf } from '../../../test/doubles/policies.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeUser } from '../../../test/reconcile/objects.ts';

const DAY = 86_400_000;

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const pass = (millis: number) => {
  harness.clock.pass(millis);
  return harness.resync();
};
const edit = (spec: object) => harness.edit(virtualKeys, 'chat', { spec });
const reached = async () => {
  const { conditions } = await harness.status(virtualKeys, 'chat');
  return conditions?.find(({ type }) => type === 'SoftBudgetReached');
};
const eventCount = () => harness.events('chat').filter((reason) => reason === 'SoftBudgetReached').length;

describe('a budget', () => {
  const shares = (name = 'chat') =>
    harness.cluster
      .objects(RESOURCES.events)
      .filter(
        ({ reason, involvedObject }) => reason === 'BudgetUsed' && textOf(member(involvedObject, 'name')) === name,
      )
      .map(({ message }) => message)
      .sort();
  beforeEach(async () => {
    await harness.apply(makeKey());
    await harness.resync();
  });

  test('has an event at 50, 80 and 95 per cent of its spend, once in a window each; only Ready reports its end', async () => {
    for (const dollars of ['4.9', '0.1', '1', '2', '1.4', '0.2', '0.4']) {
      await harness.spend('chat', dollars);
      await pass(1000);
      await pass(1000);
    }
    const until = 'in the window that ends at 2026-12-21T12:00:00Z';
    expect(shares()).toEqual([
      `this VirtualKey has spent 5 of 10 dollars ${until}: 50 per cent of its budget, or more`,
      `this VirtualKey has spent 8 of 10 dollars ${until}: 80 per cent of its budget, or more`,
      `this VirtualKey has spent 9.6 of 10 dollars ${until}: 95 per cent of its budget, or more`,
    ]);
    await pass(30 * DAY);
    await harness.spend('chat', '8');
    await pass(1000);
    expect(shares()).toHaveLength(4);
  });

  test('of a further window has events too, once in each of its windows, and its spend is in the status', async () => {
    await edit({ budgets: [{ maxBudget: '1', budgetDuration: '1h' }] });
    await harness.resync();
    await harness.spend('chat', '0.5');
    await pass(1000);
    await pass(1000);
    const eventCount =
      'this VirtualKey has spent 0.5 of 1 dollars in the window that ends at 2026-11-21T13:00:00Z: 50 per cent of its budget per 1h, or more';
    expect(shares()).toEqual([eventCount]);
    const { budgets } = await harness.status(virtualKeys, 'chat');
    expect(budgets).toEqual([{ budgetDuration: '1h', currentSpend: '0.5', budgetResetDate: '2026-11-21T13:00:00Z' }]);
    await pass(DAY / 24);
    await harness.spend('chat', '0.97');
    await pass(1000);
    expect(shares()).toHaveLength(2);
    expect(shares()[1]).toContain('95 per cent of its budget per 1h');
    await edit({ budgets: null });
    await harness.resync();
    expect((await harness.status(virtualKeys, 'chat')).budgets).toBeUndefined();
  });

  test('of a user has events too; a spend that exceeds it immediately is reported only by Ready', async () => {
    await harness.apply(makeUser({ autoCreateKey: false }));
    await harness.resync();
    await harness.spend('alice@example.com', '13');
    await harness.spend('chat', '10');
    await pass(1000);
    expect([shares('alice').length, shares('chat').length]).toEqual([1, 0]);
  });
});

describe('a key with a softBudget', () => {
  beforeEach(async () => {
    await harness.apply(makeKey({ softBudget: '5' }));
    await harness.resync();
  });

  test('is reported from the moment when its spend reaches the softBudget, and continues working', async () => {
    expect(await reached()).toMatchObject({ status: 'False', reason: 'BelowSoftBudget' });
    await harness.spend('chat', '4.999999999');
    await pass(1000);
    expect(await reached()).toMatchObject({ status: 'False' });
    await harness.spend('chat', '0.000000001');
    await pass(1000);
    expect(await reached()).toMatchObject({
      status: 'True',
      reason: 'SoftBudgetReached',
      message:
        'the softBudget of 5 dollars is spent in the window that ends at 2026-12-21T12:00:00Z: the VirtualKey works until it has spent 10',
    });
    expect(await harness.ready(virtualKeys, 'chat')).toBe('True Ready');
    expect(await harness.works(await harness.value('chat-key'))).toBe(true);
  });

  test('is reported once in a window, however much more it spends, and again in the next window', async () => {
    await harness.spend('chat', '6');
    await pass(1000);
    await harness.spend('chat', '1');
    await pass(1000);
    harness.restart();
    await pass(1000);
    expect(eventCount()).toBe(1);
    await pass(30 * DAY);
    expect(await reached()).toMatchObject({ status: 'False' });
    await harness.spend('chat', '6');
    await pass(1000);
    expect(eventCount()).toBe(2);
    await harness.spend('chat', '1');
    await pass(30 * DAY);
    await harness.spend('chat', '6');
    await pass(30 * DAY + 1000);
    expect(await reached()).toMatchObject({ status: 'False' });
  });

  test('has a condition that follows edits of softBudget and disappears when softBudget is cleared', async () => {
    await harness.spend('chat', '6');
    await pass(1000);
    await edit({ softBudget: '7' });
    await pass(1000);
    expect(await reached()).toMatchObject({ status: 'False' });
    await edit({ softBudget: '1' });
    await pass(1000);
    expect(await reached()).toMatchObject({ status: 'True' });
    expect(eventCount()).toBe(2);
    await edit({ softBudget: null });
    await pass(1000);
    expect(await reached()).toBeUndefined();
    expect((await pass(1000)).actions).toEqual({});
  });
});

test('tags and metadata of a key and the alias of its user are in the policy, follow each edit, and disappear when cleared', async () => {
  await harness.apply(makeUser({ userAlias: 'Alice', autoCreateKey: false }));
  await harness.apply(makeKey({ userRef: { name: 'alice' }, tags: ['batch', 'eu'], metadata: { cost: '42' } }));
  await harness.resync();
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const found = async () => recordOf(harness.database().policies(uid), sha256((await harness.value('chat-key')) ?? ''));
  expect(await found()).toMatchObject({
    key: { tags: ['batch', 'eu'], metadata: { cost: '42' } },
    scopes: [{ kind: 'key' }, { kind: 'user', alias: 'Alice' }, { kind: 'namespace' }],
  });
  await edit({ tags: ['eu'], metadata: { cost: null, centre: '7' } });
  expect((await pass(1000)).actions).toMatchObject({ PutScope: 1 });
  expect((await found())?.key).toMatchObject({ tags: ['eu'], metadata: { centre: '7' } });
  await edit({ tags: null, metadata: null });
  await harness.edit(users, 'alice', { spec: { userAlias: null } });
  expect((await pass(1000)).actions).toMatchObject({ PutScope: 2 });
  const after = await found();
  expect(after?.key).not.toHaveProperty('tags');
  expect(after?.key).not.toHaveProperty('metadata');
  expect(after?.scopes[1]).not.toHaveProperty('alias');
  expect((await pass(1000)).actions).toEqual({});
  expect(harness.cluster.objects(RESOURCES.events).length).toBeGreaterThan(0);
});
