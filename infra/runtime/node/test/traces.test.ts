// Traces as the environment asks for them.
import { expect, onTestFinished, test } from 'vitest';
import { startCollector } from '../../../../test/support/collector.ts';
import { silentLog } from '../../../../test/support/silent-log.ts';
import {
  AdmissionEnvironment,
  GatewayEnvironment,
  ReconcileEnvironment,
  TracesEnvironment,
} from '../../config/environments.ts';
import { readEnvironment } from '../../config/variable.ts';
import { serve } from '../serve.ts';
import { openTraces } from '../traces.ts';

const open = (given: Readonly<Record<string, string>>) =>
  openTraces(readEnvironment(TracesEnvironment, given), 'reconcile', silentLog);

test('without an endpoint, or with an empty one, nothing is traced', async () => {
  for (const given of [{}, { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_TRACES_SAMPLER: 'always_on' }]) {
    const traces = await open(given);
    expect(traces.logged(silentLog)).toBe(silentLog);
    expect(traces.sent(fetch)).toBe(fetch);
  }
});

test.each([
  ['an endpoint is asked at /v1/traces', (url: string) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url }), '/v1/traces'],
  [
    'a slash at its end is one',
    (url: string) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/below/` }),
    '/below/v1/traces',
  ],
  [
    'the whole address of traces comes first, and stands as it is',
    (url: string) => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/x`,
    }),
    '/x',
  ],
])('%s', async (_, given, path) => {
  const { url, posts, close } = await startCollector();
  onTestFinished(close);
  const traces = await open(given(url));
  const served = await serve({ fetch: () => new Response(), port: 0, host: '127.0.0.1', traces });
  onTestFinished(() => served.close(0));
  await (await fetch(served.url, { method: 'POST' })).text();
  await traces.close();
  const seen = posts.map((post) => [post.path, post.resource['service.name']]);
  expect(seen).toEqual([[path, 'gateway-operator-reconcile']]);
});

test('each function reads the same variables, and what is wrong with one is said at start', () => {
  const wrong = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317',
    OTEL_TRACES_SAMPLER: 'often',
    OTEL_TRACES_SAMPLER_ARG: '2',
  };
  const unguessable = 'an-unguessable-segment';
  const given = { KUBECONFIG: '/k', PATH_SECRETS: unguessable, RECONCILE_TOKEN: unguessable, ...wrong };
  for (const read of [
    () => readEnvironment(AdmissionEnvironment, given),
    () => readEnvironment(ReconcileEnvironment, given),
    () => readEnvironment(GatewayEnvironment, given),
  ]) {
    expect(read).toThrow('OTEL_EXPORTER_OTLP_ENDPOINT="collector:4317": is not an http:// or https:// address');
    expect(read).toThrow('OTEL_TRACES_SAMPLER="often": is none of always_on');
    expect(read).toThrow('OTEL_TRACES_SAMPLER_ARG="2": is not a share from 0 to 1');
  }
});
