// Do Knative's own sources, as they are, make reconcile look? Its PingSource and ApiServerSource adapters, and
// admission's triggers, against real processes.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { type Cluster, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import { gatewayInstances, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { applyKinds, put } from '../../infra/packaging/manifests/apply.ts';
import { webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { makeAccounts } from '../../infra/platforms/local/cluster/accounts.ts';
import { openCertificates } from '../../infra/platforms/local/cluster/certificates.ts';
import { run } from '../support/child.ts';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type KnativeControlPlane, runScript, startKnative } from '../support/knative.ts';
import { type LeakDetector, openLeakDetector } from '../support/secret-leak-detector.ts';
import { linkBundles, type SharedPostgres, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  type AdmissionProcess,
  allPrinted,
  RECONCILE_TOKEN,
  type ReconcileProcess,
  startAdmission,
  startReconcile,
} from './node-process.ts';
import { apply, sampleFor } from './world.ts';

const TEST_KIT = process.env.GATEWAY_OPERATOR_ENVTEST_KIT ?? '';
const assets = process.env.KUBEBUILDER_ASSETS ?? '';
const missing = [join(assets, 'knative/mtping'), join(assets, 'kwok'), join(TEST_KIT, 'start-nodes.sh')].find(
  (file) => !existsSync(file) && !existsSync(file.replace(/kwok$/, 'nodes/kwok')),
);
const why = whyNoControlPlane() ?? (missing === undefined ? undefined : `no ${missing}`);

describeUnless(why, 'triggers on Knative', () => {
  const folder = temporaryFolder();
  let knative: KnativeControlPlane;
  let kubeconfig: string;
  let cluster: Cluster;
  let postgres: SharedPostgres;
  let reconcile: ReconcileProcess;
  let admission: AdmissionProcess;
  let detector: LeakDetector;
  const closing: Array<() => Promise<unknown>> = [];

  beforeAll(async () => {
    [knative, postgres] = await Promise.all([startKnative(folder, 'with nodes'), sharedPostgres()]);
    kubeconfig = knative.kubeconfig;
    detector = await openLeakDetector(kubeconfig);
    closing.push(detector.stop);
    const transport = await createKubeconfigTransport(kubeconfig);
    closing.push(transport.close);
    cluster = createCluster({ request: transport.request });
    await applyKinds(cluster);
    const accounts = await makeAccounts(kubeconfig, folder);
    const [certificates] = await Promise.all([openCertificates(folder, new Date()), linkBundles(folder)]);
    reconcile = await startReconcile(join(folder, 'node/reconcile.mjs'), {
      KUBECONFIG: accounts.reconcile,
      GATEWAY_PROCESSES: 'one',
    });
    const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    writeFileSync(cert, certificates.cert);
    writeFileSync(key, certificates.key);
    admission = await startAdmission(join(folder, 'node/admission.mjs'), {
      KUBECONFIG: accounts.admission,
      RECONCILE_URL: reconcile.url,
      RECONCILE_TOKEN,
      TLS_CERT_FILE: cert,
      TLS_KEY_FILE: key,
    });
    closing.push(
      () => admission.stop(),
      () => reconcile.stop(),
    );
    const manifest = readFileSync('infra/platforms/knative/operator.yaml', 'utf8').replaceAll(
      '<RECONCILE_TOKEN>',
      RECONCILE_TOKEN,
    );
    writeFileSync(join(folder, 'operator.yaml'), manifest);
    await kubectl('apply', '-f', join(folder, 'operator.yaml'));
    // Nothing runs Services here: their address is what the test kit says.
    await runScript('knative.sh', knative.state, 'ready', 'gateway-operator/reconcile', reconcile.url);
    await apply(
      cluster,
      sampleFor(await postgres.createDatabase(), 'http://127.0.0.1:9').filter(({ kind }) => kind === 'Secret'),
    );
    const { base } = admission;
    hooks = webhookConfigurations({ base, caBundle: certificates.ca });
  }, 180_000);
  afterAll(async () => {
    for (const close of closing) await close();
    await knative?.stop();
  }, 60_000);

  let hooks: ReturnType<typeof webhookConfigurations>;
  const kubectl = async (...args: string[]) => {
    const { code, stdout, stderr } = await run('kubectl', args, { KUBECONFIG: kubeconfig });
    expect(`${code} ${stderr}`).toBe('0 ');
    return stdout;
  };
  const sample = async (kind: string) => {
    const all = sampleFor({ host: 'unused', port: 1, username: 'u', password: 'p', dbname: 'd' }, 'http://127.0.0.1:9');
    return all.filter((object) => object.kind === kind);
  };
  const statusOf = async (kind: Resource, name: string) =>
    ((await cluster.get(kind, 'default', name))?.status ?? {}) as Record<string, unknown>;
  const isReady = (kind: string, name: string) => async () => {
    const source = JSON.parse(await kubectl('-n', 'gateway-operator', 'get', kind, name, '-o', 'json')) as {
      status?: { conditions?: ReadonlyArray<{ type: string; status: string }> };
    };
    return source.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  };
  const deadline = 90_000;

  /**
   * The adapter posts what changes after its watch began: not what it finds then, and nothing says when that was. So
   * change it again until it is seen.
   */
  const touchUntil = (kind: string, name: string, isSeen: () => Promise<boolean>) => {
    let touches = 0;
    const look = async () => {
      if (await isSeen()) return true;
      touches += 1;
      await kubectl('-n', 'default', 'annotate', kind, name, '--overwrite', `example.com/touch=${touches}`);
      return false;
    };
    return eventually(look, Boolean, deadline);
  };

  test('the ApiServerSource names an instance and a user, and reconcile looks at them', async () => {
    await eventually(isReady('apiserversource', 'changes'), (ready) => ready === 'True', deadline);
    await apply(cluster, await sample('GatewayInstance'));
    const adapter = await runScript('knative.sh', knative.state, 'apiserver', 'gateway-operator/changes');
    const isInstanceSeen = async () => (await statusOf(gatewayInstances, 'sample')).observedGeneration !== undefined;
    await touchUntil('gatewayinstance', 'sample', isInstanceSeen);
    await apply(cluster, await sample('Team'));
    await apply(cluster, await sample('User'));
    // Its key is made by the same look.
    await touchUntil('users.auth.gateway-operator.dev', 'alice', async () => {
      return (await statusOf(virtualKeys, 'alice')).isActive === true;
    });
    const uid = (await cluster.get(users, 'default', 'alice'))?.metadata.uid ?? '';
    await cluster.delete(users, 'default', 'alice', uid);
    await eventually(
      () => cluster.get(users, 'default', 'alice'),
      (user) => user === undefined,
      deadline,
    );
    // What follows is to be found without it.
    process.kill(Number(adapter));
  });

  test('the PingSource is a resync: it finds a key that nobody told it of', async () => {
    await apply(cluster, [...(await sample('GatewayInstance')), ...(await sample('VirtualKey'))]);
    expect((await statusOf(virtualKeys, 'example-service')).isActive).toBeUndefined();
    const patch = JSON.stringify({ spec: { schedule: '*/2 * * * * *' } });
    await kubectl('-n', 'gateway-operator', 'patch', 'pingsource', 'every-minute', '--type=merge', '-p', patch);
    await eventually(isReady('pingsource', 'every-minute'), (ready) => ready === 'True', deadline);
    await runScript('knative.sh', knative.state, 'ping');
    await eventually(
      () => statusOf(virtualKeys, 'example-service'),
      ({ isActive }) => isActive === true,
      deadline,
    );
    await kubectl('-n', 'gateway-operator', 'delete', 'pingsource', 'every-minute');
  });

  test('what Knative posts is taken: nothing was refused', async () => {
    const { printed } = reconcile;
    expect(printed()).not.toContain('"level":"error"');
    const answers = await reconcile.ask({
      headers: {
        'content-type': 'application/json',
        'ce-specversion': '1.0',
        'ce-type': 'dev.knative.apiserver.ref.update',
      },
      body: JSON.stringify({ kind: 'GatewayInstance', namespace: 'default', name: 'sample' }),
    });
    expect(answers.status).toBe(200);
  });

  test('a key is triggered by admission when it is created, and when it is deleted: neither waits for a resync', async () => {
    for (const configuration of hooks) await put(cluster, configuration, true);
    const [key] = await sample('VirtualKey');
    if (key === undefined) throw new Error('the sample has no key');
    const triggered = {
      ...key,
      metadata: { ...key.metadata, name: 'triggered' },
      spec: { ...(key.spec as object), keyAlias: 'triggered' },
    };
    await put(cluster, triggered, true);
    await eventually(
      () => statusOf(virtualKeys, 'triggered'),
      ({ isActive }) => isActive === true,
      deadline,
    );
    await kubectl('-n', 'default', 'delete', 'vk', 'triggered', '--timeout=30s');
    expect(await cluster.get(virtualKeys, 'default', 'triggered')).toBeUndefined();
    expect(await cluster.get(RESOURCES.secrets, 'default', 'triggered-key')).toBeUndefined();
    // With nobody there a deletion is not held up, and nothing else gets in.
    expect(await admission.stop()).toBe(0);
    await kubectl('-n', 'default', 'delete', 'vk', 'example-service', '--wait=false');
    expect(detector.values.size).toBeGreaterThanOrEqual(3);
    const output = [...allPrinted(), await (await reconcile.ask({}, '?dry-run=true')).text()];
    expect(await detector.search(output), 'keys and passwords that are shown').toEqual([]);
  });
});
