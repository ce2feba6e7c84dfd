// Gateways of the stack's instances: each snapshot with its Secrets becomes a running gateway, as kubelets do it in a
// cluster.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { GatewayInstance } from '../../../../crds/kinds/gateway-instance.ts';
import { reasonAndCausesOf } from '../../../../functions/core/failure/error-text.ts';
import { snapshotName } from '../../../../functions/core/keys/object-names.ts';
import { Snapshot } from '../../../../functions/core/models/snapshot.ts';
import type { DatabaseConnection, StoreConnection } from '../../../../functions/core/ports/backends.ts';
import { type Cluster, RESOURCES } from '../../../../functions/core/ports/cluster.ts';
import { toDatabaseConnection, toStoreConnection } from '../../../../functions/core/rules/connections.ts';
import { resourceOf } from '../../../packaging/manifests/apply.ts';
import { type GatewayParts, type OpenGateway, openGateway } from '../../../runtime/node/gateway.ts';
import { nodeDependencies } from '../../../runtime/node/platform.ts';

/**
 * Milliseconds that the requests of a gateway get to end if its instance is deleted or has another database or store.
 */
const GRACE = 6_000;

export interface GatewaysOptions extends Pick<GatewayParts, 'upstream' | 'log' | 'metrics'> {
  readonly cluster: Cluster;
  /** The folder of the journals, with one folder per instance. */
  readonly folder: string;
}

/**
 * `absent`: there is no such instance; `unavailable`: its gateway cannot run (yet), or the cluster does not respond.
 */
type GatewayLookup = OpenGateway | 'absent' | 'unavailable';

export type Gateways = ReturnType<typeof createGateways>;

/**
 * The configuration of an instance's gateway, which follows snapshot and credentials. Another uid, database or store
 * needs a new gateway.
 */
interface Configuration {
  readonly fixed: { readonly uid: string; readonly connection: DatabaseConnection; readonly store: StoreConnection };
  readonly snapshot: Snapshot;
  /** The credentials, by the names of their Secrets. */
  readonly secrets: ReadonlyMap<string, Data>;
}

interface RunningGateway {
  configuration: Configuration;
  readonly gateway: OpenGateway;
}

/** Gateways of one process. Changes of one instance are made one after another. */
export function createGateways(options: GatewaysOptions) {
  const { cluster, log } = options;
  const running = new Map<string, RunningGateway>();
  const last = new Map<string, Promise<GatewayLookup>>();
  /** Gateways whose last requests end. */
  const retired = new Set<Promise<void>>();

  const refreshOne = (path: string): Promise<GatewayLookup> => {
    const found = (last.get(path) ?? Promise.resolve())
      .then(() => follow(path))
      .catch((error: unknown): GatewayLookup => {
        log.warn('gateway not started', { instance: path, why: reasonAndCausesOf(error) });
        return 'unavailable';
      });
    last.set(path, found);
    return found;
  };

  const follow = async (path: string): Promise<GatewayLookup> => {
    const wanted = await readConfiguration(cluster, path);
    const have = running.get(path);
    if (wanted === 'unchanged') return have?.gateway ?? 'unavailable';
    if (have !== undefined && wanted !== 'absent' && isDeepStrictEqual(have.configuration.fixed, wanted.fixed)) {
      have.configuration = wanted;
      return have.gateway;
    }
    running.delete(path);
    const closing = have === undefined ? undefined : retire(path, have);
    // Only a gateway of the same instance waits for the journal.
    if (wanted !== 'absent' && wanted.fixed.uid === have?.configuration.fixed.uid) await closing;
    if (wanted === 'absent') return wanted;
    const fresh = start(options, wanted);
    running.set(path, fresh);
    return fresh.gateway;
  };

  const retire = (path: string, { gateway }: RunningGateway): Promise<void> => {
    const closing = gateway
      .close(GRACE)
      .catch((error: unknown) => log.warn('gateway not closed', { instance: path, why: reasonAndCausesOf(error) }))
      .finally(() => retired.delete(closing));
    retired.add(closing);
    return closing;
  };

  const refreshAll = async () => {
    const instances = await cluster.list(resourceOf('GatewayInstance'));
    const listed = instances.map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
    await Promise.all([...new Set([...listed, ...running.keys()])].map(refreshOne));
  };
  let isDue = false;
  let round = Promise.resolve();
  const refresh = async () => {
    isDue = false;
    await refreshAll().catch((error: unknown) => log.warn('instances not read', { why: reasonAndCausesOf(error) }));
  };

  return {
    /** The gateway of this instance. */
    find: async (namespace: string, name: string): Promise<GatewayLookup> => {
      const path = `${namespace}/${name}`;
      return running.get(path)?.gateway ?? refreshOne(path);
    },
    /** Reads every instance with its Secrets, and updates its gateway, in the background. */
    refresh: () => {
      // A round that has not begun sees this change as well.
      if (!isDue) round = round.then(refresh);
      isDue = true;
    },
    /**
     * Books the calls that the instance's gateway has settled or found in its journal; does nothing if no gateway
     * runs.
     */
    flush: async ({ uid }: { readonly uid: string }) => {
      await round;
      await [...running.values()].find(({ configuration }) => configuration.fixed.uid === uid)?.gateway.flush();
    },
    close: async () => {
      await round;
      await Promise.allSettled([...retired, ...[...running.values()].map(({ gateway }) => gateway.close())]);
      running.clear();
    },
  };
}

function start({ cluster: _, folder, ...parts }: GatewaysOptions, first: Configuration): RunningGateway {
  const { uid, connection, store } = first.fixed;
  const own = join(folder, uid);
  mkdirSync(own, { recursive: true });
  const running: RunningGateway = {
    configuration: first,
    gateway: openGateway({
      ...nodeDependencies(),
      ...parts,
      instance: first.snapshot.instance,
      connection,
      storeConnection: store,
      folder: own,
      snapshots: { current: () => running.configuration.snapshot },
      credentials: {
        read: (secret, secretKey) => {
          const value = running.configuration.secrets.get(secret)?.[secretKey];
          return value === undefined ? undefined : Buffer.from(value, 'base64').toString();
        },
      },
    }),
  };
  return running;
}

/**
 * The configuration in the cluster. `absent`: there is no such instance. `unchanged`: nothing is published yet, or it
 * cannot be read now (a Secret is missing): a configuration that works is never emptied.
 */
async function readConfiguration(cluster: Cluster, path: string): Promise<Configuration | 'absent' | 'unchanged'> {
  const [namespace = '', name = ''] = path.split('/');
  const found = await cluster.get(resourceOf('GatewayInstance'), namespace, name);
  if (found === undefined) return 'absent';
  const { spec, status } = found as unknown as GatewayInstance;
  if (status?.snapshotHash === undefined) return 'unchanged';
  const published = await cluster.get(RESOURCES.configMaps, namespace, snapshotName(name, status.snapshotHash));
  const text = (published?.data as Record<string, string> | undefined)?.['snapshot.json'];
  const database = await secretData(cluster, namespace, spec.databaseSecretRef.nameRef);
  const keyValue = await secretData(cluster, namespace, spec.redisSecretRef.nameRef);
  if (text === undefined || database === undefined || keyValue === undefined) return 'unchanged';
  const connection = toDatabaseConnection(spec.databaseSecretRef, database);
  const store = toStoreConnection(spec.redisSecretRef, keyValue);
  if (!connection.ok || !store.ok) return 'unchanged';
  const snapshot = Snapshot.parse(JSON.parse(text));
  const fixed = { uid: snapshot.instance.uid, connection: connection.value, store: store.value };
  const secrets = new Map<string, Data>();
  for (const { secret } of snapshot.models.flatMap(({ credentials }) => Object.values(credentials)))
    if (!secrets.has(secret)) secrets.set(secret, (await secretData(cluster, namespace, secret)) ?? {});
  return { fixed, snapshot, secrets };
}

/** Values in base64, as in a Secret. */
type Data = Readonly<Record<string, string>>;

async function secretData(cluster: Cluster, namespace: string, name: string): Promise<Data | undefined> {
  const secret = await cluster.get(RESOURCES.secrets, namespace, name);
  return secret === undefined ? undefined : ((secret.data ?? {}) as Data);
}
