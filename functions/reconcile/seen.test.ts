// What do those see who watch over it: metrics and a report?
import { beforeEach, expect, test } from 'vitest';
import { virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam } from '../../test/reconcile/objects.ts';

let bed: Bed;
beforeEach(() => {
  bed = createBed();
});
const oldest = (kind: string) =>
  Number(new RegExp(`oldest_unconverged_seconds{kind="${kind}"} (\\S+)`).exec(bed.metrics.render())?.[1] ?? Number.NaN);

test('the age of the oldest object that is not as it should be is a metric, and falls back to zero', async () => {
  await bed.apply(...makeSecrets().slice(1), makeInstance(), makeKey(), makeTeam());
  await bed.sweep();
  bed.clock.pass(90_000);
  await bed.sweep();
  for (const kind of ['GatewayInstance', 'VirtualKey', 'Team']) expect(oldest(kind)).toBe(90);
  expect(oldest('User')).toBe(0);
  await bed.apply(makeSecret('db', { host: 'db', username: 'u', password: 'p', dbname: 'gateway' }));
  await bed.sweep();
  for (const kind of ['GatewayInstance', 'VirtualKey', 'Team']) expect(oldest(kind)).toBe(0);
});

test('a key that somebody blocked is as it should be; one whose deletion is held up is not', async () => {
  await bed.apply(...makeSecrets(), makeInstance(), makeKey({ blocked: true }));
  await bed.sweep();
  bed.clock.pass(60_000);
  await bed.sweep();
  expect(oldest('VirtualKey')).toBe(0);
  await bed.edit(virtualKeys, 'chat', { metadata: { finalizers: ['gateway-operator.dev/cleanup', 'somebody/else'] } });
  await bed.remove(virtualKeys, 'chat');
  bed.clock.pass(60_000);
  await bed.sweep();
  expect(oldest('VirtualKey')).toBe(60);
});

test('what a run observed, did and took is a metric, by kind, action and outcome', async () => {
  await bed.apply(...makeSecrets(), makeInstance(), makeKey());
  await bed.sweep();
  const text = bed.metrics.render();
  expect(text).toContain('gateway_operator_reconcile_observed{kind="VirtualKey"} 1');
  expect(text).toContain('gateway_operator_reconcile_actions_total{action="PutSecret",outcome="done"} 1');
  expect(text).toMatch(/gateway_operator_reconcile_duration_seconds_count 1/);
});
