// Which API servers do the kubectl cases run against?
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { type Cluster, createCluster } from '../../../infra/apiserver/cluster.ts';
import { type Certificates, openCertificates } from '../../../infra/local/cluster/certificates.ts';
import { writeKubeconfig } from '../../../infra/local/cluster/kubeconfig.ts';
import { startControlPlane } from '../../control-plane.ts';
import { startPostgres } from '../../postgres.ts';
import { silentLog } from '../../silent-log.ts';
import type { ApiServer } from './bed.ts';

export type EmbeddedServer = ApiServer & {
  readonly cluster: Cluster;
  /** Of somebody who may do everything. */
  readonly token: string;
  /** Good for 127.0.0.1. */
  readonly tls: Certificates;
};

/** The embedded cluster on a database of its own (or the given one). */
export async function startEmbedded(
  options: { database?: DatabaseConnection; historyLength?: number; port?: number } = {},
): Promise<EmbeddedServer> {
  const postgres = options.database === undefined ? await startPostgres() : undefined;
  const { host, port, username, password, dbname } = options.database ?? (await postgres?.createDatabase()) ?? never();
  const pool = new pg.Pool({ host, port, user: username, password, database: dbname, max: 10 });
  // When PostgreSQL is stopped, idle connections say so.
  pool.on('error', () => undefined);
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-cluster-'));
  const tls = await openCertificates(folder, new Date());
  const token = randomBytes(12).toString('hex');
  const { port: wanted = 0, historyLength = 10_000 } = options;
  const cluster = createCluster({ pool, port: wanted, tls, token, log: silentLog, historyLength });
  const stop = async () => {
    await cluster.stop();
    await pool.end();
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await cluster.start();
  } catch (cause) {
    await stop();
    throw cause;
  }
  const kubeconfig = join(folder, 'kubeconfig');
  writeKubeconfig(kubeconfig, { url: cluster.url, ca: tls.ca, token });
  return { kubeconfig, cluster, token, tls, stop };
}

/** etcd, kube-apiserver and the controller manager of KUBEBUILDER_ASSETS. */
export async function startReal(): Promise<ApiServer> {
  const { kubeconfig, stop } = await startControlPlane({ controllers: 'all' });
  return { kubeconfig, stop };
}

function never(): never {
  throw new Error('a database is given or made');
}
