// The gateway of one instance as a fetch handler: a request has its own database connection and ledger, and leaves only
// plain data behind (LEDGER 7).
import { createMemoryJournal } from '#adapters/memory/journal.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createRedisCounterStore } from '#adapters/redis/counter-store.ts';
import { openUpstash } from '#adapters/redis/upstash.ts';
import { createFetchUpstream } from '#adapters/upstream/fetch.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import { ownMember } from '#core/json/json.ts';
import { createKnownStore } from '#core/ledger/account.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import { readSnapshot } from '#core/models/snapshot.ts';
import { storeName } from '#core/ports/backends.ts';
import type { Ledger } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Credentials } from '#core/ports/upstream.ts';
import { createGateway, createSharedState } from '../../../functions/gateway/app.ts';
import { GatewayBindings } from '../config/bindings.ts';
import { readEnvironment } from '../config/variable.ts';
import { toExchange } from './http-exchange.ts';
import { createMountedText } from './mounted-text.ts';
import { type Bindings, type Execution, NO_METRICS, WORKER_MEMORY, workerDependencies, workerLog } from './platform.ts';

const log = workerLog('gateway');
const node = workerDependencies();
const state = createSharedState({ clock: node.clock, log, metrics: NO_METRICS, memory: WORKER_MEMORY });
const knownStoreOfIsolate = createKnownStore();
/** When the isolate had its first request: a module has no clock when it is loaded. */
const isolate: { startedAt?: Millis } = {};
const upstream = createFetchUpstream({ fetch: (...call) => fetch(...call), timer: node.timer });
const snapshots = createMountedText(node.clock, (text) => {
  const read = readSnapshot(text);
  if (!read.ok) log.error('the snapshot is not used', { why: read.failure });
  return read.ok ? read.value : undefined;
});

/** Throws one error that lists every binding that is missing or malformed. */
export function createGatewayFetch(bindings: Bindings) {
  const environment = readEnvironment(GatewayBindings, bindings);
  return {
    fetch: (request: Request, _?: unknown, execution?: Execution) => answer(request, environment, execution),
  };
}

async function answer(
  request: Request,
  environment: GatewayBindings,
  execution: Execution | undefined,
): Promise<Response> {
  const { INSTANCE: path } = environment;
  const snapshot = await snapshots.read(() => environment.SNAPSHOTS.get(path));
  if (snapshot === undefined) log.warn(`SNAPSHOTS has no snapshot of ${path} that can be used`);
  const { host, port, user, password, database: dbname } = environment.HYPERDRIVE;
  const database = createDatabase({ host, port, username: user, password, dbname }, { log });
  const instanceUid = snapshot?.instance.uid ?? 'none';
  const ledger = createRequestLedger(environment, database, instanceUid);
  const handle = createGateway(
    {
      ...node,
      snapshots: { current: () => snapshot },
      credentials: credentialsIn(environment.CREDENTIALS),
      policies: database.policies(instanceUid),
      ledger,
      upstream,
      log,
      metrics: NO_METRICS,
    },
    state,
  );
  const { exchange, response } = toExchange(request);
  const over = async (): Promise<void> => {
    try {
      await handle(exchange);
    } finally {
      await ledger.close().finally(database.close);
    }
  };
  const ended = over().catch((error) => log.error('gateway: cannot close its connections', { why: reasonOf(error) }));
  // A process continues behind its answer by itself.
  execution?.waitUntil(ended);
  return response;
}

/** Values by Secret and entry, as the binding has them. */
export function credentialsIn(values: GatewayBindings['CREDENTIALS']): Credentials {
  return { read: (secret, secretKey) => ownMember(ownMember(values, secret) ?? {}, secretKey) };
}

type Parts = ReturnType<typeof createDatabase>;

/** A ledger that starts with its first call, so that a request without a key costs nothing. */
function createRequestLedger(environment: GatewayBindings, database: Parts, instanceUid: string): Ledger {
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = environment;
  const connection = { type: 'upstash', url, token } as const;
  const { evaluate } = openUpstash(connection);
  isolate.startedAt ??= node.clock.now();
  const ledger = createLedger({
    ...node,
    instanceUid,
    log,
    metrics: NO_METRICS,
    knownStoreOfIsolate,
    epochs: database.epochs(instanceUid, { store: storeName(connection), startedAt: isolate.startedAt }),
    database: {
      ...database.ledgerDatabase(instanceUid, node.random),
      scopesOfOtherInstances: database.scopesOfOtherInstances,
    },
    counterStore: createRedisCounterStore({ evaluate, instanceUid }),
    // Nothing here outlives a request: the store keeps the spend, and the risk of requests that died.
    journal: createMemoryJournal(),
  });
  let starting: Promise<void> | undefined;
  const started = (): Ledger => {
    starting ??= ledger.start();
    // Calls that wait for the start receive its failure.
    starting.catch(() => undefined);
    return ledger;
  };
  return {
    ...ledger,
    reserve: (request) => started().reserve(request),
    spend: (scopes, waited) => started().spend(scopes, waited),
  };
}
