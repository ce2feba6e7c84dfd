// Gateways of the stack's instances: a snapshot and its Secrets become a running gateway, as a kubelet has them do elsewhere.
import { isDeepStrictEqual } from 'node:util';
import { toDatabaseConnection, toStoreConnection } from '#core/connections.ts';
import { snapshotName } from '#core/names.ts';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import { reasonAndCausesOf } from '#core/reason.ts';
import { Snapshot } from '#core/snapshot.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import { resourceOf } from '../../manifests/apply.ts';
import { type Configuration, type GatewayRuntime, type RuntimeDependencies, startRuntime } from './gateway-runtime.ts';

export interface Gateways {
  /** The gateway of this instance; `absent`: there is no such instance, `unavailable`: it cannot run (yet), or nobody knows. */
  find(namespace: string, name: string): Promise<GatewayRuntime | 'absent' | 'unavailable'>;
  /** Reads what every instance and its Secrets say now, and has its gateway follow; in the background. */
  refresh(): void;
  /** Books what the instance's gateway has settled; nothing when no gateway runs. */
  flush(instanceUid: string): Promise<void>;
  close(): Promise<void>;
}

interface Running {
  readonly uid: string;
  readonly runtime: GatewayRuntime;
}

/** Gateways of one process. Changes of one instance are made one after another. */
export function createGateways(deps: RuntimeDependencies & { readonly cluster: Cluster }): Gateways {
  const { cluster, log } = deps;
  const running = new Map<string, Running>();
  const absent = new Set<string>();
  const last = new Map<string, Promise<void>>();

  const refreshOne = (path: string): Promise<void> => {
    const done = (last.get(path) ?? Promise.resolve())
      .then(() => bringUpToDate(path))
      .catch((error: unknown) => log.warn('gateway not started', { instance: path, why: reasonAndCausesOf(error) }));
    last.set(path, done);
    return done;
  };

  const bringUpToDate = async (path: string): Promise<void> => {
    absent.delete(path);
    const wanted = await readConfiguration(cluster, path);
    const have = running.get(path);
    if (wanted === 'absent') absent.add(path);
    if (wanted === 'unchanged') return;
    const same = have !== undefined && wanted !== 'absent' && have.uid === wanted.snapshot.instance.uid;
    if (same && runsWith(have.runtime, wanted)) return have.runtime.configure(wanted);
    if (have !== undefined) {
      running.delete(path);
      await have.runtime.close();
    }
    if (wanted === 'absent') return;
    const runtime = await startRuntime(deps, wanted);
    running.set(path, { uid: wanted.snapshot.instance.uid, runtime });
  };

  const refreshAll = async () => {
    const instances = await cluster.list(resourceOf('GatewayInstance'));
    const listed = instances.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
    await Promise.all([...new Set([...listed, ...running.keys()])].map(refreshOne));
  };
  let isDue = false;
  let round: Promise<void> | undefined;
  const rounds = async () => {
    while (isDue) {
      isDue = false;
      await refreshAll().catch((error: unknown) => log.warn('instances not read', { why: reasonAndCausesOf(error) }));
    }
    round = undefined;
  };

  return {
    find: async (namespace, name) => {
      const path = `${namespace}/${name}`;
      if (!running.has(path)) await refreshOne(path);
      return running.get(path)?.runtime ?? (absent.has(path) ? 'absent' : 'unavailable');
    },
    refresh: () => {
      isDue = true;
      round ??= rounds();
    },
    flush: async (instanceUid) => {
      await [...running.values()].find(({ uid }) => uid === instanceUid)?.runtime.flush();
    },
    close: async () => {
      isDue = false;
      await round;
      await Promise.allSettled([...running.values()].map(({ runtime }) => runtime.close()));
      running.clear();
    },
  };
}

const runsWith = (runtime: GatewayRuntime, { connection, store }: Configuration): boolean =>
  isDeepStrictEqual(runtime.connection, connection) && isDeepStrictEqual(runtime.store, store);

/**
 * What the cluster says the gateway should be. `absent`: no such instance. `unchanged`: nothing is published yet, or it
 * cannot be read now (a Secret is missing): a configuration that works is never emptied.
 */
async function readConfiguration(cluster: Cluster, path: string): Promise<Configuration | 'absent' | 'unchanged'> {
  const [namespace = '', name = ''] = path.split('/');
  const found = await cluster.get(resourceOf('GatewayInstance'), namespace, name);
  if (found === undefined) return 'absent';
  const instance = found as unknown as GatewayInstance;
  const hash = instance.status?.snapshotHash;
  if (hash === undefined) return 'unchanged';
  const published = await cluster.get(RESOURCES.configMaps, namespace, snapshotName(name, hash));
  const text = (published?.data as Record<string, string> | undefined)?.['snapshot.json'];
  const database = await secretData(cluster, namespace, instance.spec.databaseSecretRef.nameRef);
  const keyValue = await secretData(cluster, namespace, instance.spec.redisSecretRef.nameRef);
  if (text === undefined || database === undefined || keyValue === undefined) return 'unchanged';
  const connection = toDatabaseConnection(instance.spec.databaseSecretRef, database);
  const store = toStoreConnection(instance.spec.redisSecretRef, keyValue);
  if (!connection.ok || !store.ok) return 'unchanged';
  const snapshot = Snapshot.parse(JSON.parse(text));
  const secrets = await readSecrets(cluster, namespace, snapshot);
  return { connection: connection.value, store: store.value, snapshot, secrets };
}

async function readSecrets(cluster: Cluster, namespace: string, snapshot: Snapshot): Promise<Configuration['secrets']> {
  const names = snapshot.models.flatMap(({ credentials }) => Object.values(credentials).map(({ secret }) => secret));
  const read = [...new Set(names)].map(async (name) => {
    const data = (await secretData(cluster, namespace, name)) ?? {};
    const decoded = Object.entries(data).map(([entry, value]) => [
      entry,
      Buffer.from(value, 'base64').toString('utf8'),
    ]);
    return [name, Object.fromEntries(decoded) as Record<string, string>] as const;
  });
  return new Map(await Promise.all(read));
}

async function secretData(
  cluster: Cluster,
  namespace: string,
  name: string,
): Promise<Record<string, string> | undefined> {
  const secret = await cluster.get(RESOURCES.secrets, namespace, name);
  return secret === undefined ? undefined : ((secret.data ?? {}) as Record<string, string>);
}
