// What do the platforms' entry points stand on in tests? A cluster with our kinds, a real PostgreSQL, a sample upstream.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { parseAllDocuments } from 'yaml';
import { createCluster as createClient } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Cluster, KubeObject } from '#core/ports/cluster.ts';
import { kinds } from '#crds/kinds.ts';
import { type Certificates, openCertificates } from '../../infra/local/certificates.ts';
import { createCluster } from '../../infra/local/cluster/cluster.ts';
import { writeKubeconfig } from '../../infra/local/cluster/kubeconfig.ts';
import { customResourceDefinitions, put, renderSample } from '../../infra/local/manifests.ts';
import { createSampleUpstream, type SampleUpstream } from '../../infra/local/upstream/server.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { temporaryFolder } from '../stack.ts';

export const UPSTREAM_KEY = 'upstream-key-of-tests';
/** Where the sample instance says that its gateway is. */
export const GATEWAY_URL = 'http://sample-gateway.default.svc:8080';

export interface TestWorld {
  readonly folder: string;
  readonly kubeconfig: string;
  /** `https://127.0.0.1:PORT` of the API server, and the token of somebody who may do everything. */
  readonly url: string;
  readonly token: string;
  /** Signed by the private CA of the world, good for 127.0.0.1. */
  readonly certificates: Certificates;
  readonly cluster: Cluster;
  readonly postgres: TestPostgres;
  readonly database: DatabaseConnection;
  readonly upstream: SampleUpstream;
  /** The sample's objects, for this world: its gateway runs elsewhere. */
  sample(): ReadonlyArray<KubeObject>;
  apply(objects: ReadonlyArray<KubeObject>): Promise<void>;
  stop(): Promise<void>;
}

/** The embedded API server, PostgreSQL and the sample upstream: no function runs yet. */
export async function startWorld(): Promise<TestWorld> {
  const folder = temporaryFolder();
  const [postgres, certificates] = await Promise.all([startPostgres(), openCertificates(folder, new Date())]);
  const [own, database] = [await postgres.createDatabase(), await postgres.createDatabase()];
  const { host, port, username, password, dbname } = own;
  const pool = new pg.Pool({ host, port, user: username, password, database: dbname, max: 10 });
  pool.on('error', () => undefined);
  const token = crypto.randomUUID();
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const server = createCluster({ pool, port: 0, tls: certificates, token, log });
  await server.start();
  const kubeconfig = join(folder, 'kubeconfig');
  writeKubeconfig(kubeconfig, { url: server.url, ca: certificates.ca, token });
  const transport = await createKubeconfigTransport(kubeconfig);
  const cluster = createClient({ request: transport.request });
  const upstream = await createSampleUpstream({ port: 0, key: UPSTREAM_KEY });
  await applyKinds(cluster);
  return {
    folder,
    kubeconfig,
    url: server.url,
    token,
    certificates,
    cluster,
    postgres,
    database,
    upstream,
    sample: () => sampleFor(database, upstream.url),
    apply: (objects) => apply(cluster, objects),
    stop: async () => {
      await upstream.close();
      await transport.close();
      await server.stop();
      await pool.end();
      await postgres.stop();
    },
  };
}

/** The sample with these addresses; its instance's gateway is one that somebody else runs. */
export function sampleFor(database: DatabaseConnection, upstream: string): ReadonlyArray<KubeObject> {
  const text = renderSample({
    databaseHost: `${database.host}:${database.port}`,
    databaseUsername: database.username,
    databasePassword: database.password,
    databaseName: database.dbname,
    storeHost: 'memory',
    storePort: '6379',
    upstreamKey: UPSTREAM_KEY,
    upstreamBase: `${upstream}/v1`,
  });
  return documents(text).map((object) =>
    object.kind === 'GatewayInstance'
      ? { ...object, spec: { ...(object.spec as object), workload: { type: 'External', url: GATEWAY_URL } } }
      : object,
  );
}

export async function apply(cluster: Cluster, objects: ReadonlyArray<KubeObject>): Promise<void> {
  for (const object of objects) await put(cluster, object, true);
}

/** Applies the CRDs and waits until they are served. */
export async function applyKinds(cluster: Cluster): Promise<void> {
  await apply(cluster, customResourceDefinitions());
  for (const kind of kinds) {
    const served = () =>
      cluster.list(kind, { limit: 1 }).then(
        () => true,
        () => false,
      );
    for (const until = Date.now() + 20_000; !(await served()); await pause(50)) {
      if (Date.now() > until) throw new Error(`${kind.plural} is not served`);
    }
  }
}

/** The documents of a YAML text, or of a file of the repository; comments alone are none. */
export function documents(text: string): ReadonlyArray<KubeObject> {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}

export const documentsOf = (file: string): ReadonlyArray<KubeObject> =>
  documents(readFileSync(join(import.meta.dirname, '../..', file), 'utf8'));
