// Budgets of a key for single models: they keep their spend through all edits.
import { beforeEach, expect, test } from 'vitest';
import { furtherScopeId } from '#core/keys/further-budgets.ts';
import type { Claim } from '#core/ports/registry.ts';
import { gatewayInstances, teams, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam } from '../../../test/reconcile/objects.ts';

const DAY = 86_400_000;
let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const edit = async (spec: object): Promise<void> => {
  await harness.edit(virtualKeys, 'chat', { spec });
  await harness.resync();
};
const apply = async (modelMaxBudget: object, more: object = {}): Promise<void> => {
  await harness.apply(makeKey({ modelMaxBudget, ...more }));
  expect((await harness.resync()).failed).toEqual({});
};
const claim = async (): Promise<Claim> => {
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  return (await harness.database().claims(uid)).find(({ alias }) => alias === 'chat') as Claim;
};
const policy = async () => (await claim()).policy;
const modelsReady = async (): Promise<string> => {
  const { conditions } = await harness.status(virtualKeys, 'chat');
  const found = conditions?.find(({ type }) => type === 'ModelsReady');
  return `${found?.status} ${found?.reason}: ${found?.message}`;
};
const isActive = async () => (await harness.status(virtualKeys, 'chat')).isActive;

test('the policy has each of them, with windows that are counted and aligned like those of the key', async () => {
  await apply(
    { small: { maxBudget: '1.5', budgetDuration: '1d' }, large: { maxBudget: '0', budgetDuration: '1mo' } },
    { budgetWindow: 'Calendar' },
  );
  const { scopeId, policy: { budget, furtherBudgets } = {} } = await claim();
  expect(budget?.alignment).toBe('Calendar');
  const scope = (of: { model: string; limit: string; duration: string }) => ({
    scopeId: furtherScopeId(sha256, scopeId, of),
    ...of,
  });
  expect(furtherBudgets).toEqual([
    scope({ model: 'large', limit: '0', duration: '1mo' }),
    scope({ model: 'small', limit: '1500000000', duration: '1d' }),
  ]);
  expect((await harness.resync()).actions).toEqual({});
  await edit({ modelMaxBudget: null });
  expect(await policy()).not.toHaveProperty('furtherBudgets');
});

test('the message about a budget of 0, of a model, a key or a team, does not advise to wait', async () => {
  await apply({ small: { maxBudget: '0', budgetDuration: '1d' } });
  expect(await modelsReady()).toBe(
    'False BudgetExceeded: this VirtualKey has a budget of 0 dollars on "small": raise spec.modelMaxBudget["small"].maxBudget',
  );
  await harness.apply(
    makeTeam({ maxBudget: '0' }),
    makeKey({ keyAlias: 'poor', teamRef: { name: 'research' } }, 'poor'),
  );
  await harness.edit(virtualKeys, 'chat', { spec: { maxBudget: '0' } });
  await harness.resync();
  const conditionOf = async (kind: Parameters<Harness['status']>[0], name: string) =>
    (await harness.status(kind, name)).conditions?.find(({ type }) => type === 'Ready')?.message;
  expect([
    await conditionOf(teams, 'research'),
    await conditionOf(virtualKeys, 'chat'),
    await conditionOf(virtualKeys, 'poor'),
  ]).toEqual([
    'this Team has a budget of 0 dollars: raise spec.maxBudget',
    'this VirtualKey has a budget of 0 dollars: raise spec.maxBudget',
    'Team "research" has a budget of 0 dollars: raise spec.maxBudget',
  ]);
});

test('ModelsReady reports a spent budget and the next step; the key continues with other models', async () => {
  await apply({ small: { maxBudget: '1', budgetDuration: '1d' } });
  expect(await modelsReady()).toMatch('True Ready');
  await harness.spend('chat', '1', 'small');
  await harness.resync();
  expect(await modelsReady()).toBe(
    'False BudgetExceeded: this VirtualKey has spent 1 of 1 dollars on "small": raise spec.modelMaxBudget["small"].maxBudget, or wait until 2026-11-22T12:00:00Z',
  );
  expect(await isActive()).toBe(true);
  await edit({ modelMaxBudget: { small: { maxBudget: '1.000000001' } } });
  expect(await modelsReady()).toMatch('True Ready');
  await harness.spend('chat', '1', 'small');
  harness.clock.pass(DAY);
  await harness.resync();
  expect(await modelsReady()).toMatch('True Ready');
});

test('the budget of a model that the key may not use is not reported', async () => {
  await apply({ large: { maxBudget: '0', budgetDuration: '1d' } }, { models: ['small'] });
  expect(await modelsReady()).toMatch('True Ready');
});

test('a key does not work if the budgets of all its models are spent', async () => {
  await apply({ small: { maxBudget: '1', budgetDuration: '1d' } }, { models: ['small'] });
  await harness.spend('chat', '1', 'small');
  await harness.resync();
  expect(await harness.ready(virtualKeys, 'chat')).toBe('False BudgetExceeded');
  expect(await isActive()).toBe(false);
});

test('after an edit of budgetDuration the new window counts what was spent inside it, and undoing the edit loses no spend', async () => {
  await apply({ small: { maxBudget: '1', budgetDuration: '1h' } });
  await harness.spend('chat', '1', 'small');
  harness.clock.pass(3_600_000);
  await harness.resync();
  expect(await modelsReady()).toMatch('True Ready');
  await edit({ modelMaxBudget: { small: { budgetDuration: '1d' } } });
  expect(await modelsReady()).toMatch('False BudgetExceeded');
  await edit({ modelMaxBudget: { small: { budgetDuration: '1h' } } });
  expect(await modelsReady()).toMatch('True Ready');
});

test('a budget that is removed and added again has its previous spend, also in another window', async () => {
  await apply({ small: { maxBudget: '1', budgetDuration: '1d' } });
  await harness.spend('chat', '1', 'small');
  await edit({ modelMaxBudget: null });
  expect(await modelsReady()).toMatch('True Ready');
  await edit({ modelMaxBudget: { small: { maxBudget: '1', budgetDuration: '1d' } } });
  expect(await modelsReady()).toMatch('False BudgetExceeded');
  await edit({ modelMaxBudget: null });
  await edit({ modelMaxBudget: { small: { maxBudget: '1', budgetDuration: '2d' } } });
  expect(await modelsReady()).toMatch('False BudgetExceeded');
});

test('an adopted key keeps its spend on each model; a key with a new value begins without spend', async () => {
  await apply({ small: { maxBudget: '1', budgetDuration: '1d' } }, { deletionPolicy: 'Retain' });
  await harness.spend('chat', '1', 'small');
  const before = (await policy())?.furtherBudgets;
  await harness.remove(virtualKeys, 'chat');
  await harness.resync();
  await apply({ small: { maxBudget: '1', budgetDuration: '1d' } });
  expect((await policy())?.furtherBudgets).toEqual(before);
  expect(await modelsReady()).toMatch('False BudgetExceeded');
  await harness.remove(virtualKeys, 'chat');
  await harness.resync();
  await apply({ small: { maxBudget: '1', budgetDuration: '1d' } });
  expect(await modelsReady()).toMatch('True Ready');
});
