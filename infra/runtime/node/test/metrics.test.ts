// Are metrics told only where they may be: on a port of their own, or at the root of the local stack?
import { expect, test } from 'vitest';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { metricsOf, metricsOnly, withMetrics } from '../metrics.ts';
import { serve } from '../serve.ts';

const metrics = { render: async () => 'gateway_operator_x 1\n' };
const get = (path: string, method = 'GET') => new Request(`http://127.0.0.1${path}`, { method });

test('a port of their own answers GET /metrics in the text format, and nothing else', async () => {
  const { url, close } = await serve({ handle: metricsOnly(metrics), port: 0, host: '127.0.0.1' });
  const answer = await fetch(`${url}/metrics`);
  expect(`${answer.status} ${answer.headers.get('content-type')}`).toBe('200 text/plain; version=0.0.4');
  expect(await answer.text()).toBe('gateway_operator_x 1\n');
  for (const path of ['/', '/metrics/', '/healthz', '/chat/completions'])
    expect((await fetch(`${url}${path}`)).status).toBe(404);
  expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(404);
  await close(0);
});

test('beside a function they are at the root, and every other request is the function’s, as it came', async () => {
  const asked: string[] = [];
  const fetch = withMetrics(metrics, async (request: Request, rest: string) => {
    asked.push(`${request.method} ${new URL(request.url).pathname} ${rest}`);
    return new Response('function');
  });
  expect(await (await fetch(get('/metrics'), 'connection')).text()).toBe('gateway_operator_x 1\n');
  expect(await (await fetch(get('/healthz'), 'connection')).text()).toBe('function');
  expect(await (await fetch(get('/metrics', 'POST'), 'connection')).text()).toBe('function');
  expect(asked).toEqual(['GET /healthz connection', 'POST /metrics connection']);
});

test('metrics of an instance name it, beside the labels of their own', async () => {
  const all = createMetrics();
  const [one, other] = ['one', 'other'].map((name) => metricsOf(all, { namespace: 'team-a', name }));
  const outcome = { outcome: 'reserved' };
  for (const each of [one, one, other]) each?.add('reservations_total', outcome);
  one?.set('depth', 5);
  one?.observe('wait_seconds', 700);
  const text = await all.render();
  expect(text).toContain('reservations_total{outcome="reserved",gateway_instance="team-a/one"} 2\n');
  expect(text).toContain('reservations_total{outcome="reserved",gateway_instance="team-a/other"} 1\n');
  expect(text).toContain('depth{gateway_instance="team-a/one"} 5\n');
  expect(text).toContain('wait_seconds_bucket{le="600",gateway_instance="team-a/one"} 0\n');
});
