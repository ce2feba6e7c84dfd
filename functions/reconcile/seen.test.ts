// What do those see who watch over it: metrics, spans, a report?
import { beforeEach, expect, test } from 'vitest';
import { noTracer, type Span } from '#core/ports/tracer.ts';
import {
  type Bed,
  createBed,
  makeInstance,
  makeKey,
  makeSecret,
  makeSecrets,
  makeTeam,
  virtualKeys,
} from '../../test/reconcile/bed.ts';

let bed: Bed;
let spans: string[];
beforeEach(() => {
  spans = [];
  bed = createBed({ tracer: recorder('') });
});
const oldest = (kind: string) =>
  Number(new RegExp(`oldest_unconverged_seconds{kind="${kind}"} (\\S+)`).exec(bed.metrics.render())?.[1] ?? Number.NaN);

function recorder(above: string): Span {
  return {
    ...noTracer,
    span: async (name, attributes, work) => {
      const path = `${above}${name}`;
      const line = spans.push(path) - 1;
      const learned: Record<string, unknown> = { ...attributes };
      const span = {
        ...recorder(`${path} > `),
        add: (more: object) => void Object.assign(learned, more),
        fail: (why: string) => void Object.assign(learned, { why }),
      };
      const done = await work(span);
      spans[line] = `${path} ${JSON.stringify(learned)}`;
      return done;
    },
  };
}

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
  expect(run).toMatch(/^reconcile \{"look":"everywhere","observed":2,"actions":\d+,"failed":0\}$/);
  expect(part).toBe('reconcile > reconcile part {"instances":"default/main","keys":1}');
  expect(actions).toContain(
    'reconcile > reconcile part > reconcile CreateSecret {"kind":"VirtualKey","namespace":"default","name":"chat","outcome":"done"}',
  );
  expect(spans.join('')).not.toContain(await bed.value('chat-key'));
  spans.length = 0;
  await bed.hint('VirtualKey', 'chat');
  expect(spans[0]).toContain('"look":"at","kind":"VirtualKey","namespace":"default","name":"chat"');
  bed.cluster.inject(({ subresource }) => (subresource === 'status' ? 'forbidden' : undefined));
  await bed.edit(virtualKeys, 'chat', { spec: { maxBudget: '11' } });
  spans.length = 0;
  await bed.sweep();
  expect(spans[0]).toContain('"why":"WriteStatus"');
  expect(spans.some((span) => /WriteStatus.*"outcome":"failed"/.test(span))).toBe(true);
});
