// Webhooks in what kubectl does.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { widget } from '../widgets.ts';
import type { KubectlHarness, Result } from './harness.ts';
import { patching, startWebhookServer, type WebhookServer } from './webhook-server.ts';

/** A webhook at a path of the server; `unasked` ones cannot tell when the API server has noticed them. */
type Hook = { readonly path: string; readonly unasked?: true; readonly [member: string]: unknown };

export function admissionCases(kubectl: () => KubectlHarness): void {
  let hooks: WebhookServer;
  beforeAll(async () => {
    hooks = await startWebhookServer();
  });
  afterAll(() => hooks.stop());
  afterEach(async () => {
    await kubectl().must(
      'delete mutatingwebhookconfigurations,validatingwebhookconfigurations -l kubectl-cases --ignore-not-found',
    );
    hooks.forget();
    await kubectl().must('delete wd --all -n default --wait=false');
  });

  /**
   * Creates the widget without storing it, until kubectl's result fits: the real server takes a moment to notice a
   * configuration.
   */
  const dryRun = (name: string, fits: (result: Result) => boolean) =>
    eventually(() => kubectl().run('create --dry-run=server -f -', widget(name)), fits);

  async function configure(kind: 'Mutating' | 'Validating', ...given: Hook[]): Promise<void> {
    const rule = { apiGroups: ['kubectl.example.com'], apiVersions: ['*'], operations: ['*'], resources: ['widgets'] };
    const webhooks = given.map(({ path, unasked: _, ...more }) => ({
      name: `${path}.kubectl.example.com`,
      clientConfig: { url: `${hooks.url}/${path}`, caBundle: hooks.caBundle },
      rules: [rule],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      ...more,
    }));
    const name = `${kind.toLowerCase()}-cases`;
    await kubectl().must('apply -f -', {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: `${kind}WebhookConfiguration`,
      metadata: { name, labels: { 'kubectl-cases': 'yes' } },
      webhooks,
    });
    // The real server takes a moment to notice; a create that is not stored tells when it has.
    const paths = given.map(({ path }) => `/${path}`);
    for (let attempt = 0; attempt < 50 && paths.some((path) => hooks.asked(path).length === 0); attempt++) {
      if (given.some(({ unasked }) => unasked === true)) break;
      await kubectl().run(
        'create --dry-run=server -f -',
        widget(`probe-${attempt}`, { color: 'red' }, { labels: { probe: 'yes' } }),
      );
    }
  }

  test('a review carries who does what to which object, and its answer is final', async () => {
    await configure('Validating', { path: 'validate', timeoutSeconds: 7 });
    hooks.answer('/validate', ({ operation }) => ({
      allowed: operation !== 'DELETE',
      status: { code: 422, message: 'widgets stay' },
    }));
    await kubectl().must('apply -f -', widget('reviewed'));
    const { request, query, review } = hooks.asked('/validate').at(-1) ?? {};
    expect(query).toBe('?timeout=7s');
    expect(review).toMatchObject({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' });
    expect(request).toMatchObject({
      operation: 'CREATE',
      name: 'reviewed',
      namespace: 'default',
      dryRun: false,
      kind: { group: 'kubectl.example.com', version: 'v1alpha1', kind: 'Widget' },
      resource: { group: 'kubectl.example.com', version: 'v1alpha1', resource: 'widgets' },
      oldObject: null,
      options: {
        kind: 'CreateOptions',
        apiVersion: 'meta.k8s.io/v1',
        fieldManager: 'kubectl-client-side-apply',
        fieldValidation: 'Strict',
      },
      object: {
        spec: { color: 'red', size: 3 },
        metadata: { name: 'reviewed', uid: expect.any(String), generation: 1 },
      },
    });
    expect(request?.userInfo.groups).toContain('system:authenticated');
    await kubectl().must('label wd reviewed a=b');
    expect(hooks.asked('/validate').at(-1)?.request).toMatchObject({
      operation: 'UPDATE',
      oldObject: { metadata: { name: 'reviewed' } },
      options: { kind: 'UpdateOptions' },
    });
    const refused = await kubectl().run('delete wd reviewed');
    expect(refused.err).toContain('admission webhook "validate.kubectl.example.com" denied the request: widgets stay');
    expect(hooks.asked('/validate').at(-1)?.request).toMatchObject({
      operation: 'DELETE',
      object: null,
      oldObject: { spec: { color: 'red' } },
      options: { kind: 'DeleteOptions', propagationPolicy: 'Background' },
    });
  });

  test('--as says in the review who is asking', async () => {
    await configure('Validating', { path: 'who' });
    await kubectl().must('create -f - --as=alice --as-group=system:masters', widget('asked'));
    expect(hooks.asked('/who').at(-1)?.request.userInfo).toMatchObject({
      username: 'alice',
      groups: expect.arrayContaining(['system:masters']),
    });
  });

  test('mutating webhooks come before the schema and validating ones after it', async () => {
    await configure('Mutating', { path: 'paint' });
    await configure('Validating', { path: 'check' });
    hooks.answer('/paint', ({ object }) =>
      patching({ op: 'add', path: '/spec/alias', value: object?.spec.color === 'red' ? 'fine' : 'NOT FINE' }),
    );
    await kubectl().must('apply -f -', widget('painted'));
    expect((await kubectl().get('wd painted')).spec).toEqual({ color: 'red', size: 3, alias: 'fine' });
    expect(hooks.asked('/check').at(-1)?.request.object?.spec).toEqual({ color: 'red', size: 3, alias: 'fine' });
    const before = hooks.asked('/check').length;
    const refused = await kubectl().run('apply -f -', widget('spoilt', { color: 'green' }));
    expect(refused.err).toContain('spec.alias: Invalid value: "NOT FINE"');
    await kubectl().run('apply -f -', widget('purple', { color: 'purple' }));
    expect(hooks.asked('/paint').at(-1)?.request.object?.spec.color).toBe('purple');
    expect(hooks.asked('/check')).toHaveLength(before);
    await kubectl().must('create -f -', { ...widget(''), metadata: { generateName: 'gen-' } });
    expect(hooks.asked('/paint').at(-1)?.request.object?.metadata).not.toHaveProperty('name');
  });

  test('what a mutating webhook adds beyond the schema is pruned, and one that asks for it is called again', async () => {
    await configure('Mutating', { path: 'early', reinvocationPolicy: 'IfNeeded' }, { path: 'late' });
    hooks.answer('/late', ({ object }) =>
      object?.spec.tags
        ? { allowed: true }
        : patching({ op: 'add', path: '/spec/tags', value: ['late'] }, { op: 'add', path: '/spec/nope', value: 1 }),
    );
    hooks.forget();
    hooks.answer('/late', () =>
      patching({ op: 'add', path: '/spec/tags', value: ['late'] }, { op: 'add', path: '/spec/nope', value: 1 }),
    );
    await kubectl().must('create -f -', widget('twice'));
    expect(hooks.asked('/early').map(({ request }) => request.object?.spec.tags)).toEqual([undefined, ['late']]);
    expect((await kubectl().get('wd twice')).spec).toEqual({ color: 'red', size: 3, tags: ['late'] });
  });

  test('warnings reach the person', async () => {
    await configure('Validating', { path: 'warn' });
    hooks.answer('/warn', () => ({ allowed: true, warnings: ['red is "loud"'] }));
    expect((await kubectl().run('create -f -', widget('loud'))).err).toBe('Warning: red is "loud"\n');
  });

  test('a denial keeps its code and reason', async () => {
    await configure('Validating', { path: 'deny' });
    hooks.answer('/deny', () => ({ allowed: false, status: { code: 403, reason: 'Forbidden', message: 'no' } }));
    expect((await kubectl().run('create -f -', widget('denied'))).err).toBe(
      'Error from server (Forbidden): error when creating "STDIN": admission webhook "deny.kubectl.example.com" denied the request: no\n',
    );
    hooks.answer('/deny', () => ({ allowed: false }));
    expect((await kubectl().run('create -f -', widget('denied'))).err).toContain(
      'admission webhook "deny.kubectl.example.com" denied the request without explanation',
    );
  });

  test('a dry run is reviewed as one, and refused where a webhook has side effects', async () => {
    await configure('Validating', { path: 'dry', sideEffects: 'NoneOnDryRun' });
    await kubectl().must('create --dry-run=server -f -', widget('dry-reviewed'));
    expect(hooks.asked('/dry').at(-1)?.request).toMatchObject({ dryRun: true });
  });

  test('the failure policy decides when a webhook answers wrongly, too late or not at all', async () => {
    await configure('Validating', { path: 'broken' });
    const failed = async () => (await kubectl().run('create -f -', widget('unlucky'))).err;
    const prefix =
      'Error from server (InternalError): error when creating "STDIN": Internal error occurred: failed calling webhook "broken.kubectl.example.com": ';
    hooks.answer('/broken', () => ({
      raw: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: 'other', allowed: true } },
    }));
    expect(await failed()).toMatch(
      /received invalid webhook response: expected response\.uid="[-0-9a-f]{36}", got "other"/,
    );
    hooks.answer('/broken', () => ({ raw: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' } }));
    expect(await failed()).toBe(`${prefix}received invalid webhook response: webhook response was absent\n`);
    hooks.answer('/broken', ({ uid }) => ({
      raw: { apiVersion: 'admission.k8s.io/v1beta1', kind: 'AdmissionReview', response: { uid, allowed: true } },
    }));
    expect(await failed()).toMatch(/failed calling webhook .*v1beta1.*AdmissionReview/);
    hooks.answer('/broken', () => patching({ op: 'remove', path: '/spec' }));
    expect(await failed()).toBe(
      `${prefix}received invalid webhook response: validating webhook may not return response.patch\n`,
    );
    hooks.answer('/broken', () => ({ http: 500, raw: 'boom', type: 'text/plain' }));
    expect(await failed()).toBe(
      `${prefix}failed to call webhook: an error on the server ("boom") has prevented the request from succeeding\n`,
    );
    // A second is short on a busy machine: no answer but the late one has to keep to it.
    hooks.answer('/broken', () => ({ allowed: true }));
    await kubectl().must(
      `patch validatingwebhookconfiguration validating-cases --type=json -p '[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":1}]'`,
    );
    await dryRun('probing', () => hooks.asked('/broken').at(-1)?.query === '?timeout=1s');
    hooks.answer('/broken', () => ({ allowed: true, after: 2_000 }));
    expect(await failed()).toMatch(
      /failed to call webhook: Post "https:\/\/127\.0\.0\.1:\d+\/broken\?timeout=1s": context deadline exceeded/,
    );
    await kubectl().must(
      `patch validatingwebhookconfiguration validating-cases --type=json -p '[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]'`,
    );
    await dryRun('lucky', ({ code, err }) => code === 0 && err === '');
  });

  test('a webhook that does not answer is named, with the address', async () => {
    await configure('Validating', {
      path: 'missed',
      clientConfig: { url: 'https://127.0.0.1:1/x', caBundle: hooks.caBundle },
      unasked: true,
    });
    const why =
      'Error from server (InternalError): error when creating "STDIN": Internal error occurred: failed calling webhook "missed.kubectl.example.com": failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused\n';
    await dryRun('missed', ({ err }) => err === why);
  });

  test('a webhook with the wrong certificate is not called', async () => {
    const { caBundle, stop } = await startWebhookServer();
    await stop();
    await configure('Validating', {
      path: 'stranger',
      clientConfig: { url: `${hooks.url}/stranger`, caBundle },
      unasked: true,
    });
    await dryRun('stranger', ({ err }) =>
      /failed to call webhook: Post "https:.*": tls: failed to verify certificate: x509: /.test(err),
    );
    expect(hooks.asked('/stranger')).toEqual([]);
  });

  test('rules, selectors and match conditions say which writes a webhook sees', async () => {
    await configure(
      'Validating',
      { path: 'all' },
      { path: 'labelled', objectSelector: { matchLabels: { probe: 'yes' } } },
      {
        path: 'named',
        matchConditions: [
          { name: 'probes', expression: 'object != null && object.metadata.name.startsWith("probe-")' },
        ],
      },
    );
    hooks.forget();
    await kubectl().must('create -f -', widget('chosen', { color: 'red' }, { labels: { probe: 'yes' } }));
    await kubectl().must('create -f -', widget('probe-x'));
    await kubectl().must(`patch wd chosen --subresource=status --type=merge -p '{"status":{"phase":"x"}}'`);
    const names = (path: string) => hooks.asked(path).map(({ request }) => request.name);
    expect(names('/all')).toEqual(['chosen', 'probe-x']);
    expect(names('/labelled')).toEqual(['chosen']);
    expect(names('/named')).toEqual(['probe-x']);
  });

  test('a webhook configuration that cannot work is refused', async () => {
    const refused = await kubectl().run('apply -f -', {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'wrong', labels: { 'kubectl-cases': 'yes' } },
      webhooks: [
        {
          name: 'wrong.kubectl.example.com',
          clientConfig: { url: 'http://127.0.0.1/x' },
          sideEffects: 'Some',
          admissionReviewVersions: ['v1'],
        },
      ],
    });
    for (const words of [
      'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
      `webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme`,
    ]) {
      expect(refused.err).toContain(words);
    }
  });
}
