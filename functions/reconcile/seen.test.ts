// What do those see who watch over it: metrics, spans, a report?
import { beforeEach, expect, test } from 'vitest';
import { createTracerFake } from '#core/ports/tracer.fixture.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { type Bed, createBed } from '../../test/reconcile/bed.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam } from '../../test/reconcile/objects.ts';

let bed: Bed;
let spans: ReturnType<typeof createTracerFake>['spans'];
beforeEach(() => {
  const tracer = createTracerFake();
  spans = tracer.spans;
  bed = createBed({ tracer });
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
  expect(text).toContain('gateway_operator_reconcile_actions_total{action="CreateSecret",outcome="done"} 1');
  expect(text).toMatch(/gateway_operator_reconcile_duration_seconds_count 1/);
});

test('a run is a trace: the run, its parts, each action with its object and outcome, and nothing secret', async () => {
  await bed.apply(...makeSecrets(), makeInstance(), makeKey());
  await bed.sweep();
  const [run, part, ...actions] = spans;
  expect(run).toMatchObject({
    path: 'reconcile',
    attributes: { 'gateway_operator.look': 'everywhere', 'gateway_operator.observed': 2, 'gateway_operator.failed': 0 },
  });
  expect(part).toMatchObject({
    path: 'reconcile > reconcile part',
    attributes: { 'gateway_operator.instances': 'default/main', 'gateway_operator.keys': 1 },
  });
  expect(actions).toContainEqual(
    expect.objectContaining({
      path: 'reconcile > reconcile part > reconcile CreateSecret',
      attributes: {
        'gateway_operator.kind': 'VirtualKey',
        'k8s.namespace.name': 'default',
        'gateway_operator.name': 'chat',
        'gateway_operator.outcome': 'done',
      },
    }),
  );
  expect(spans.filter(({ ends }) => ends !== 1)).toEqual([]);
  expect(JSON.stringify(spans)).not.toContain(await bed.value('chat-key'));
  spans.length = 0;
  await bed.hint('VirtualKey', 'chat');
  expect(spans[0]?.attributes).toMatchObject({
    'gateway_operator.look': 'at',
    'gateway_operator.kind': 'VirtualKey',
    'k8s.namespace.name': 'default',
    'gateway_operator.name': 'chat',
  });
  bed.cluster.inject(({ subresource }) => (subresource === 'status' ? 'forbidden' : undefined));
  await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '11' } });
  spans.length = 0;
  await bed.sweep();
  expect(spans[0]?.failed).toBe('WriteStatus');
  const write = spans.find(({ path }) => path.endsWith('reconcile WriteStatus'));
  expect(write?.attributes['gateway_operator.outcome']).toBe('failed');
});
