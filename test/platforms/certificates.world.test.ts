// Does the certificate of admission come, go and come again without one failed call? On a real API server, or on the
// embedded one where there is none.
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIssuer } from '#adapters/certificates/issuer.ts';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { type Cluster, type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import {
  type CertificateDependencies,
  observeCertificate,
  WEBHOOK_CONFIGURATIONS,
} from '../../functions/reconcile/certificates/objects.ts';
import { keepCertificate } from '../../functions/reconcile/certificates/renewal.ts';
import { applyKinds } from '../../infra/packaging/manifests/apply.ts';
import { IN_CLUSTER, webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { toKubeconfig } from '../../infra/platforms/local/cluster/kubeconfig.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { run } from '../support/child.ts';
import { ONE_CLUSTER } from '../support/clusters.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { linkBundles, sharedPostgres } from '../support/shared-servers.ts';
import { describeSideBySide } from '../support/side-by-side.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startClients } from './certificate-clients.ts';
import { ADMISSION_PATH, type NodeProcess, resyncOnce, startAdmission } from './node-process.ts';
import { startWorld } from './world.ts';

const NAMESPACE = 'gateway-operator';
const HOST = 'admission.gateway-operator.svc';
const SERVICE = { namespace: NAMESPACE, name: 'admission' };

/** So short that a renewal can be waited for; the last third is long enough for the kubelet of this test. */
const SHORT: CertificateDependencies = {
  issuer: createIssuer(),
  service: SERVICE,
  path: ADMISSION_PATH,
  lifetimes: { authority: 240_000, serving: 24_000 },
};
/** The kubelet takes so long to mount a change. */
const KUBELET = 1_000;

const key = {
  apiVersion: 'auth.gateway-operator.dev/v1alpha1',
  kind: 'VirtualKey',
  metadata: { name: 'chat', namespace: 'default' },
  spec: {
    keyAlias: 'chat',
    maxBudget: '10',
    budgetDuration: '30d',
    connectionRef: { instanceRef: { name: 'nowhere', namespace: 'default' } },
  },
};

describeSideBySide(ONE_CLUSTER, 'certificates', ({ name }) => {
  let server: Ground;
  let folder: string;
  let admin: Cluster;
  let reconcile: Cluster;
  let account: Record<'admission' | 'reconcile', string>;
  let admission: NodeProcess;
  const log = createMemoryLog();
  const closing: Array<() => Promise<unknown>> = [];

  beforeAll(async () => {
    folder = temporaryFolder();
    server = name === 'real' ? await startReal() : await startEmbedded();
    const open = async (kubeconfig: string) => {
      const transport = await createKubeconfigTransport(kubeconfig);
      closing.push(transport.close);
      return createCluster({ request: transport.request });
    };
    admin = await open(server.kubeconfig);
    await applyKinds(admin);
    if (server.hasAccounts) await kubectl(['apply', '-f', 'infra/platforms/kubernetes/access.yaml']);
    else await kubectl(['create', 'namespace', NAMESPACE]);
    // No kube-proxy runs here: an ExternalName is resolved by the API server itself.
    const service = { type: 'ExternalName', externalName: 'localhost' };
    await apply({ apiVersion: 'v1', kind: 'Service', metadata: SERVICE, spec: service } as KubeObject);
    account = { admission: await accountOf('admission'), reconcile: await accountOf('reconcile') };
    reconcile = await open(account.reconcile);
    await linkBundles(folder);
  });
  afterAll(async () => {
    await admission?.stop();
    await Promise.all(closing.map((close) => close()));
    await server?.stop();
  });

  const kubectl = async (args: string[], stdin?: string) => {
    const { code, stdout, stderr } = await run('kubectl', args, { KUBECONFIG: server.kubeconfig }, stdin);
    expect(`${code} ${stderr}`).toBe('0 ');
    return stdout;
  };
  const apply = (object: KubeObject) => kubectl(['apply', '-f', '-'], JSON.stringify(object));
  /** With no more rights than the account has; the embedded cluster knows no accounts. */
  const accountOf = async (account: string) => {
    if (!server.hasAccounts) return server.kubeconfig;
    const token = (await kubectl(['-n', NAMESPACE, 'create', 'token', account])).trim();
    const file = join(folder, `${account}.kubeconfig`);
    writeFileSync(file, toKubeconfig({ url: server.url, ca: server.ca, token }));
    return file;
  };

  const secretData = async (): Promise<Record<string, string>> =>
    ((await admin.get(RESOURCES.secrets, NAMESPACE, 'admission-tls'))?.data ?? {}) as Record<string, string>;
  const served = async () => (await secretData())['tls.crt'];
  const trusted = async () =>
    (await observeCertificate(admin, SHORT)).hooks.map(({ bundles }) => new Set(bundles.flat()).size);

  /** What the cluster says of this key. Throws when it could not judge it. */
  const ask = async (name: string) => {
    const written = await admin.create(virtualKeys, { ...key, metadata: { ...key.metadata, name } });
    return written.ok ? 'admitted' : written.message;
  };

  let mounted = '';
  /** As the kubelet does it: a new folder, and one link that leads there from now on. */
  const mount = async () => {
    const data = await secretData();
    const [cert, secret] = [data['tls.crt'] ?? mounted, data['tls.key'] ?? ''];
    if (cert === mounted) return;
    mounted = cert;
    const at = join(folder, 'tls', `..${Date.now()}`);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'tls.crt'), Buffer.from(cert, 'base64'));
    writeFileSync(join(at, 'tls.key'), Buffer.from(secret, 'base64'));
    symlinkSync(at, join(folder, 'tls/..new'));
    renameSync(join(folder, 'tls/..new'), join(folder, 'tls/..data'));
  };
  const fileOf = (name: string) => join(folder, 'tls/..data', name);

  const hooksAt = (port: number) =>
    webhookConfigurations(IN_CLUSTER).map(
      (hook) => JSON.parse(JSON.stringify(hook).replaceAll('"port":443', `"port":${port}`)) as KubeObject,
    );

  const resync = (terms = SHORT) =>
    keepCertificate({ cluster: reconcile, clock: { now: () => Date.now() }, log, metrics: createMetrics() }, terms);

  test('one run of reconcile, with no more rights than its account has, issues it; another writes nothing', async () => {
    for (const hook of hooksAt(443)) await apply(hook);
    const service = { ADMISSION_SERVICE: `${NAMESPACE}/admission`, PATH_SECRETS: ADMISSION_PATH };
    const environment = { KUBECONFIG: account.reconcile, ...service };
    const once = () => resyncOnce(join(folder, 'node/reconcile.mjs'), environment);
    expect((await once()).certificate).toEqual({
      actions: ['IssueCertificate', 'TrustAuthorities', 'TrustAuthorities', 'WriteCertificate'],
    });
    const before = await Promise.all(
      WEBHOOK_CONFIGURATIONS.map((hook) => admin.get(hook, undefined, 'gateway-operator')),
    );
    expect(await once()).not.toHaveProperty('certificate');
    expect(
      await Promise.all(WEBHOOK_CONFIGURATIONS.map((hook) => admin.get(hook, undefined, 'gateway-operator'))),
    ).toEqual(before);
    expect(await trusted()).toEqual([1, 1]);
  });

  test('with it kubectl is refused in our own words, and applying the configurations again keeps the CA', async () => {
    await mount();
    admission = await startAdmission(join(folder, 'node/admission.mjs'), {
      KUBECONFIG: account.admission,
      TLS_CERT_FILE: fileOf('tls.crt'),
      TLS_KEY_FILE: fileOf('tls.key'),
    });
    const port = Number(new URL(admission.url).port);
    for (const hook of hooksAt(port)) await apply(hook);
    expect(await trusted()).toEqual([1, 1]);
    const refused = () => run('kubectl', ['apply', '-f', '-'], { KUBECONFIG: server.kubeconfig }, JSON.stringify(key));
    const { stderr } = await eventually(refused, (output) => !output.stderr.includes('failed calling webhook'));
    expect(stderr).toContain('admission webhook "validate.gateway-operator.dev" denied the request');
    expect(stderr).toContain('nowhere');
  });

  test('a deleted Secret and two renewals fail not one call of clients that never stop, nor cut a connection', async () => {
    const clients = startClients({
      ask,
      url: admission.url,
      host: HOST,
      trusted: async () =>
        (await observeCertificate(admin, SHORT)).hooks.map(({ bundles }) => bundles[0]?.join('') ?? ''),
    });
    const life = startLife();
    const renewTwice = async () => {
      await clients.served(50);
      await kubectl(['-n', NAMESPACE, 'delete', 'secret', 'admission-tls']);
      const made = await eventually(served, (cert) => cert !== undefined);
      const first = await eventually(served, (cert) => cert !== undefined && cert !== made, 60_000);
      await eventually(served, (cert) => cert !== undefined && cert !== first, 60_000);
      await clients.shown(4);
      // The renewal after it leaves nothing of the CA before.
      expect(await trusted()).toEqual([1, 1]);
      await clients.served(50);
    };
    // Whatever fails, nobody continues asking into the next test.
    try {
      await renewTwice();
    } finally {
      // Whatever failed, nobody asks on into the next test.
      await Promise.all([life.end(), clients.end()]);
    }
    const { failures, calls, handshakes, sockets, certificates } = await clients.end();
    process.stdout.write(
      `${calls} calls through the API server, ${handshakes} handshakes, ${certificates} certificates, on one connection kept: ${sockets}\n`,
    );
    expect(failures).toEqual([]);
    expect(life.failures).toEqual([]);
    expect(certificates).toBeGreaterThanOrEqual(4);
    expect(sockets).toBe(1);
  });

  test('a damaged Secret is whole again after one resync, and an expired one too', async () => {
    const damage = { data: { 'tls.key': 'b2g=' } };
    await admin.patch(RESOURCES.secrets, NAMESPACE, 'admission-tls', damage);
    expect((await resync()).actions.at(-1)).toBe('WriteCertificate');
    const { secret } = await observeCertificate(admin, SHORT);
    expect(secret).toMatchObject({ by: 'us', serving: { from: expect.any(Number) } });
    const brief = { ...SHORT, lifetimes: { ...SHORT.lifetimes, serving: 1_000 } };
    await admin.patch(RESOURCES.secrets, NAMESPACE, 'admission-tls', damage);
    await resync(brief);
    await pause(1_500);
    expect(log.lines.length).toBeGreaterThan(0);
    await resync();
    expect(log.lines.map(({ fields }) => fields.why)).toContain('the certificate has expired');
    await mount();
    await eventually(
      // Until admission has read its file again it is not trusted.
      () => ask('chat').catch(String),
      (output) => output.includes('denied the request'),
    );
  });

  /** Resyncs, and a kubelet that is late. */
  function startLife() {
    let isOver = false;
    const failures: string[] = [];
    const loop = async (every: number, work: () => Promise<unknown>) => {
      while (!isOver) {
        await work();
        await pause(every);
      }
    };
    const resyncing = async () => {
      const { failed } = await resync();
      if (failed !== undefined) failures.push(failed);
    };
    const loops = [loop(250, resyncing), loop(400, resyncing), loop(KUBELET, mount)];
    return {
      failures,
      end: async () => {
        isOver = true;
        await Promise.all(loops);
      },
    };
  }
});

interface Ground {
  readonly url: string;
  readonly ca: string;
  readonly kubeconfig: string;
  /** Whether it has service accounts, and rights. */
  readonly hasAccounts: boolean;
  stop(): Promise<void>;
}

const startReal = async (): Promise<Ground> => ({ ...(await startControlPlane()), hasAccounts: true });

async function startEmbedded(): Promise<Ground> {
  const { url, certificates, kubeconfig, stop } = await startWorld(await sharedPostgres());
  return { url, ca: certificates.ca, kubeconfig, hasAccounts: false, stop };
}
