// Do resyncs over a sample that has settled write anything to a real API server, whatever runs its gateways?
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport, type NodeTransport } from '#adapters/kubernetes/node.ts';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { makeAccounts } from '../../infra/platforms/local/cluster/accounts.ts';
import { startControlPlane, type TestControlPlane, whyNoControlPlane } from '../support/control-plane.ts';
import { openObjects } from '../support/open-objects.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runDeployment, runKnative } from './controllers.ts';
import { KNATIVE_SERVICES } from './foreign-crds.ts';
import { createHarness, type Harness } from './harness.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, makeTeam, makeUser } from './objects.ts';

const RESYNCS = 5;
const INSTANCES = ['main', 'serverless', 'elsewhere'];
const skip = whyNoControlPlane();

describeUnless(skip, 'a settled sample', () => {
  let plane: TestControlPlane;
  let admin: Cluster;
  let harness: Harness;
  /** What reconcile has asked the API server, as its service account. */
  const asked: string[] = [];
  const transports: NodeTransport[] = [];

  beforeAll(async () => {
    plane = await startControlPlane();
    const env = { ...process.env, KUBECONFIG: plane.kubeconfig };
    const kubectl = (...args: string[]) => execFileSync('kubectl', args, { env, stdio: 'pipe' });
    kubectl('apply', '-f', 'crds/manifests');
    await plane.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', KNATIVE_SERVICES);
    kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
    const accounts = await makeAccounts(plane.kubeconfig, temporaryFolder());
    const [asAdmin, asReconcile] = [
      await createKubeconfigTransport(plane.kubeconfig),
      await createKubeconfigTransport(accounts.reconcile),
    ];
    transports.push(asAdmin, asReconcile);
    admin = createCluster(asAdmin);
    const reconciles = createCluster({
      request: (request) => {
        asked.push(`${request.method} ${request.path}`);
        return asReconcile.request(request);
      },
    });
    harness = createHarness({ clusters: { ours: admin, reconciles }, start: Date.now() });
    harness.servedAt = 'nobody';
  });
  afterAll(async () => {
    for (const { close } of transports) await close();
    await plane?.stop();
  });

  const versions = async () => {
    const objects = [...(await openObjects(admin)), ...(await admin.list(RESOURCES.secrets))];
    // The API server renews Leases of its own.
    const ours = objects.filter(({ kind, metadata }) => kind !== 'Lease' || metadata.namespace !== 'kube-system');
    return ours.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion}`).sort();
  };

  /** A workload is applied by each resync; that such an apply changes nothing is seen in the versions. */
  const isWrite = (request: string) => !request.startsWith('GET ') && !request.endsWith('&force=true');

  test('of a Deployment, a Knative Service and a gateway that runs elsewhere stays as it is: no object gets a new version', async () => {
    const on = (name: string) => ({ connectionRef: { instanceRef: { name, namespace: 'default' } } });
    await harness.apply(
      ...makeSecrets(),
      makeSecret('store', { host: 'redis', port: '6379', password: '' }),
      makeInstance({ workload: { type: 'Deployment', scale: { min: 2, max: 3 } } }),
      makeInstance({ workload: { type: 'Knative' } }, 'serverless'),
      makeInstance({ workload: { type: 'External', url: 'https://llm.example.com' } }, 'elsewhere'),
      makeTeam({ members: [{ name: 'alice' }] }),
      makeUser(),
      makeKey({ rotation: { every: '30d' }, teamRef: { name: 'research' } }),
      makeKey(on('serverless'), 'serverless'),
      makeKey({ ...on('elsewhere'), deletionPolicy: 'Retain', blocked: true }, 'elsewhere'),
    );
    expect((await harness.resync()).failed).toEqual({});
    // Nothing runs controllers here.
    await runDeployment(harness);
    await runKnative(harness, 'serverless-serving');
    for (let run = 0; run < 3; run += 1) await harness.resync();
    for (const name of INSTANCES) expect(await harness.ready(gatewayInstances, name)).toBe('True Ready');
    expect(await harness.ready(virtualKeys, 'serverless')).toBe('True Ready');

    const before = await versions();
    expect(before.filter((line) => line.startsWith('Event ')).length).toBeGreaterThan(5);
    asked.length = 0;
    for (let run = 0; run < RESYNCS; run += 1) {
      harness.clock.pass(60_000);
      const { actions, failed } = await harness.resync();
      expect({ actions, failed }).toEqual({ actions: {}, failed: {} });
    }
    expect(asked.length).toBeGreaterThan(RESYNCS);
    expect(asked.filter(isWrite)).toEqual([]);
    expect(asked.filter((request) => /\/secrets(\?|$)/.test(request))).toEqual([]);
    expect(await versions()).toEqual(before);
    expect(await harness.shown(), 'keys and passwords that are shown').toEqual([]);
  });

  test('one edit is carried, and after it nothing changes any more', async () => {
    await harness.edit(gatewayInstances, 'main', {
      spec: { workload: { env: [{ name: 'LOG_LEVEL', value: 'warn' }] } },
    });
    expect((await harness.resync()).actions).toMatchObject({ ApplyWorkload: 1 });
    await runDeployment(harness);
    await harness.resync();
    const before = await versions();
    asked.length = 0;
    expect((await harness.resync()).actions).toEqual({});
    expect(asked.filter(isWrite)).toEqual([]);
    expect(await versions()).toEqual(before);
  });
});
