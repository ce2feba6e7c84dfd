import { expect, test } from 'vitest';
import { createMetrics } from '#adapters/metrics.ts';
import { serveMetrics } from './metrics-server.ts';

test('metrics are told on a port of their own, and nothing else is', async () => {
  const metrics = createMetrics();
  metrics.add('gateway_operator_x_total');
  const { url, close } = await serveMetrics(metrics, { port: 0, host: '127.0.0.1' });
  expect(await (await fetch(`${url}/metrics`)).text()).toContain('gateway_operator_x_total 1');
  expect((await fetch(`${url}/chat/completions`)).status).toBe(404);
  await close(0);
});
