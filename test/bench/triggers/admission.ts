// Admission's trigger alone, without resyncs and other triggers.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { applyKinds } from '../../../infra/packaging/manifests/apply.ts';
import { webhookConfigurations } from '../../../infra/packaging/manifests/webhooks.ts';
import type { WorkerName } from '../../../infra/platforms/cloudflare/workers.ts';
import { type Certificates, openCertificates } from '../../../infra/platforms/local/cluster/certificates.ts';
import { DEPLOYABLES, writeBundles } from '../../../infra/tools/build.ts';
import { startWorkers } from '../../platforms/miniflare.ts';
import { RECONCILE_TOKEN, startAdmission, startReconcile } from '../../platforms/node-process.ts';
import { apply, sampleFor, startWorld } from '../../platforms/world.ts';
import { startControlPlane } from '../../support/control-plane.ts';
import { startPostgres } from '../../support/postgres.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { makeKey, measure } from './keys.ts';

interface Place {
  readonly kubeconfig: string;
  readonly certificates: Certificates;
  readonly database: DatabaseConnection;
  readonly folder: string;
}

interface Functions {
  /** The URL before /mutate and /validate. */
  readonly admission: string;
  resync(): Promise<unknown>;
  stop(): Promise<unknown>;
}

export async function triggersOnEmbedded(count: number): Promise<number[]> {
  const world = await startWorld();
  try {
    return await run(world, count, await startProcesses(world));
  } finally {
    await world.stop();
  }
}

export async function triggersOnReal(count: number): Promise<number[]> {
  const folder = temporaryFolder();
  const [plane, postgres] = await Promise.all([startControlPlane(), startPostgres()]);
  try {
    const certificates = await openCertificates(folder, new Date());
    const place = { kubeconfig: plane.kubeconfig, certificates, database: await postgres.createDatabase(), folder };
    return await run(place, count, await startProcesses(place));
  } finally {
    await plane.stop();
    await postgres.stop();
  }
}

/** The functions in workerd, on the embedded API server. */
export async function triggersOnWorkers(count: number): Promise<number[]> {
  const world = await startWorld();
  const segment = 'an-unguessable-segment';
  const { folder, certificates, url: API_SERVER, token: API_TOKEN } = world;
  await writeBundles(
    folder,
    DEPLOYABLES.filter(({ platform }) => platform === 'workerd'),
  );
  const ca = join(folder, 'ca.pem');
  writeFileSync(ca, certificates.ca);
  const worker = (name: WorkerName, bindings: Record<string, string>, services = {}) => ({
    name,
    scriptPath: join(folder, `cloudflare/${name}.mjs`),
    bindings: { API_SERVER, API_TOKEN, ...bindings },
    services,
  });
  const workers = await startWorkers(
    [
      worker('admission', { PATH_SECRETS: segment }, { RECONCILE: 'reconcile' }),
      worker('reconcile', { GATEWAY_PROCESSES: 'one' }),
    ],
    ca,
    { tls: certificates },
  );
  const { url, scheduled, stop } = workers;
  try {
    return await run(world, count, { admission: `${url}/${segment}`, resync: () => scheduled('reconcile'), stop });
  } finally {
    await world.stop();
  }
}

async function startProcesses({ folder, kubeconfig, certificates }: Omit<Place, 'database'>): Promise<Functions> {
  const ours = DEPLOYABLES.filter(({ output }) => /^node\/(admission|reconcile)/.test(output));
  await writeBundles(folder, ours);
  const tls = join(folder, 'tls');
  mkdirSync(tls, { recursive: true });
  writeFileSync(join(tls, 'tls.crt'), certificates.cert);
  writeFileSync(join(tls, 'tls.key'), certificates.key);
  const reconcile = await startReconcile(join(folder, 'node/reconcile.mjs'), {
    KUBECONFIG: kubeconfig,
    GATEWAY_PROCESSES: 'one',
  });
  const admission = await startAdmission(join(folder, 'node/admission.mjs'), {
    KUBECONFIG: kubeconfig,
    RECONCILE_URL: reconcile.url,
    RECONCILE_TOKEN,
    TLS_CERT_FILE: join(tls, 'tls.crt'),
    TLS_KEY_FILE: join(tls, 'tls.key'),
  });
  return {
    admission: admission.base,
    resync: () => reconcile.ask(),
    stop: () => Promise.all([admission.stop(), reconcile.stop()]),
  };
}

async function run(place: Place, count: number, { admission, resync, stop }: Functions): Promise<number[]> {
  const transport = await createKubeconfigTransport(place.kubeconfig);
  const cluster = createCluster({ request: transport.request });
  try {
    await applyKinds(cluster);
    const sample = sampleFor(place.database, 'http://127.0.0.1:9');
    await apply(
      cluster,
      sample.filter(({ kind }) => kind === 'Secret' || kind === 'GatewayInstance'),
    );
    await resync();
    await apply(cluster, webhookConfigurations({ base: admission, caBundle: place.certificates.ca }));
    return await measure({ kubeconfig: place.kubeconfig, cluster }, count, makeKey);
  } finally {
    await stop();
    await transport.close();
  }
}
