// Readiness: what is missing, said in plain text.
import { expect, test } from 'vitest';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { type AdmissionDependencies, createAdmission } from '../../../../functions/admission/app.ts';
import { createReconciler, type ReconcileDependencies } from '../../../../functions/reconcile/app.ts';
import { createReadiness } from '../readiness.ts';

function createCluster() {
  const state = { missing: new Set(['virtualkeys']), isAway: false, asked: 0 };
  const serves = async ({ plural }: { readonly plural: string }) => {
    state.asked += 1;
    if (state.isAway) throw new Error('connect ECONNREFUSED 10.0.0.1:443');
    return !state.missing.has(plural);
  };
  let now = 0;
  const clock = { now: () => now, pass: (millis: number) => (now += millis) };
  return { state, clock, readiness: createReadiness({ serves }, clock) };
}

test.each([
  [
    'admission',
    (readiness: AdmissionDependencies['readiness']) =>
      createAdmission({ pathSecrets: [], readiness } as unknown as AdmissionDependencies),
  ],
  [
    'reconcile',
    (readiness: ReconcileDependencies['readiness']) =>
      createReconciler({ readiness, clock: Date, metrics: createMetrics() } as unknown as ReconcileDependencies),
  ],
])('%s says what of the cluster is missing, and stays ready once it was', async (_, create) => {
  const { state, clock, readiness } = createCluster();
  const app = create(readiness);
  const ask = async () => {
    clock.pass(1_000);
    const answer = await app.request('/readyz');
    return [answer.status, await answer.text()];
  };
  const crds = 'apply infra/platforms/kubernetes/crds.yaml of this version';
  expect(await ask()).toEqual([
    503,
    `the API server serves no VirtualKey of auth.gateway-operator.dev/v1alpha1: ${crds}\n`,
  ]);
  state.isAway = true;
  expect(await ask()).toEqual([503, 'the API server does not answer: connect ECONNREFUSED 10.0.0.1:443\n']);
  state.isAway = false;
  state.missing.clear();
  expect(await ask()).toEqual([200, 'ok']);
  state.isAway = true;
  expect(await ask()).toEqual([200, 'ok']);
});

test('many probes at the same time ask the API server once', async () => {
  const { state, readiness } = createCluster();
  await Promise.all(Array.from({ length: 50 }, readiness));
  expect(state.asked).toBe(4);
});
