// Where do tests get an embedded cluster of their own, asked in the same way as a real API server?
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { openCertificates } from '../infra/local/certificates.ts';
import { createCluster } from '../infra/local/cluster/cluster.ts';
import { writeKubeconfig } from '../infra/local/cluster/kubeconfig.ts';
import { caller, startControlPlane, type TestControlPlane } from './control-plane.ts';
import { startPostgres } from './postgres.ts';

export type ClusterName = 'embedded' | 'real';

export const startCluster = (name: ClusterName): Promise<TestControlPlane> =>
  name === 'real' ? startControlPlane() : startEmbeddedPlane();

/** The embedded cluster on a PostgreSQL of its own. */
export async function startEmbeddedPlane(): Promise<TestControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-embedded-'));
  const tls = await openCertificates(folder, new Date());
  const postgres = await startPostgres();
  const { host, port, username, password, dbname } = await postgres.createDatabase();
  const pool = new pg.Pool({ host, port, user: username, password, database: dbname, max: 10 });
  // When PostgreSQL is stopped, idle connections say so.
  pool.on('error', () => undefined);
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const token = 'for-tests-only';
  const cluster = createCluster({ pool, port: 0, tls, token, log });
  await cluster.start();
  const kubeconfig = join(folder, 'kubeconfig');
  writeKubeconfig(kubeconfig, { url: cluster.url, ca: tls.ca, token });
  const stop = async () => {
    await cluster.stop();
    await pool.end();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: cluster.url, token, ca: tls.ca, kubeconfig, call: caller(cluster.url, token, tls.ca), stop };
}
