// Does what reconcile makes for a gateway come up where controllers run it, and does an API server keep it as it was
// written?
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, type NodeTransport } from '#adapters/kubernetes/node.ts';
import { type Cluster, type KubeObject, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import {
  WORKLOAD_OBJECTS,
  WORKLOAD_OBJECTS_OF,
  type WorkloadObjectKind,
  workloadObjectName,
} from '../../functions/reconcile/workload/workload-objects.ts';
import { applyKinds } from '../../infra/packaging/manifests/apply.ts';
import { makeAccounts } from '../../infra/platforms/local/cluster/accounts.ts';
import { startWorld, type TestWorld } from '../platforms/world.ts';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { KNATIVE_SERVICES } from './foreign-crds.ts';
import { createHarness, type Harness } from './harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets } from './objects.ts';

const TEST_KIT = process.env.GATEWAY_OPERATOR_ENVTEST_KIT ?? '';
const ASSETS = process.env.KUBEBUILDER_ASSETS ?? '';
const whyNot =
  whyNoControlPlane() ??
  (existsSync(join(TEST_KIT, 'start-nodes.sh')) ? undefined : 'GATEWAY_OPERATOR_ENVTEST_KIT has no start-nodes.sh') ??
  (existsSync(join(ASSETS, 'nodes')) ? undefined : `no nodes in ${ASSETS} (KUBEBUILDER_ASSETS)`);

const CRDS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
};

const workload = { type: 'Deployment', scale: { min: 2, max: 2 }, resources: { requests: { cpu: '0.5' } } };
const redis = makeSecret('store', { host: 'redis', port: '6379', password: '' });

/** What both clusters promise of a Deployment and what goes with it. */
function describeParts(open: () => { readonly cluster: Cluster; readonly reconciles?: Cluster }): void {
  let harness: Harness;
  const live = (part: WorkloadObjectKind) => harness.get(WORKLOAD_OBJECTS[part], workloadObjectName(part, 'main'));
  const versions = async () => {
    const found = await Promise.all((Object.keys(WORKLOAD_OBJECTS) as WorkloadObjectKind[]).slice(0, 4).map(live));
    return found.map((object) => object?.metadata.resourceVersion);
  };
  const resync = async () => {
    const report = await harness.resync();
    expect({
      failed: report.failed,
      lastLines: Object.keys(report.failed).length === 0 ? [] : harness.log.lines.slice(-3),
    }).toEqual({ failed: {}, lastLines: [] });
    return report.actions;
  };
  const edit = (more: object) => harness.edit(gatewayInstances, 'main', { spec: { workload: more } });

  beforeAll(async () => {
    const { cluster, reconciles = cluster } = open();
    harness = createHarness({ clusters: { ours: cluster, reconciles }, start: Date.now() });
    harness.servedAt = 'nobody';
    await harness.apply(...makeSecrets(), makeKey());
    await harness.apply(redis, makeInstance({ workload }));
    await resync();
  });

  test('what was made is found as it was made: resyncs over it write nothing', async () => {
    await resync();
    const before = await versions();
    expect(before.map((version) => version !== undefined)).toEqual([true, true, true, false]);
    for (let turn = 0; turn < 3; turn += 1) {
      const { WriteStatus: _, RecordEvent: __, ...writes } = await resync();
      expect(writes).toEqual({});
    }
    const after = (await live('Service'))?.metadata.resourceVersion;
    expect(after).toBe(before[1]);
  });

  test('each change is one write, its clearing one more, and nothing is left of it', async () => {
    const text = async () => JSON.stringify((await live('Deployment'))?.spec);
    const before = await text();
    for (const [field, value] of Object.entries({
      env: [{ name: 'LOG_LEVEL', value: 'warn' }],
      podAnnotations: { scrape: 'true' },
      podLabels: { team: 'platform' },
      serviceAccountName: 'gateway',
      image: 'registry.example.com/own:1',
    })) {
      for (const next of [value, null]) {
        await edit({ [field]: next });
        expect(await resync()).toMatchObject({ ApplyWorkload: 1 });
        expect(await resync()).not.toHaveProperty('ApplyWorkload');
      }
      expect(await text()).toBe(before);
    }
  });

  test('from a shared store to the one in memory and back: one process at a time, then a rolling update', async () => {
    const spec = async () => (await live('Deployment'))?.spec as { strategy: object };
    await edit({ scale: { min: 1, max: 1 } });
    await harness.apply(...makeSecrets());
    await resync();
    expect((await spec()).strategy).toEqual({ type: 'Recreate' });
    await harness.apply(redis);
    await edit({ scale: { min: 2, max: 3, targetRequestsInFlight: 50 } });
    await resync();
    expect((await spec()).strategy).toMatchObject({ type: 'RollingUpdate' });
    const metrics = [{ type: 'Resource' }, { type: 'Pods', pods: { target: { averageValue: '50' } } }];
    expect(await live('HorizontalPodAutoscaler')).toMatchObject({ spec: { minReplicas: 2, maxReplicas: 3, metrics } });
    expect(await resync()).not.toHaveProperty('ApplyWorkload');
    await edit({ scale: { min: 2, max: 2 } });
    expect(await resync()).toMatchObject({ DeleteWorkload: 1 });
    expect(await live('HorizontalPodAutoscaler')).toBeUndefined();
  });

  test('annotations and fields of others stay, ours come back', async () => {
    const { cluster } = open();
    const theirs = { annotations: { 'example.com/theirs': 'yes' } };
    await cluster.patch(WORKLOAD_OBJECTS.Deployment, 'default', 'main-gateway', {
      metadata: theirs,
      spec: { minReadySeconds: 1, progressDeadlineSeconds: 9 },
    });
    expect(await resync()).toMatchObject({ ApplyWorkload: 1 });
    expect(await live('Deployment')).toMatchObject({
      metadata: theirs,
      spec: { minReadySeconds: 1, progressDeadlineSeconds: 300 },
    });
    expect(await resync()).not.toHaveProperty('ApplyWorkload');
  });

  test('no key and no password is in what the cluster has, but in Secrets and in the status of its own key', async () => {
    expect(await harness.value('chat-key')).toMatch(/^sk-/);
    expect(await harness.shown()).toEqual([]);
  });

  test('a Deployment that was replaced by one of somebody else is not written to', async () => {
    const { cluster } = open();
    const found = await live('Deployment');
    const aimed = { ...found, metadata: { ...found?.metadata, managedFields: undefined, resourceVersion: undefined } };
    await harness.remove(WORKLOAD_OBJECTS.Deployment, 'main-gateway');
    await eventually(
      () => live('Deployment'),
      (object) => object === undefined,
    );
    const again = await cluster.apply(WORKLOAD_OBJECTS.Deployment, JSON.parse(JSON.stringify(aimed)) as KubeObject);
    expect(again).toMatchObject({
      refusal: 'conflict',
      message: expect.stringMatching(/uid mismatch.*no existing object/),
    });
    expect(await live('Deployment')).toBeUndefined();
    expect(await resync()).toMatchObject({ ApplyWorkload: 1 });
  });
}

describe('on the embedded cluster', () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startWorld(await sharedPostgres());
  });
  afterAll(() => world?.stop());
  describeParts(() => world);

  test('with Knative Auto is a Knative Service, written once for each change, and everything goes with its instance', async () => {
    const { cluster } = world;
    await cluster.create(CRDS, KNATIVE_SERVICES as unknown as KubeObject);
    await eventually(() => cluster.serves(WORKLOAD_OBJECTS.KnativeService), Boolean);
    const harness = createHarness({ clusters: { ours: cluster, reconciles: cluster }, start: Date.now() });
    harness.servedAt = 'nobody';
    await harness.apply(makeInstance({}, 'second'));
    const resync = async () => (await harness.resync()).actions.ApplyWorkload ?? 0;
    const live = () => harness.get(WORKLOAD_OBJECTS.KnativeService, 'second-serving');
    await resync();
    expect(await harness.status(gatewayInstances, 'second')).toMatchObject({ workloadType: 'Knative' });
    const before = JSON.stringify((await live())?.spec);
    for (const env of [[{ name: 'LOG_LEVEL', value: 'warn' }], null]) {
      await harness.edit(gatewayInstances, 'second', { spec: { workload: { env } } });
      expect([await resync(), await resync()]).toEqual([1, 0]);
    }
    expect(JSON.stringify((await live())?.spec)).toBe(before);

    for (const name of ['main', 'second']) await harness.remove(gatewayInstances, name);
    await harness.resync();
    const left = async () => {
      const parts = [...WORKLOAD_OBJECTS_OF.Deployment, ...WORKLOAD_OBJECTS_OF.Knative].map(
        (part) => WORKLOAD_OBJECTS[part],
      );
      const lists = await Promise.all(parts.map((part) => cluster.list(part, { namespace: 'default' })));
      return lists.flat().map(({ metadata }) => metadata.name);
    };
    expect(await eventually(left, (names) => names.length === 0)).toEqual([]);
  });
});

describeUnless(whyNot, 'on Kubernetes', () => {
  const state = join(temporaryFolder(), 'state');
  const script = (name: string, ...args: string[]) => promisify(execFile)(name, args);
  const transports: NodeTransport[] = [];
  let cluster: Cluster;
  let reconciles: Cluster;

  beforeAll(async () => {
    const { stdout } = await script(join(TEST_KIT, 'start.sh'), state);
    await script(join(TEST_KIT, 'start-nodes.sh'), state);
    const kubeconfig = stdout.trim();
    const open = async (file: string) => {
      const transport = await createKubeconfigTransport(file);
      transports.push(transport);
      return createCluster(transport);
    };
    cluster = await open(kubeconfig);
    await applyKinds(cluster);
    reconciles = await open((await makeAccounts(kubeconfig, state)).reconcile);
  }, 60_000);
  afterAll(async () => {
    for (const { close } of transports) await close();
    if (existsSync(join(state, 'stop'))) await script(join(state, 'stop'));
  }, 30_000);

  describe('with controllers and nodes', () => {
    describeParts(() => ({ cluster, reconciles }));

    test('the instance turns Ready when its Pods do, and owns what it made', async () => {
      const harness = createHarness({ clusters: { ours: cluster, reconciles }, start: Date.now() });
      harness.servedAt = 'nobody';
      await harness.edit(gatewayInstances, 'main', { spec: { workload: { serviceAccountName: null } } });
      const ready = async () => {
        await harness.resync();
        return harness.ready(gatewayInstances, 'main');
      };
      expect(await eventually(ready, (lastLines) => lastLines === 'True Ready')).toBe('True Ready');
      const status = await harness.status(gatewayInstances, 'main');
      expect(status).toMatchObject({ url: 'http://main-gateway.default.svc', workloadType: 'Deployment' });
      expect(await cluster.get(RESOURCES.configMaps, 'default', `main-${status.snapshotHash}`)).toBeDefined();
      const owned = await Promise.all(
        (['Deployment', 'Service', 'PodDisruptionBudget'] as const).map(async (part) => {
          const found = await cluster.get(WORKLOAD_OBJECTS[part], 'default', workloadObjectName(part, 'main'));
          return found?.metadata.ownerReferences?.map(({ uid, controller }) => [uid, controller]);
        }),
      );
      const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid;
      expect(owned).toEqual([[[uid, true]], [[uid, true]], [[uid, true]]]);
    });
  });
});
