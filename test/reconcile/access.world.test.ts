// Is what access.yaml grants to reconcile enough, and is nothing of it too much? Asked of a real API server, as that service account.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import {
  createKubeconfigTransport,
  createServiceAccountTransport,
  type NodeTransport,
} from '#adapters/kubernetes/node.ts';
import type { Cluster, Resource } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds.ts';
import { PARTS } from '../../functions/reconcile/workload/parts.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../control-plane.ts';
import {
  type Bed,
  createBed,
  gatewayInstances,
  makeInstance,
  makeKey,
  makeSecret,
  makeSecrets,
  makeTeam,
  makeUser,
  RESOURCES,
  teams,
  users,
  virtualKeys,
} from './bed.ts';

interface Rule {
  readonly apiGroups: string[];
  readonly resources: string[];
  readonly verbs: string[];
}
interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules: Rule[];
}

const ROLE = '/apis/rbac.authorization.k8s.io/v1/clusterroles/gateway-operator-reconcile';
const role = parseAllDocuments(readFileSync('infra/kubernetes/access.yaml', 'utf8'))
  .map((document) => document.toJS() as Role)
  .find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === 'gateway-operator-reconcile');
const rules = role?.rules ?? [];

/**
 * One verb of one resource, as far as runs ask for it: who listens watches (and lists Deployments), `*\/finalizers` is asked for by
 * an admission plug-in that is off by default, webhook configurations by the process that keeps admission's certificate.
 */
const grants = rules
  .flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => ({ group, resource, verb })))),
  )
  .filter(
    ({ group, resource, verb }) =>
      verb !== 'watch' &&
      !(resource === 'deployments' && verb === 'list') &&
      !resource.endsWith('/finalizers') &&
      group !== 'admissionregistration.k8s.io',
  );

/** As much of Knative as rights are about. */
const KNATIVE_SERVICES = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'services.serving.knative.dev',
    annotations: { 'api-approved.kubernetes.io': 'unapproved, for tests' },
  },
  spec: {
    group: PARTS.KnativeService.group,
    scope: 'Namespaced',
    names: { kind: 'Service', plural: 'services', singular: 'service', listKind: 'ServiceList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

const skip = whyNoControlPlane();
describe.skipIf(skip !== undefined)(
  `the service account of reconcile${skip === undefined ? '' : ` (skipped: ${skip})`}`,
  () => {
    let plane: TestControlPlane;
    let folder: string;
    let admin: Cluster;
    let bed: Bed;
    const transports: NodeTransport[] = [];

    beforeAll(async () => {
      plane = await startControlPlane();
      folder = mkdtempSync(join(tmpdir(), 'gateway-operator-access-'));
      const kubectl = (...args: string[]) =>
        execFileSync('kubectl', args, { env: { ...process.env, KUBECONFIG: plane.kubeconfig }, stdio: 'pipe' });
      kubectl('apply', '-f', 'crds/manifests', '-f', 'infra/kubernetes/access.yaml');
      await plane.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', KNATIVE_SERVICES);
      kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
      const path = '/api/v1/namespaces/gateway-operator/serviceaccounts/reconcile/token';
      const { body } = await plane.call('POST', path, { spec: { expirationSeconds: 3600 } });
      writeFileSync(join(folder, 'token'), (body as { status: { token: string } }).status.token);
      writeFileSync(join(folder, 'ca.crt'), plane.ca);
      const asAdmin = await createKubeconfigTransport(plane.kubeconfig);
      const asReconcile = createServiceAccountTransport({ address: plane.url, folder });
      transports.push(asAdmin, asReconcile);
      admin = createCluster(asAdmin);
      bed = createBed({ clusters: { ours: admin, reconciles: createCluster(asReconcile) }, start: Date.now() });
    });
    afterAll(async () => {
      for (const { close } of transports) await close();
      await plane?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

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
      await plane.call('PUT', ROLE, { ...role, apiVersion: 'rbac.authorization.k8s.io/v1' });
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
      await clear();
      expect(await walk()).toEqual([]);
      for (const kind of kinds) expect(await admin.list(kind)).toEqual([]);
      await clear();
    });

    test.each(grants)('needs $verb of $resource: without it a run fails', async ({ group, resource, verb }) => {
      const fewer = rules.flatMap((rule) =>
        rule.resources.map((one) => ({
          ...rule,
          resources: [one],
          verbs: rule.verbs.filter((other) => !(rule.apiGroups.includes(group) && one === resource && other === verb)),
        })),
      );
      const { code } = await plane.call('PUT', ROLE, {
        ...role,
        apiVersion: 'rbac.authorization.k8s.io/v1',
        rules: fewer.filter(({ verbs }) => verbs.length > 0),
      });
      expect(code).toBe(200);
      const isWorkload = Object.values(PARTS).some((part) => part.group === group && part.plural === resource);
      expect((await (isWorkload ? walkWorkloads() : walk())).length).toBeGreaterThan(0);
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
  },
);
