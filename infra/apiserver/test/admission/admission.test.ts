import { expect, test } from 'vitest';
import { createAdmission } from '../../admission/admission.ts';
import { readResponse } from '../../admission/review.ts';
import type { AdmissionAttributes } from '../../admission/webhooks.ts';
import type { KubeObject } from '../../object.ts';
import type { ApiRequest } from '../../request/request.ts';
import { coreResources } from '../../resources/core-resources.ts';

const secrets = coreResources.find(({ plural }) => plural === 'secrets');
if (secrets === undefined) throw new Error('no secrets');
const object: KubeObject = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'n' } };

function attempted(change: Partial<ApiRequest> = {}): AdmissionAttributes & { warnings: string[] } {
  const warnings: string[] = [];
  const request = {
    resource: secrets,
    verb: 'create',
    namespace: 'n',
    name: undefined,
    subresource: undefined,
    query: new URLSearchParams(),
    user: { username: 'u', groups: [] },
    dryRun: false,
    signal: new AbortController().signal,
    deadline: 9_000,
    warn: (text: string) => void warnings.push(text),
    ...change,
  };
  return { request: request as ApiRequest, operation: 'CREATE', object, old: undefined, warnings };
}

const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'] }];
const hook = (name: string, more: object = {}) => ({
  name,
  rules,
  failurePolicy: 'Fail',
  sideEffects: 'None',
  timeoutSeconds: 1,
  clientConfig: { url: 'https://x' },
  ...more,
});

/**
 * An admission with these validating webhooks; `answers` says what each replies (a string: it could not be reached).
 */
function admission(hooks: object[], answers: (name: string) => object | string, labels: Record<string, string> = {}) {
  const called: string[] = [];
  const configuration = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'c' },
    webhooks: hooks,
  };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n', labels } };
  const made = createAdmission({
    store: {
      list: (kind) => (kind.endsWith('validatingwebhookconfigurations') ? [configuration] : []),
      get: () => namespace,
    },
    newUid: () => 'uid',
    now: () => 1_000,
    async call({ name }) {
      called.push(name);
      const answer = answers(name);
      if (typeof answer === 'string') return { failed: answer };
      return {
        body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: 'uid', ...answer } },
      };
    },
  });
  return { called, validate: made.validate };
}

test('the first refusal in order is the answer, whoever is faster', async () => {
  const { validate } = admission([hook('a.x.y'), hook('b.x.y')], (name) => ({
    allowed: false,
    status: { message: name },
  }));
  expect(await validate(attempted())).toMatchObject({
    status: { code: 400, message: 'admission webhook "a.x.y" denied the request: a.x.y' },
  });
});

test('a webhook that cannot be reached counts by its failure policy', async () => {
  const { validate } = admission([hook('a.x.y', { failurePolicy: 'Ignore' }), hook('b.x.y')], () => 'nobody there');
  expect(await validate(attempted())).toMatchObject({
    status: {
      code: 500,
      reason: 'InternalError',
      message: 'Internal error occurred: failed calling webhook "b.x.y": failed to call webhook: nobody there',
    },
  });
});

test('a dry run is refused where a webhook has side effects', async () => {
  const { validate, called } = admission([hook('a.x.y', { sideEffects: 'Some' })], () => ({ allowed: true }));
  expect(await validate(attempted({ dryRun: true }))).toMatchObject({
    status: { code: 400, message: 'admission webhook "a.x.y" does not support dry run' },
  });
  expect(called).toEqual([]);
});

test.each([
  [{}, true],
  [{ rules: [{ ...rules[0], operations: ['UPDATE'] }] }, false],
  [{ rules: [{ ...rules[0], resources: ['*'] }] }, true],
  [{ rules: [{ ...rules[0], resources: ['*/*'] }] }, true],
  [{ rules: [{ ...rules[0], resources: ['secrets/*'] }] }, true],
  [{ rules: [{ ...rules[0], resources: ['secrets/status'] }] }, false],
  [{ rules: [{ ...rules[0], apiGroups: ['apps'] }] }, false],
  [{ rules: [{ ...rules[0], apiGroups: ['*'], apiVersions: ['*'], operations: ['*'] }] }, true],
  [{ rules: [{ ...rules[0], scope: 'Cluster' }] }, false],
  [{ rules: [{ ...rules[0], scope: 'Namespaced' }] }, true],
  [{ namespaceSelector: { matchLabels: { team: 'a' } } }, true],
  [{ namespaceSelector: { matchLabels: { team: 'b' } } }, false],
  [{ objectSelector: { matchLabels: { x: 'y' } } }, false],
  [
    { matchConditions: [{ name: 'm', expression: 'request.operation == "CREATE" && object.metadata.name == "s"' }] },
    true,
  ],
  [
    {
      matchConditions: [
        { name: 'm', expression: 'has(oldObject.metadata)' },
        { name: 'n', expression: 'false' },
      ],
    },
    false,
  ],
])('a webhook with %j is called: %s', async (more, wanted) => {
  const { validate, called } = admission([hook('a.x.y', more)], () => ({ allowed: true }), { team: 'a' });
  expect(await validate(attempted())).toBeUndefined();
  expect(called.length === 1).toBe(wanted);
});

test('a match condition that fails counts by the failure policy', async () => {
  const { validate } = admission(
    [hook('a.x.y', { matchConditions: [{ name: 'm', expression: 'object.nope.nope == 1' }] })],
    () => ({ allowed: true }),
  );
  expect(await validate(attempted())).toMatchObject({
    status: { code: 500, message: expect.stringContaining('error evaluating match condition "m"') },
  });
});

const review = (response: unknown, more: object = {}) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response,
  ...more,
});

test.each([
  [review(undefined), 'webhook response was absent'],
  [review({ uid: 'x' }), 'expected response.uid="u", got "x"'],
  [
    review({ uid: 'u' }, { kind: 'Pod' }),
    'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1, Kind=Pod',
  ],
  [review({ uid: 'u', patch: 'W10=' }), 'webhook returned response.patch but not response.patchType'],
  [review({ uid: 'u', patchType: 'JSONPatch' }), 'webhook returned response.patchType but not response.patch'],
  [review({ uid: 'u', patchType: 'Merge', patch: 'W10=' }), 'webhook returned invalid response.patchType of "Merge"'],
])('a mutating answer %# is refused', (body, words) => {
  expect(readResponse(body, 'u', 'mutating')).toBe(words);
});

test('a validating webhook may not patch, a mutating one may', () => {
  const body = review({ uid: 'u', allowed: true, patchType: 'JSONPatch', patch: 'W10=' });
  expect(readResponse(body, 'u', 'validating')).toBe('validating webhook may not return response.patch');
  expect(readResponse(body, 'u', 'mutating')).toMatchObject({ allowed: true, patch: [] });
});

test('webhooks together have no more time than the request, whatever their failure policy', async () => {
  const { validate } = admission([hook('a.x.y', { failurePolicy: 'Ignore' })], () => ({ allowed: true }));
  expect(await validate(attempted({ deadline: 1_000 }))).toMatchObject({ status: { code: 504, reason: 'Timeout' } });
});
