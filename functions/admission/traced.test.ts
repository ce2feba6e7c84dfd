// Does whoever follows a review see what was judged and what was asked for it, and nothing that stands in it?
import { expect, test } from 'vitest';
import { createTracerFake } from '#core/ports/tracer.fixture.ts';
import { createWorld, depsOf, GOOD, objectOf, post, requestOf } from '../../test/admission/fixtures.ts';
import { createAdmission, type Hint } from './app.ts';

const { cluster } = await createWorld();
const reviewOf = (request: object) => ({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
const ask = (object: ReturnType<typeof objectOf>, path = '/validate') => {
  const tracer = createTracerFake();
  return post({ ...depsOf(cluster), tracer }, path, reviewOf(requestOf(object))).then(() => tracer.spans);
};

test('a review is a span with what was judged and what became of it, and each question to the cluster is one of its own', async () => {
  const [review, ...questions] = await ask(objectOf('VirtualKey'));
  expect(review).toMatchObject({
    path: 'POST /validate',
    ends: 1,
    attributes: {
      'http.route': '/validate',
      'http.response.status_code': 200,
      'gateway_operator.kind': 'VirtualKey',
      'gateway_operator.operation': 'CREATE',
      'gateway_operator.dry_run': false,
      'gateway_operator.allowed': true,
    },
  });
  const paths = questions.map(({ path }) => path);
  expect(paths).toContain('POST /validate > get gatewayinstances');
  expect(paths).toContain('POST /validate > list virtualkeys');
  expect(new Set(questions.map(({ origin, ends }) => `${origin.kind} ${ends}`))).toEqual(new Set(['client 1']));
});

test('a refusal names its rules and none of the values that were refused', async () => {
  const [review] = await ask(objectOf('VirtualKey', { ...GOOD.VirtualKey, maxBudget: 'ten-secrets' }), '/mutate');
  expect(review?.attributes).toMatchObject({ 'gateway_operator.allowed': false, 'http.route': '/mutate' });
  expect(String(review?.attributes['gateway_operator.rules'])).not.toBe('');
  expect(JSON.stringify(review)).not.toContain('ten-secrets');
});

test('aliases and addresses, by which is looked up, are in no span', async () => {
  const user = { ...GOOD.User, userEmail: 'ada@private.example.com', keyAlias: 'alias-of-ada', userAlias: 'Ada P.' };
  const spans = await ask(objectOf('User', user));
  expect(spans.map(({ path }) => path)).toContain('POST /validate > list virtualkeys');
  for (const value of Object.values(user)) {
    if (typeof value === 'string' && value !== '25') expect(JSON.stringify(spans)).not.toContain(value);
  }
});

test("the trace of an API server goes on here and, by the hint, in reconcile; a path's secret is not told", async () => {
  const tracer = createTracerFake();
  const hinted: Array<readonly [Hint, string | undefined]> = [];
  const app = createAdmission({
    ...depsOf(cluster),
    tracer,
    pathSecrets: ['a-secret-of-32-characters-0123456'],
    timer: (_millis, callback) => {
      callback();
      return () => undefined;
    },
    hint: async (hint, traceparent) => void hinted.push([hint, traceparent]),
  });
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  await app.request('/a-secret-of-32-characters-0123456/mutate', {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent },
    body: JSON.stringify(reviewOf(requestOf(objectOf('VirtualKey')))),
  });
  expect(tracer.spans[0]?.origin.parent).toBe(traceparent);
  expect(JSON.stringify(tracer.spans)).not.toContain('a-secret');
});
