// The reconciler as a fetch handler: a schedule posts to it every minute, and the admission webhook posts triggers.
import { createBackends } from '#adapters/backends/backends.ts';
import type { OpenCounterStore, OpenCounterStoreDependencies } from '#adapters/backends/open-counter-store.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createRedisCounterStore } from '#adapters/redis/counter-store.ts';
import { probeUpstash } from '#adapters/redis/probe-upstash.ts';
import { openUpstash } from '#adapters/redis/upstash.ts';
import type { SharedStoreConnection, StoreConnection } from '#core/ports/backends.ts';
import { createReconciler } from '../../../functions/reconcile/app.ts';
import { limitsFor } from '../../../functions/reconcile/limits.ts';
import { createMemory } from '../../../functions/reconcile/memory.ts';
import { createCursors } from '../../../functions/reconcile/round-robin.ts';
import { ReconcileBindings } from '../config/bindings.ts';
import { RELEASE_VERSION } from '../config/release.ts';
import { readEnvironment } from '../config/variable.ts';
import { maintainDays } from '../node/ledger-days.ts';
import { createStoreMaintenance } from '../node/store-maintenance.ts';
import { requireToken } from '../triggers/token.ts';
import { type Bindings, NO_METRICS, workerCluster, workerDependencies, workerLog } from './platform.ts';
import { createSnapshotStore } from './snapshots.ts';

/** Throws one error that lists every binding that is missing or malformed. */
export function createReconcileFetch(bindings: Bindings) {
  const environment = readEnvironment(ReconcileBindings, bindings);
  return {
    fetch: requireToken(environment.RECONCILE_TOKEN, (request: Request) => run(environment, request)),
    /** The resync of a schedule that calls the function itself. Rejects when the resync failed. */
    resync: async (): Promise<void> => {
      const reply = await run(environment, new Request('https://reconcile/', { method: 'POST' }));
      if (!reply.ok) throw new Error(`the resync answered ${reply.status}: ${await reply.text()}`);
    },
  };
}

/** The positions at which the next resync of the same isolate continues its lists. */
const cursors = createCursors();

/** An isolate has 128 MB for everything. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024;

/** I/O belongs to one invocation on Workers: databases are opened for it, and closed when it ends. */
async function run(environment: ReconcileBindings, request: Request): Promise<Response> {
  const log = workerLog('reconcile');
  const dependencies = workerDependencies();
  const { clear, flush } = createStoreMaintenance({ ...dependencies, open: openShared, log, metrics: NO_METRICS });
  const backends = createBackends({
    clock: dependencies.clock,
    maxReplyBytes: MAX_REPLY_BYTES,
    openDatabase: (connection) => createDatabase(connection, { log, trustsSystemOnly: true }),
    clear,
    flush,
    maintain: (database) => maintainDays(environment.RETAIN_DAYS, database, { clock: dependencies.clock, log }),
    probeShared: async (connection, instanceUid) =>
      connection.type === 'upstash'
        ? probeUpstash(connection, instanceUid)
        : { ok: false, reason: 'StoreUnreachable', message: notFromHere(connection) },
  });
  try {
    const deps = {
      ...dependencies,
      cluster: workerCluster(environment),
      backends,
      platform: {
        servedAt: () => undefined,
        gatewayImage: environment.GATEWAY_IMAGE,
        gatewayPullSecrets: environment.GATEWAY_PULL_SECRETS ?? [],
        secretPrefixes: environment.SECRET_METADATA_PREFIXES ?? [],
        version: RELEASE_VERSION,
        manyProcesses: environment.GATEWAY_PROCESSES === 'many',
        inCluster: false,
      },
      log,
      metrics: NO_METRICS,
      limits: limitsFor(environment.SUBREQUESTS),
      ...(environment.SNAPSHOTS && { snapshots: createSnapshotStore(environment.SNAPSHOTS) }),
    };
    const app = createReconciler(deps, createMemory(cursors));
    return await app.fetch(request);
  } finally {
    await backends.close();
  }
}

function openShared(
  connection: SharedStoreConnection,
  { instanceUid, workMemory }: OpenCounterStoreDependencies,
): OpenCounterStore {
  if (connection.type !== 'upstash') throw new Error(notFromHere(connection));
  const { evaluate, close } = openUpstash(connection, { workMemory });
  return { counterStore: createRedisCounterStore({ evaluate, instanceUid, workMemory }), isShared: true, close };
}

const notFromHere = ({ host, port }: Extract<StoreConnection, { type: 'redis' }>): string =>
  `Redis at ${host}:${port} cannot be asked from a Worker: use Upstash (https://), or run reconcile as a Node process`;
