// Budgets of a key for several windows: no edit resets their spend.
import { beforeEach, describe, expect, test } from 'vitest';
import { furtherScopeId } from '#core/keys/further-budgets.ts';
import type { Claim } from '#core/ports/registry.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';

const HOUR = 3_600_000;
const HOURLY = { maxBudget: '1', budgetDuration: '1h' };
let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance());
});

const apply = async (...budgets: ReadonlyArray<object>): Promise<void> => {
  await harness.apply(makeKey({ budgets }));
  expect((await harness.resync()).failed).toEqual({});
};
const edit = async (budgets: ReadonlyArray<object> | null): Promise<void> => {
  await harness.edit(virtualKeys, 'chat', { spec: { budgets } });
  await harness.resync();
};
const claim = async (): Promise<Claim> => {
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  return (await harness.database().claims(uid)).find(({ alias }) => alias === 'chat') as Claim;
};
const ready = async (): Promise<string> => {
  const { conditions } = await harness.status(virtualKeys, 'chat');
  const found = conditions?.find(({ type }) => type === 'Ready');
  return `${found?.reason}: ${found?.message}`;
};

describe('further budgets of a key', () => {
  test('are scopes of their own, which the gateway charges in addition to the key', async () => {
    await apply(HOURLY, { maxBudget: '3', budgetDuration: '1d' });
    const { scopeId, policy } = await claim();
    const scope = (duration: string, limit: string) => ({
      scopeId: furtherScopeId(sha256, scopeId, { duration }),
      limit,
      duration,
    });
    expect(policy?.furtherBudgets).toEqual([scope('1d', '3000000000'), scope('1h', '1000000000')]);
    expect((await harness.resync()).actions).toEqual({});
  });

  test('make the key inactive while one of them is spent, and the message names it', async () => {
    await apply(HOURLY, { maxBudget: '3', budgetDuration: '1d' });
    await harness.spend('chat', '1');
    await harness.resync();
    expect(await ready()).toBe(
      'BudgetExceeded: this VirtualKey has spent 1 of 1 dollars per 1h: raise spec.budgets[0].maxBudget, or wait until 2026-11-21T13:00:00Z',
    );
    harness.clock.pass(HOUR);
    await harness.resync();
    expect(await ready()).toMatch('Ready:');
  });

  test('of another length count what the key has spent in the new window, so no edit resets them', async () => {
    await apply(HOURLY);
    await harness.spend('chat', '1');
    await edit([{ maxBudget: '1', budgetDuration: '2h' }]);
    expect(await ready()).toMatch('BudgetExceeded: this VirtualKey has spent 1 of 1 dollars per 2h');
    await edit(null);
    expect(await ready()).toMatch('Ready:');
    await edit([HOURLY]);
    expect(await ready()).toMatch('BudgetExceeded: this VirtualKey has spent 1 of 1 dollars per 1h');
  });

  test('that are added later count what the key has spent in their window already', async () => {
    await apply();
    await harness.spend('chat', '0.25');
    harness.clock.pass(HOUR);
    await harness.spend('chat', '0.75');
    await edit([{ maxBudget: '0.75', budgetDuration: '1h' }]);
    expect(await ready()).toMatch('BudgetExceeded: this VirtualKey has spent 0.75 of 0.75 dollars per 1h');
    await edit([{ maxBudget: '1.01', budgetDuration: '2h' }]);
    expect(await ready()).toMatch('Ready:');
    await edit([{ maxBudget: '1', budgetDuration: '2h' }]);
    expect(await ready()).toMatch('BudgetExceeded: this VirtualKey has spent 1 of 1 dollars per 2h');
  });

  test('of 0 have a message that does not advise to wait', async () => {
    await apply({ maxBudget: '0', budgetDuration: '1h' });
    expect(await ready()).toBe(
      'BudgetExceeded: this VirtualKey has a budget of 0 dollars per 1h: raise spec.budgets[0].maxBudget',
    );
  });
});
