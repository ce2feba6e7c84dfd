// Is what access.yaml grants to admission enough, and is nothing of it too much? Asked of a real API server, as that
// service account.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, type NodeTransport } from '#adapters/kubernetes/node.ts';
import type { Cluster, KubeObject } from '#core/ports/cluster.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import { applyKinds, put } from '../../infra/packaging/manifests/apply.ts';
import { makeAccounts } from '../../infra/platforms/local/cluster/accounts.ts';
import { type AccessRule, accessRules, rightsOf, rulesWithout } from '../support/access-rules.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { depsOf, GOOD, objectOf, post, requestOf } from './fixtures.ts';
import { BASE } from './manifests.ts';

const ROLE = {
  path: '/apis/rbac.authorization.k8s.io/v1/clusterroles/gateway-operator-admission',
  metadata: { name: 'gateway-operator-admission' },
};
const RULES = accessRules('admission');

const skip = whyNoControlPlane();
describeUnless(skip, 'the service account of admission', () => {
  let plane: TestControlPlane;
  let cluster: Cluster;
  const transports: NodeTransport[] = [];

  beforeAll(async () => {
    plane = await startControlPlane();
    const open = async (file: string) => {
      const transport = await createKubeconfigTransport(file);
      transports.push(transport);
      return createCluster(transport);
    };
    const admin = await open(plane.kubeconfig);
    await applyKinds(admin);
    cluster = await open((await makeAccounts(plane.kubeconfig, temporaryFolder())).admission);
    for (const name of ['platform', 'team-a'])
      await put(admin, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, true);
    const selector = { matchLabels: { 'kubernetes.io/metadata.name': 'team-a' } };
    for (const object of BASE) {
      const isInstance = object.kind === 'GatewayInstance';
      const spec = { ...(object.spec as object), allowedNamespaces: { from: 'Selector', selector } };
      await put(admin, isInstance ? { ...object, spec } : object, true);
    }
  });
  afterAll(async () => {
    for (const { close } of transports) await close();
    await plane?.stop();
  });

  const judge = async (object: KubeObject, more: object = {}) => {
    // Who asks may read everything: what is asked here is what admission may.
    const userInfo = { username: 'admin', groups: ['system:masters', 'system:authenticated'] };
    const request = requestOf(object, { ...more, userInfo });
    const review = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request };
    const reply = await post(depsOf(cluster), '/validate', review);
    if (reply.status !== 200) return [`${object.kind}: ${reply.status}`];
    const { response } = (await reply.json()) as { response: { allowed: boolean; status?: { message: string } } };
    return response.allowed ? [] : [`${object.kind}: ${response.status?.message}`];
  };
  const of = (kind: KindName, change: object) => objectOf(kind, { ...GOOD[kind], ...change }, { name: 'another' });

  /** A review of each kind, and an edit that takes a model away; answers what failed. */
  const walk = async (): Promise<ReadonlyArray<string>> => {
    const [entry] = GOOD.GatewayInstance.models;
    const instance = objectOf('GatewayInstance');
    const fewer = objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models: [entry] });
    const failed = [
      await judge(of('GatewayInstance', {})),
      await judge(fewer, { oldObject: instance }),
      await judge(of('Team', { teamAlias: 'other' })),
      await judge(of('User', { userEmail: 'other@example.com', keyAlias: 'other' })),
      await judge(of('VirtualKey', { keyAlias: 'another' })),
    ];
    return failed.flat();
  };
  const grant = async (rules: ReadonlyArray<AccessRule>) => {
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      ...ROLE,
      rules,
    };
    expect((await plane.call('PUT', ROLE.path, role)).code).toBe(200);
  };

  test('may do everything that a review asks for', async () => {
    expect(await walk()).toEqual([]);
  });

  test.each(rightsOf(RULES))('needs $verb of $resource: without it a review is not judged', async (removed) => {
    await grant(rulesWithout(RULES, removed));
    // The authorizer hears of a role a moment after it is written.
    const undecided = async () => (await walk()).filter((failure) => failure.endsWith(': 500'));
    expect(await eventually(undecided, (failed) => failed.length > 0)).not.toEqual([]);
    await grant(rulesWithout(RULES));
    expect(await eventually(walk, (failed) => failed.length === 0)).toEqual([]);
  });

  test.each([
    ['list', '', 'secrets'],
    ['watch', '', 'secrets'],
    ['create', '', 'secrets'],
    ['patch', 'auth.gateway-operator.dev', 'virtualkeys'],
    ['watch', 'auth.gateway-operator.dev', 'virtualkeys'],
    ['list', 'instance.gateway-operator.dev', 'gatewayinstances'],
    ['list', '', 'namespaces'],
    ['create', 'authentication.k8s.io', 'tokenreviews'],
  ])('may not %s %s %s', async (verb, group, resource) => {
    const user = 'system:serviceaccount:gateway-operator:admission';
    const spec = { user, groups: ['system:serviceaccounts'], resourceAttributes: { verb, group, resource } };
    const { body } = await plane.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec });
    expect((body as { status: { allowed: boolean } }).status.allowed).toBe(false);
  });
});
