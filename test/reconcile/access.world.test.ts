// Is what access.yaml grants to reconcile enough, and is nothing of it too much? Asked of a real API server, as that
// service account. CI takes away only the rights that no request shows; `npm run campaigns` takes away each.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCluster, type KubeRequest, type KubeTransport } from '#adapters/kubernetes/cluster.ts';
import {
  createKubeconfigTransport,
  createServiceAccountTransport,
  type NodeTransport,
} from '#adapters/kubernetes/node.ts';
import { type Cluster, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds/kinds.ts';
import { WORKLOAD_OBJECTS } from '../../functions/reconcile/workload/workload-objects.ts';
import { IN_CLUSTER, webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { type AccessRule, accessRules, type Right, rightsOf, rulesWithout } from '../support/access-rules.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { describeUnless, testUnless, whyNoCampaign } from '../support/skip-unless.ts';
import { HTTP_ROUTES, KNATIVE_SERVICES } from './foreign-crds.ts';
import { createHarness, type Harness } from './harness.ts';
import { createWalks, type Walks } from './walks.ts';

const rbac = '/apis/rbac.authorization.k8s.io/v1';
/** The role of reconcile. */
const ROLE = { path: `${rbac}/clusterroles`, name: 'gateway-operator-reconcile' };

const RULES = accessRules('reconcile');

describeUnless(whyNoControlPlane(), 'the service account of reconcile', () => {
  let plane: TestControlPlane;
  let folder: string;
  let admin: Cluster;
  let harness: Harness;
  let walks: Walks;
  const transports: NodeTransport[] = [];
  const requests: Access[] = [];

  beforeAll(async () => {
    // The plug-in is what asks for `*/finalizers`; it is on in many clusters.
    plane = await startControlPlane({ plugins: ['OwnerReferencesPermissionEnforcement'] });
    folder = mkdtempSync(join(tmpdir(), 'gateway-operator-access-'));
    const kubectl = (...args: string[]) =>
      execFileSync('kubectl', args, { env: { ...process.env, KUBECONFIG: plane.kubeconfig }, stdio: 'pipe' });
    kubectl('apply', '-f', 'crds/manifests', '-f', 'infra/platforms/kubernetes/access.yaml');
    for (const crd of [KNATIVE_SERVICES, HTTP_ROUTES])
      await plane.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd);
    await putWebhooks();
    kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
    const path = '/api/v1/namespaces/gateway-operator/serviceaccounts/reconcile/token';
    const { body } = await plane.call('POST', path, { spec: { expirationSeconds: 3600 } });
    writeFileSync(join(folder, 'token'), (body as { status: { token: string } }).status.token);
    writeFileSync(join(folder, 'ca.crt'), plane.ca);
    const asAdmin = await createKubeconfigTransport(plane.kubeconfig);
    const asReconcile = createServiceAccountTransport({ address: plane.url, folder });
    transports.push(asAdmin, asReconcile);
    admin = createCluster(asAdmin);
    const reconciles = createCluster({ request: noting(requests, asReconcile.request) });
    harness = createHarness({ clusters: { ours: admin, reconciles }, start: Date.now() });
    walks = createWalks({ harness, admin, reconciles });
  });
  afterAll(async () => {
    for (const { close } of transports) await close();
    await plane?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Nobody serves them here, so they match nothing: only what reconcile writes into them is looked at. */
  const putWebhooks = async () => {
    for (const configuration of webhookConfigurations(IN_CLUSTER)) {
      const webhooks = (configuration.webhooks as Array<{ rules: object[] }>).map((webhook) => ({
        ...webhook,
        rules: webhook.rules.map((rule) => ({ ...rule, apiGroups: ['nobody.example.com'] })),
      }));
      const path = `/apis/admissionregistration.k8s.io/v1/${configuration.kind.toLowerCase()}s`;
      const { code, body } = await plane.call('POST', path, { ...configuration, webhooks });
      expect(code, JSON.stringify(body)).toBe(201);
    }
  };

  /** As an administrator, whatever the walk has left. */
  const clear = async () => {
    await grant(RULES);
    for (const [path, name] of [
      ['/api/v1/namespaces/gateway-operator/secrets', 'admission-tls'],
      ['/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', 'gateway-operator'],
      ['/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', 'gateway-operator'],
    ]) {
      await plane.call('DELETE', `${path}/${name}`);
    }
    await putWebhooks();
    const own: Resource[] = [...kinds, RESOURCES.secrets, RESOURCES.configMaps, ...Object.values(WORKLOAD_OBJECTS)];
    for (const kind of own) {
      for (const { metadata } of await admin.list(kind, { namespace: 'default' })) {
        if (metadata.name === 'kubernetes') continue;
        await admin.patch(kind, 'default', metadata.name, { metadata: { finalizers: null } });
        await admin.delete(kind, 'default', metadata.name, metadata.uid ?? '');
      }
    }
    harness.restart();
    harness.servedAt = undefined;
  };

  test('may do everything that a run does', async () => {
    expect(await walks.workloads()).toEqual([]);
    expect(await harness.shown(), 'keys and passwords that are shown').toEqual([]);
    await clear();
    expect(await walks.keys()).toEqual([]);
    expect(await harness.shown(), 'keys and passwords that are shown').toEqual([]);
    for (const kind of kinds) expect(await admin.list(kind)).toEqual([]);
    await clear();
  });

  const grant = async (rules: ReadonlyArray<AccessRule>) => {
    const { path, name } = ROLE;
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name } };
    expect((await plane.call('PUT', `${path}/${name}`, { ...role, rules })).code).toBe(200);
  };

  const walkWithout = async (removed: Right) => {
    await grant(rulesWithout(RULES, removed));
    const isWorkload = Object.values(WORKLOAD_OBJECTS).some(
      (part) => part.group === removed.group && part.plural === removed.resource,
    );
    // The first failure tells.
    expect(await (isWorkload ? walks.workloads(1) : walks.keys(1)), nameOf(removed)).not.toEqual([]);
    await clear();
  };

  test('uses each right in a request, or a run fails without it', async () => {
    const isUsed = ({ rule, group, resource, verb }: Right) =>
      requests.some(
        (access) =>
          [access.group, access.resource].join() === [group, resource].join() &&
          access.verbs.includes(verb) &&
          rule.resourceNames?.includes(access.name) !== false,
      );
    const rights = rightsOf(RULES);
    // No other rule allows the request, too.
    expect(new Set(rights.map(nameOf)).size).toBe(rights.length);
    const others = rights.filter((right) => !isUsed(right));
    expect(others.map(nameOf)).toEqual([
      'update of instance.gateway-operator.dev/gatewayinstances/finalizers',
      'update of auth.gateway-operator.dev/users/finalizers',
    ]);
    for (const removed of others) await walkWithout(removed);
  });

  for (const right of rightsOf(RULES)) {
    const name = `needs ${right.verb} of ${right.resource}: without it something fails`;
    testUnless(whyNoCampaign, name, () => walkWithout(right));
  }

  test('misses nothing when all is granted again: what failed, failed for what was taken', async () => {
    expect(await walks.workloads()).toEqual([]);
    await clear();
    expect(await walks.keys()).toEqual([]);
    await clear();
  });

  test('may neither list nor watch Secrets, nor touch anything else', async () => {
    const may = async (verb: string, group: string, resource: string) => {
      const user = 'system:serviceaccount:gateway-operator:reconcile';
      const spec = {
        user,
        groups: ['system:serviceaccounts'],
        resourceAttributes: { verb, group, resource, namespace: 'default' },
      };
      const { body } = await plane.call('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec });
      return (body as { status: { allowed: boolean } }).status.allowed;
    };
    expect(await may('get', '', 'secrets')).toBe(true);
    for (const verb of ['list', 'watch', 'deletecollection']) expect(await may(verb, '', 'secrets')).toBe(false);
    for (const resource of ['pods', 'serviceaccounts', 'nodes', 'pods/exec'])
      expect(await may('get', '', resource)).toBe(false);
    for (const resource of ['clusterroles', 'rolebindings'])
      expect(await may('create', 'rbac.authorization.k8s.io', resource)).toBe(false);
  });
});

/** What a request asks the API server for. */
interface Access {
  readonly group: string;
  readonly resource: string;
  readonly name: string;
  readonly verbs: ReadonlyArray<string>;
}

const nameOf = ({ verb, group, resource }: Right) => `${verb} of ${group}/${resource}`;

/** Notes every request that is not forbidden. Discovery needs no right. */
const noting =
  (requests: Access[], send: KubeTransport): KubeTransport =>
  async (request) => {
    const answer = await send(request);
    const path = /^\/(?:api|apis\/([^/?]+))\/[^/?]+\/([^?]+)/.exec(request.path);
    if (path !== null && answer.status !== 403) requests.push(accessOf(request.method, path, answer.status));
    return answer;
  };

function accessOf(method: KubeRequest['method'], [, group = '', path = '']: RegExpExecArray, status: number): Access {
  const [plural = '', name = '', part] = path.replace(/^namespaces\/[^/]+\/(?=.)/, '').split('/');
  const verbs = {
    GET: [name === '' ? 'list' : 'get'],
    POST: ['create'],
    // Server-side apply is a patch that may create.
    PATCH: status === 201 ? ['patch', 'create'] : ['patch'],
    DELETE: ['delete'],
  };
  return { group, resource: part === undefined ? plural : `${plural}/${part}`, name, verbs: verbs[method] };
}
