// Is what access.yaml grants to reconcile enough, and is nothing of it too much? Asked of a real API server, as that service account.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIssuer } from '#adapters/issuer.ts';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import {
  createKubeconfigTransport,
  createServiceAccountTransport,
  type NodeTransport,
} from '#adapters/kubernetes/node.ts';
import type { KubeTransport } from '#adapters/kubernetes/transport.ts';
import { type Cluster, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import { gatewayInstances, kinds, teams, users, virtualKeys } from '#crds/kinds.ts';
import { keepCertificate } from '../../functions/reconcile/certificates/keep.ts';
import { termsOf } from '../../functions/reconcile/certificates/view.ts';
import { PARTS } from '../../functions/reconcile/workload/parts.ts';
import { type Grant, LEASE, RECONCILE, toRule } from '../../infra/access.ts';
import { LEASES } from '../../infra/kubernetes/lease.ts';
import { startListening } from '../../infra/kubernetes/listen.ts';
import { nodeDependencies } from '../../infra/node.ts';
import { IN_CLUSTER, webhookConfigurations } from '../../infra/webhooks.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../control-plane.ts';
import { silentLog } from '../silent-log.ts';
import { describeUnless } from '../unless.ts';
import { type Bed, createBed } from './bed.ts';
import { KNATIVE_SERVICES } from './knative-crd.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from './objects.ts';

const rbac = '/apis/rbac.authorization.k8s.io/v1';
/** The roles of reconcile: where each stands, and what it grants. */
const ROLES = [
  {
    path: `${rbac}/clusterroles`,
    kind: 'ClusterRole',
    metadata: { name: 'gateway-operator-reconcile' },
    grants: RECONCILE,
  },
  {
    path: `${rbac}/namespaces/gateway-operator/roles`,
    kind: 'Role',
    metadata: { name: 'reconcile-lease', namespace: 'gateway-operator' },
    grants: LEASE,
  },
];

/** Each verb of each resource. */
const ASKED = ROLES.flatMap((role) =>
  role.grants.flatMap((grant) =>
    grant.resources.flatMap((resource) => grant.verbs.map((verb) => ({ role, grant, resource, verb }))),
  ),
);

const without = (grants: readonly Grant[], gone: { grant: Grant; resource: string; verb: string }): Grant[] =>
  grants
    .flatMap((grant) =>
      grant.resources.map((resource) => ({
        ...grant,
        resources: [resource],
        verbs: grant.verbs.filter(
          (verb) => !(grant === gone.grant && resource === gone.resource && verb === gone.verb),
        ),
      })),
    )
    .filter(({ verbs }) => verbs.length > 0);

describeUnless(whyNoControlPlane(), 'the service account of reconcile', () => {
  let plane: TestControlPlane;
  let folder: string;
  let admin: Cluster;
  let reconciles: Cluster;
  let request: KubeTransport;
  let bed: Bed;
  const transports: NodeTransport[] = [];

  beforeAll(async () => {
    // The plug-in is what asks for `*/finalizers`; it is on in many clusters.
    plane = await startControlPlane({ plugins: ['OwnerReferencesPermissionEnforcement'] });
    folder = mkdtempSync(join(tmpdir(), 'gateway-operator-access-'));
    const kubectl = (...args: string[]) =>
      execFileSync('kubectl', args, { env: { ...process.env, KUBECONFIG: plane.kubeconfig }, stdio: 'pipe' });
    kubectl('apply', '-f', 'crds/manifests', '-f', 'infra/kubernetes/access.yaml');
    await plane.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', KNATIVE_SERVICES);
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
    reconciles = createCluster(asReconcile);
    request = asReconcile.request;
    bed = createBed({ clusters: { ours: admin, reconciles }, start: Date.now() });
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
      await plane.call('POST', path, { ...configuration, webhooks });
    }
  };

  const keep = async (failed: string[]) => {
    const { clock } = nodeDependencies();
    const metrics = { add: () => undefined, set: () => undefined, observe: () => undefined, render: () => '' };
    const service = { namespace: 'gateway-operator', name: 'admission' };
    const kept = await keepCertificate(
      { cluster: reconciles, clock, log: silentLog, metrics },
      {
        issuer: createIssuer(),
        service,
        secret: 'admission-tls',
        webhooks: 'gateway-operator',
        ...termsOf(90 * 86_400_000),
      },
    );
    if (kept.failed !== undefined) failed.push(kept.failed);
  };

  /** Watches, takes the Lease, and learns that somebody else has it; ends with the first failure. */
  const listen = async (failed: string[]) => {
    const node = nodeDependencies();
    const over = new AbortController();
    const fail = (message: string) => {
      failed.push(message);
      over.abort();
    };
    const listening = startListening({
      ...node,
      cluster: reconciles,
      request,
      lease: { namespace: 'gateway-operator', name: 'reconcile' },
      holder: node.ids.next(),
      seconds: 3,
      newId: node.ids.next,
      log: { info: fail, warn: fail, error: fail },
      post: async () => '{}',
      onSweep: () => undefined,
      signal: over.signal,
    });
    const follow = setInterval(() => {
      void admin.patch(LEASES, 'gateway-operator', 'reconcile', { spec: { holderIdentity: node.ids.next() } });
    }, 100);
    const { ended } = await listening.done;
    clearInterval(follow);
    if (ended !== 'a successor listens') failed.push(ended);
  };

  /** Every kind of action once; answers what failed. */
  const walk = async (): Promise<ReadonlyArray<string>> => {
    const failed: string[] = [];
    const run = async (asked: Promise<{ failed: object }>) =>
      failed.push(
        ...(await asked.then(
          (report) => Object.keys(report.failed),
          (error: Error) => [error.message],
        )),
      );
    await bed.apply(
      ...makeSecrets(),
      makeInstance(),
      makeTeam(),
      makeUser({ teamRefs: [{ name: 'research' }] }),
      makeKey(),
    );
    await run(bed.sweep());
    for (const [kind, name] of [
      ['GatewayInstance', 'main'],
      ['VirtualKey', 'chat'],
      ['User', 'alice'],
      ['Team', 'research'],
    ] as const) {
      await run(bed.hint(kind, name));
    }
    for (const [kind, name] of [
      [gatewayInstances, 'main'],
      [virtualKeys, 'chat'],
      [users, 'alice'],
    ] as const) {
      const ready = await bed.ready(kind, name);
      if (ready !== 'True Ready') failed.push(`${kind.kind} ${name}: ${ready}`);
    }
    await bed.edit(virtualKeys, 'chat', {
      spec: {
        secretTemplate: { labels: { app: 'chat' } },
        userRef: { name: 'alice' },
        teamRef: { name: 'research' },
      },
    });
    await bed.edit(users, 'alice', { spec: { maxBudget: '26' } });
    await run(bed.hint('VirtualKey', 'chat'));
    await run(bed.sweep());
    await bed.edit(users, 'alice', { spec: { keyAlias: 'renamed' } });
    const selector = { matchLabels: { 'kubernetes.io/metadata.name': 'default' } };
    for (const retries of [1, 3, 4]) {
      await bed.edit(gatewayInstances, 'main', {
        spec: { routing: { retries }, allowedNamespaces: { from: 'Selector', selector } },
      });
      await run(bed.sweep());
    }
    for (const [kind, name] of [
      [virtualKeys, 'chat'],
      [users, 'alice'],
      [teams, 'research'],
      [gatewayInstances, 'main'],
    ] as const) {
      await bed.remove(kind, name);
      await run(bed.sweep());
    }
    // The rest is the process's, not a run's: what failed until here is enough to know.
    if (failed.length === 0) await keep(failed);
    // The first makes the Lease, the second takes it.
    if (failed.length === 0) await listen(failed);
    if (failed.length === 0) await listen(failed);
    return failed;
  };

  /** Whatever runs gateways, made, changed and removed; answers what failed. */
  const walkWorkloads = async (): Promise<ReadonlyArray<string>> => {
    const failed: string[] = [];
    bed.servedAt = 'nobody';
    await bed.apply(...makeSecrets(), makeSecret('store', { host: 'redis', port: '6379', password: '' }));
    for (const workload of [
      { type: 'Deployment', scale: { min: 1, max: 2 } },
      { type: 'Deployment', scale: { min: 1, max: 1 }, image: 'example.com/own:1' },
      { type: 'External', url: 'https://llm.example.com' },
      { type: 'Knative' },
      { type: 'External', url: 'https://llm.example.com' },
    ]) {
      await bed.apply(makeInstance({ workload: { url: null, scale: null, image: null, ...workload } }));
      failed.push(...Object.keys((await bed.sweep()).failed));
      const { conditions = [] } = await bed.status(gatewayInstances, 'main');
      failed.push(...conditions.map(({ reason }) => reason).filter((reason) => reason === 'WorkloadUnreadable'));
    }
    for (const part of Object.values(PARTS)) {
      const left = await admin.list(part, { namespace: 'default' });
      failed.push(
        ...left.filter(({ metadata }) => metadata.name.startsWith('main-')).map(({ kind }) => `${kind} left`),
      );
    }
    return failed;
  };

  /** As an administrator, whatever the walk has left. */
  const clear = async () => {
    for (const role of ROLES) await grant(role, role.grants);
    for (const [path, name] of [
      ['/api/v1/namespaces/gateway-operator/secrets', 'admission-tls'],
      ['/apis/coordination.k8s.io/v1/namespaces/gateway-operator/leases', 'reconcile'],
      ['/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', 'gateway-operator'],
      ['/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', 'gateway-operator'],
    ]) {
      await plane.call('DELETE', `${path}/${name}`);
    }
    await putWebhooks();
    const own: Resource[] = [...kinds, RESOURCES.secrets, RESOURCES.configMaps, ...Object.values(PARTS)];
    for (const kind of own) {
      for (const { metadata } of await admin.list(kind, { namespace: 'default' })) {
        if (metadata.name === 'kubernetes') continue;
        await admin.patch(kind, 'default', metadata.name, { metadata: { finalizers: null } });
        await admin.delete(kind, 'default', metadata.name, metadata.uid ?? '');
      }
    }
    bed.restart();
    bed.servedAt = undefined;
  };

  test('may do everything that a run does', async () => {
    expect(await walkWorkloads()).toEqual([]);
    expect(await bed.shown(), 'keys and passwords that are shown').toEqual([]);
    await clear();
    expect(await walk()).toEqual([]);
    expect(await bed.shown(), 'keys and passwords that are shown').toEqual([]);
    for (const kind of kinds) expect(await admin.list(kind)).toEqual([]);
    await clear();
  });

  const grant = async ({ path, kind, metadata }: (typeof ROLES)[number], grants: readonly Grant[]) => {
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind, metadata, rules: grants.map(toRule) };
    expect((await plane.call('PUT', `${path}/${metadata.name}`, role)).code).toBe(200);
  };

  test.each(ASKED)('needs $verb of $resource: without it something fails', async (gone) => {
    await grant(gone.role, without(gone.role.grants, gone));
    const { group } = gone.grant;
    const isWorkload = Object.values(PARTS).some((part) => part.group === group && part.plural === gone.resource);
    // Listing and watching them is for whoever listens.
    const isActed = isWorkload && gone.verb !== 'list' && gone.verb !== 'watch';
    expect(await (isActed ? walkWorkloads() : walk())).not.toEqual([]);
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
