// What does the kubelet mount for a gateway? The same files, made from a cluster, in a folder.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import { resourceOf } from '../../infra/local/manifests.ts';

export interface Mounts {
  readonly SNAPSHOT_FILE: string;
  readonly CREDENTIALS_DIR: string;
  readonly DATABASE_DIR: string;
  readonly STORE_DIR: string;
  readonly OUTBOX_DIR: string;
}

/** ConfigMap, credentials, database and an empty outbox of the sample's gateway; answers the environment that names them. */
export async function mountSample(cluster: Cluster, folder: string): Promise<Mounts> {
  const at = (...names: string[]) => join(folder, ...names);
  const put = (path: string, content: string | Buffer) => {
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
  };
  const instance = await cluster.get(resourceOf('GatewayInstance'), 'default', 'sample');
  const { snapshotHash } = (instance?.status ?? {}) as { snapshotHash?: string };
  const map = await cluster.get(RESOURCES.configMaps, 'default', `sample-${snapshotHash}`);
  const { 'snapshot.json': snapshot = '' } = (map?.data ?? {}) as Record<string, string>;
  put(at('snapshot/snapshot.json'), snapshot);
  const secret = async (name: string, to: string) => {
    const found = await cluster.get(RESOURCES.secrets, 'default', name);
    for (const [entry, value] of Object.entries((found?.data ?? {}) as Record<string, string>))
      put(at(to, entry), Buffer.from(value, 'base64'));
  };
  for (const name of ['small', 'flaky', 'spare'])
    await secret(`sample-model-${name}`, `credentials/sample-model-${name}`);
  await secret('sample-database', 'database');
  await secret('sample-store', 'store');
  mkdirSync(at('outbox'), { recursive: true });
  return {
    SNAPSHOT_FILE: at('snapshot/snapshot.json'),
    CREDENTIALS_DIR: at('credentials'),
    DATABASE_DIR: at('database'),
    STORE_DIR: at('store'),
    OUTBOX_DIR: at('outbox'),
  };
}
