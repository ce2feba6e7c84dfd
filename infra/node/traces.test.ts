// Does the environment say where spans go, and that they go nowhere?
import { expect, onTestFinished, test } from 'vitest';
import { startCollector } from '../../test/collector.ts';
import { silentLog } from '../../test/silent-log.ts';
import {
  AdmissionEnvironment,
  GatewayEnvironment,
  ReconcileEnvironment,
  TracesEnvironment,
} from '../config/environments.ts';
import { readEnvironment } from '../config/read-environment.ts';
import { openTraces } from './traces.ts';

const open = (given: Readonly<Record<string, string>>) =>
  openTraces(readEnvironment(TracesEnvironment, given), 'test', silentLog);

test('without an endpoint, or with an empty one, nothing is traced', async () => {
  expect(await open({})).toBeUndefined();
  expect(await open({ OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_TRACES_SAMPLER: 'always_on' })).toBeUndefined();
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
  const tracer = await open(given(url));
  tracer?.begin('step', {}).end();
  await tracer?.close();
  expect(posts.map((post) => [post.path, post.resource['service.name']])).toEqual([[path, 'gateway-operator-test']]);
});

test('each function reads the same variables, and what is wrong with one is said at start', () => {
  const wrong = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317',
    OTEL_TRACES_SAMPLER: 'often',
    OTEL_TRACES_SAMPLER_ARG: '2',
  };
  const given = { KUBECONFIG: '/k', ...wrong };
  for (const read of [
    () => readEnvironment(AdmissionEnvironment, given),
    () => readEnvironment(ReconcileEnvironment, given),
    () => readEnvironment(GatewayEnvironment, given),
  ]) {
    expect(read).toThrow(`the environment is not right:
  OTEL_EXPORTER_OTLP_ENDPOINT="collector:4317": is not an http:// or https:// address
  OTEL_TRACES_SAMPLER="often": is none of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio
  OTEL_TRACES_SAMPLER_ARG="2": is not a share from 0 to 1`);
  }
});
