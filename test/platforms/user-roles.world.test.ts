// User roles on a real API server: they permit their purpose and no more.
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { describeUnless } from '../support/skip-unless.ts';

const skip = whyNoControlPlane();
const INSTANCES = '/apis/instance.gateway-operator.dev/v1alpha1/namespaces/default/gatewayinstances';
const AUTH = '/apis/auth.gateway-operator.dev/v1alpha1/namespaces/default';

/** Role bindings in the namespace `default`. */
const PEOPLE = {
  admin: 'admin',
  editor: 'edit',
  viewer: 'view',
  'key-editor': 'gateway-key-editor',
  'key-viewer': 'gateway-key-viewer',
};

describeUnless(skip, 'who may do what', () => {
  let plane: TestControlPlane;
  beforeAll(async () => {
    plane = await startControlPlane({ controllers: ['clusterrole-aggregation-controller'] });
    const kubectl = (...args: string[]) =>
      execFileSync('kubectl', args, { env: { ...process.env, KUBECONFIG: plane.kubeconfig }, stdio: 'pipe' });
    kubectl('apply', '-f', 'crds/manifests', '-f', 'infra/platforms/kubernetes/access.yaml');
    kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
    for (const [user, role] of Object.entries(PEOPLE))
      kubectl('create', 'rolebinding', user, `--clusterrole=${role}`, `--user=${user}`, '-n', 'default');
    // The built-in roles include ours a moment after they are created.
    await eventually(
      () => ask('viewer', 'GET', INSTANCES),
      (code) => code === 200,
      30_000,
    );
    await eventually(
      () => ask('admin', 'DELETE', `${INSTANCES}/none`),
      (code) => code === 404,
      30_000,
    );
  });
  afterAll(() => plane?.stop());

  const ask = async (user: string, method: string, path: string, body?: object) =>
    (await plane.call(method, path, body, { 'impersonate-user': user })).code;

  // 403: not permitted. 404 and 422: permitted, and the object is missing or invalid.
  test.each([
    ['admin', 'GET', INSTANCES, 200],
    ['admin', 'POST', INSTANCES, 422],
    ['admin', 'DELETE', `${INSTANCES}/none`, 404],
    ['admin', 'GET', `${AUTH}/virtualkeys`, 403],
    ['admin', 'POST', `${AUTH}/virtualkeys`, 403],
    ['admin', 'GET', `${AUTH}/users`, 403],
    ['editor', 'GET', INSTANCES, 200],
    ['editor', 'POST', INSTANCES, 403],
    ['editor', 'GET', `${AUTH}/virtualkeys`, 403],
    ['viewer', 'GET', INSTANCES, 200],
    ['viewer', 'DELETE', `${INSTANCES}/none`, 403],
    ['viewer', 'GET', `${AUTH}/virtualkeys`, 403],
    ['key-editor', 'POST', `${AUTH}/virtualkeys`, 422],
    ['key-editor', 'POST', `${AUTH}/teams`, 422],
    ['key-editor', 'DELETE', `${AUTH}/users/none`, 404],
    ['key-editor', 'GET', INSTANCES, 403],
    ['key-editor', 'GET', '/api/v1/namespaces/default/secrets', 403],
    ['key-viewer', 'GET', `${AUTH}/virtualkeys`, 200],
    ['key-viewer', 'GET', `${AUTH}/teams`, 200],
    ['key-viewer', 'POST', `${AUTH}/virtualkeys`, 403],
    ['key-viewer', 'GET', `${AUTH.replace('default', 'kube-system')}/virtualkeys`, 403],
    ['nobody', 'GET', INSTANCES, 403],
  ])('%s: %s %s is answered with %i', async (user, method, path, code) => {
    const kind = path.includes('gatewayinstances') ? 'GatewayInstance' : path.includes('teams') ? 'Team' : 'VirtualKey';
    const [, , group] = path.split('/');
    const body = { apiVersion: `${group}/v1alpha1`, kind, metadata: { name: 'none' }, spec: {} };
    expect(await ask(user, method, path, method === 'POST' ? body : undefined)).toBe(code);
  });
});
