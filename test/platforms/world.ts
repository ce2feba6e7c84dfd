// What do the platforms' entry points stand on in tests? A cluster with our kinds, a real PostgreSQL, a sample
// upstream.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Cluster, KubeObject } from '#core/ports/cluster.ts';
import { applyKinds, put, readDocuments } from '../../infra/packaging/manifests/apply.ts';
import type { Certificates } from '../../infra/platforms/local/cluster/certificates.ts';
import { renderSample } from '../../infra/platforms/local/sample/sample.ts';
import { createSampleUpstream, type SampleUpstream } from '../../infra/platforms/local/sample-upstream/server.ts';
import { startCluster } from '../support/clusters.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

export const UPSTREAM_KEY = 'upstream-key-of-tests';
/** Where the sample instance says that its gateway is. */
export const GATEWAY_URL = 'http://sample-gateway.default.svc:8080';

/** A server that the world takes databases of. */
export type WorldPostgres = Pick<TestPostgres, 'createDatabase' | 'query'> & Partial<Pick<TestPostgres, 'stop'>>;

export interface TestWorld {
  readonly folder: string;
  readonly kubeconfig: string;
  /** `https://127.0.0.1:PORT` of the API server, and the token of somebody who may do everything. */
  readonly url: string;
  readonly token: string;
  /** Signed by the private CA of the world, good for 127.0.0.1. */
  readonly certificates: Certificates;
  readonly cluster: Cluster;
  readonly postgres: WorldPostgres;
  readonly database: DatabaseConnection;
  readonly upstream: SampleUpstream;
  /** The sample's objects, for this world: its gateway runs elsewhere. */
  sample(): ReadonlyArray<KubeObject>;
  apply(objects: ReadonlyArray<KubeObject>): Promise<void>;
  stop(): Promise<void>;
}

/**
 * PostgreSQL and the API server (the given ones, or one of its own and the embedded one) and the sample upstream: no
 * function runs yet.
 */
export async function startWorld(given?: WorldPostgres, cluster = startCluster('embedded')): Promise<TestWorld> {
  const postgres: WorldPostgres = given ?? (await startPostgres());
  const database = await postgres.createDatabase();
  const { kubeconfig, token, tls, ...plane } = await cluster;
  const transport = await createKubeconfigTransport(kubeconfig);
  const access = createCluster({ request: transport.request });
  const upstream = await createSampleUpstream({ port: 0, key: UPSTREAM_KEY });
  await applyKinds(access);
  return {
    folder: temporaryFolder(),
    kubeconfig,
    url: plane.url,
    token,
    certificates: tls,
    cluster: access,
    postgres,
    database,
    upstream,
    sample: () => sampleFor(database, upstream.url),
    apply: (objects) => apply(access, objects),
    stop: async () => {
      await upstream.close();
      await transport.close();
      await plane.stop();
      await postgres.stop?.();
    },
  };
}

/** The sample with these addresses; its instance's gateway is one that somebody else runs. */
export function sampleFor(database: DatabaseConnection, upstream: string): ReadonlyArray<KubeObject> {
  const text = renderSample({ database, upstream }, UPSTREAM_KEY);
  return readDocuments(text).map((object) =>
    object.kind === 'GatewayInstance'
      ? { ...object, spec: { ...(object.spec as object), workload: { type: 'External', url: GATEWAY_URL } } }
      : object,
  );
}

export async function apply(cluster: Cluster, objects: ReadonlyArray<KubeObject>): Promise<void> {
  for (const object of objects) await put(cluster, object, true);
}

/** The documents of a YAML file of the repository. */
export const documentsOf = (file: string): ReadonlyArray<KubeObject> =>
  readDocuments(readFileSync(join(import.meta.dirname, '../..', file), 'utf8'));
