// The reconciler of a cluster in which tenants have written databases and stores that harm: a program, so that it has
// the chart's memory.
// It prints, as one line of JSON, how its resyncs went.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { createBackends } from '#adapters/backends/backends.ts';
import { openCounterStore } from '#adapters/backends/open-counter-store.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { probeShared } from '#adapters/redis/probe.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createReconciler } from '../../functions/reconcile/app.ts';
import { replaceNameLookup } from '../../infra/runtime/node/name-lookup.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { replyMemory } from '../../infra/runtime/node/reply-memory.ts';
import { createStoreMaintenance } from '../../infra/runtime/node/store-maintenance.ts';
import { createMemoryCluster } from '../doubles/cluster.ts';
import { makeInstance, makeKey, makeSecret, makeSecrets, resourceOf } from '../reconcile/objects.ts';

/** An instance of a namespace of its own. */
export interface Tenant {
  readonly namespace: string;
  readonly database: DatabaseConnection;
  /** Entries of the store's Secret. */
  readonly store: Readonly<Record<'host' | 'port' | 'password', string>>;
  readonly keys: number;
}

export interface Outcome {
  /** Milliseconds of each resync. */
  readonly millis: ReadonlyArray<number>;
  /** Milliseconds from the start until each key of these tenants was ready. */
  readonly readyAfter: Readonly<Record<string, number>>;
  /** Status and reason of `Ready`, by namespace: of the instance, and of its keys, each once. */
  readonly instances: Readonly<Record<string, string>>;
  readonly keys: Readonly<Record<string, ReadonlyArray<string>>>;
  readonly maxRss: number;
  /** The longest time that the event loop stood still, in milliseconds. */
  readonly maxDelay: number;
}

const RESYNCS = 2;

// Absent: those of the machine.
replaceNameLookup(process.env.NAME_SERVER?.split(','));

function objectsOf({ namespace, database, store, keys }: Tenant): KubeObject[] {
  const { port, ...texts } = database;
  const [, , credentials] = makeSecrets();
  const at = <T extends KubeObject>(object: T): KubeObject => ({
    ...object,
    metadata: { ...object.metadata, namespace },
  });
  const instance = makeInstance({}, 'main', namespace);
  const spec = instance.spec as { readonly databaseSecretRef: { readonly keys: object } };
  const tls = ['sslmode', 'sslrootcert'].filter((name) => name in texts).map((name) => [`${name}Secret`, name]);
  const mapped = { ...spec.databaseSecretRef.keys, portSecret: 'port', ...Object.fromEntries(tls) };
  const connectionRef = { instanceRef: { name: 'main', namespace } };
  return [
    makeSecret('db', { ...texts, port: String(port) }, namespace),
    makeSecret('store', store, namespace),
    ...(credentials === undefined ? [] : [at(credentials)]),
    { ...instance, spec: { ...spec, databaseSecretRef: { ...spec.databaseSecretRef, keys: mapped } } },
    ...Array.from({ length: keys }, (_, index) => makeKey({ connectionRef }, `key-${index}`, namespace)),
  ];
}

function readyOf({ status }: KubeObject): string {
  const { conditions = [] } = (status ?? {}) as { conditions?: ReadonlyArray<Record<string, string>> };
  const ready = conditions.find(({ type }) => type === 'Ready');
  return `${ready?.status} ${ready?.reason}`;
}

async function main(tenants: ReadonlyArray<Tenant>): Promise<Outcome> {
  const node = nodeDependencies();
  const cluster = createMemoryCluster({ clock: node.clock, ids: node.ids });
  for (const object of tenants.flatMap(objectsOf)) await cluster.create(resourceOf(object), object);
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const metrics = createMetrics();
  const parts = { ...node, log, metrics };
  const { clear, flush } = createStoreMaintenance({ open: openCounterStore, ...parts });
  const app = createReconciler({
    ...parts,
    cluster,
    backends: createBackends({
      clock: node.clock,
      maxReplyBytes: replyMemory(),
      clear,
      flush,
      probeShared,
      openDatabase: (connection) => createDatabase(connection, { log }),
    }),
    platform: {
      servedAt: ({ metadata }) => `http://gateway.test/${metadata.namespace}/${metadata.name}`,
      gatewayImage: 'gateway',
      version: '0.1.0',
      manyProcesses: false,
      inCluster: false,
    },
  });
  const readyAfter: Record<string, number> = {};
  const start = performance.now();
  const look = setInterval(() => {
    const keys = Map.groupBy(cluster.objects(virtualKeys), ({ metadata }) => metadata.namespace ?? '');
    for (const [namespace, of] of keys)
      if (of.every((key) => readyOf(key) === 'True Ready')) readyAfter[namespace] ??= performance.now() - start;
  }, 100);
  const delay = monitorEventLoopDelay();
  delay.enable();
  const millis: number[] = [];
  for (let resync = 0; resync < RESYNCS; resync += 1) {
    const began = performance.now();
    const answer = await app.request('/', { method: 'POST' });
    if (answer.status !== 200) throw new Error(`resync answered ${answer.status}: ${await answer.text()}`);
    millis.push(performance.now() - began);
  }
  clearInterval(look);
  const byNamespace = Map.groupBy(cluster.objects(virtualKeys), ({ metadata }) => metadata.namespace ?? '');
  return {
    millis,
    readyAfter,
    instances: Object.fromEntries(
      cluster.objects(gatewayInstances).map((object) => [object.metadata.namespace, readyOf(object)]),
    ),
    keys: Object.fromEntries([...byNamespace].map(([name, keys]) => [name, [...new Set(keys.map(readyOf))]])),
    maxRss: process.resourceUsage().maxRSS * 1024,
    maxDelay: delay.max / 1e6,
  };
}

console.log(JSON.stringify(await main(JSON.parse(await text(process.stdin)))));
process.exit(0);
