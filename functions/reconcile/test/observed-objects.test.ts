// Metrics and the report of a run.
import { beforeEach, expect, test } from 'vitest';
import { teams, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam } from '../../../test/reconcile/objects.ts';

let harness: Harness;
beforeEach(() => {
  harness = createHarness();
});
const oldest = async (kind: string) =>
  Number(
    new RegExp(`oldest_unconverged_seconds{kind="${kind}"} (\\S+)`).exec(await harness.metrics.render())?.[1] ??
      Number.NaN,
  );

test('the age of the oldest object that is not converged is a metric, which returns to zero', async () => {
  await harness.apply(...makeSecrets().slice(1), makeInstance(), makeKey(), makeTeam());
  await harness.resync();
  harness.clock.pass(90_000);
  await harness.resync();
  for (const kind of ['GatewayInstance', 'VirtualKey', 'Team']) expect(await oldest(kind)).toBe(90);
  expect(await oldest('User')).toBe(0);
  await harness.apply(makeSecret('db', { host: 'db', username: 'u', password: 'p', dbname: 'gateway' }));
  await harness.resync();
  for (const kind of ['GatewayInstance', 'VirtualKey', 'Team']) expect(await oldest(kind)).toBe(0);
});

test('a blocked key counts as converged; a key whose deletion waits does not', async () => {
  await harness.apply(...makeSecrets(), makeInstance(), makeKey({ blocked: true }));
  await harness.resync();
  harness.clock.pass(60_000);
  await harness.resync();
  expect(await oldest('VirtualKey')).toBe(0);
  await harness.edit(virtualKeys, 'chat', {
    metadata: { finalizers: ['gateway-operator.dev/cleanup', 'somebody/else'] },
  });
  await harness.remove(virtualKeys, 'chat');
  harness.clock.pass(60_000);
  await harness.resync();
  expect(await oldest('VirtualKey')).toBe(60);
});

test('metrics count what a run observed and did, by kind, action and outcome, and its duration', async () => {
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
  await harness.resync();
  const text = await harness.metrics.render();
  expect(text).toContain('gateway_operator_reconcile_observed{kind="VirtualKey"} 1');
  expect(text).toContain('gateway_operator_reconcile_actions_total{action="PutSecret",outcome="done"} 1');
  expect(text).toMatch(/gateway_operator_reconcile_duration_seconds_count 1/);
});

test("a team's budget and spend are metrics of the last resync", async () => {
  await harness.apply(...makeSecrets(), makeInstance(), makeTeam({ maxBudget: '12.5', budgetDuration: '30d' }));
  await harness.resync();
  await harness.resync();
  const labels = '{team_namespace="default",team="research"}';
  expect(await harness.metrics.render()).toContain(`gateway_operator_team_budget_dollars${labels} 12.5\n`);
  expect(await harness.metrics.render()).toContain(`gateway_operator_team_spend_dollars${labels} 0\n`);
  await harness.remove(teams, 'research');
  await harness.resync();
  await harness.resync();
  expect(await harness.metrics.render()).not.toContain('research');
});
