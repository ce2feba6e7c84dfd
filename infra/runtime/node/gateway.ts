// The gateway of one instance on Node, with its ledger, counter store, journal and database.
import { hostname } from 'node:os';
import { openCounterStore } from '#adapters/backends/open-counter-store.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import {
  type DatabaseConnection,
  type InstanceIdentity,
  isVersionMismatch,
  type StoreConnection,
  storeName,
} from '#core/ports/backends.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { HttpExchange, HttpHandler } from '#core/ports/http-exchange.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';
import { createGateway } from '../../../functions/gateway/app.ts';
import type { GatewayDependencies } from '../../../functions/gateway/deps.ts';
import { limitsIn } from '../../../functions/gateway/request/memory-budget.ts';
import { openJournal } from './journal.ts';
import { metricsOf } from './metrics.ts';
import type { NodeDependencies } from './platform.ts';

export interface GatewayParts
  extends NodeDependencies,
    Pick<GatewayDependencies, 'snapshots' | 'credentials' | 'upstream' | 'memory'> {
  readonly instance: InstanceIdentity;
  readonly connection: DatabaseConnection;
  readonly storeConnection: StoreConnection;
  /** For Upstash. Absent: the platform's own. */
  readonly fetch?: typeof globalThis.fetch;
  /** Reads the connections again, for the logins in them, which may be rotated. Absent: they never are. */
  readonly readLogins?: { readonly database: () => DatabaseConnection; readonly store: () => StoreConnection };
  /** The folder of the journal, which only this instance uses and which outlives the process. */
  readonly folder: string;
  readonly log: Log;
  readonly metrics: Metrics;
}

export type OpenGateway = ReturnType<typeof openGateway>;

/**
 * Starts the ledger in the background. Requests wait until the journal of an earlier process is reported. If a part
 * fails, all opened parts are closed, in the opposite order.
 */
export function openGateway(parts: GatewayParts) {
  const opened = new AsyncDisposableStack();
  try {
    return open(parts, opened);
  } catch (error) {
    opened
      .disposeAsync()
      .catch((cause) =>
        parts.log.warn('gateway: cannot close everything after a failed start', { why: reasonAndCausesOf(cause) }),
      );
    throw error;
  }
}

function open(parts: GatewayParts, opened: AsyncDisposableStack) {
  const { instance, connection, storeConnection, readLogins, folder, clock, log, fetch } = parts;
  const instanceUid = instance.uid;
  const metrics = metricsOf(parts.metrics, instance);
  const intervalClock: Clock = { now: () => performance.now() };
  const {
    counterStore,
    isShared,
    close: closeStore,
  } = openCounterStore(storeConnection, { instanceUid, clock, log, fetch, readLogin: readLogins?.store });
  opened.defer(closeStore);
  const journal = openJournal({ folder, log, metrics, isShared });
  opened.defer(journal.close);
  const database = createDatabase(connection, { log, readLogin: readLogins?.database });
  opened.defer(database.close);
  // Counters in memory are a counter store of their own in each Pod.
  const store = isShared ? storeName(storeConnection) : `memory of ${hostname()}`;
  const ledger = createLedger({
    ...parts,
    instanceUid,
    counterStore,
    journal,
    tick: afterReading,
    epochs: database.epochs(instanceUid, { store, startedAt: clock.now() }),
    metrics,
    database: {
      ...database.ledgerDatabase(instanceUid, parts.random),
      scopesOfOtherInstances: database.scopesOfOtherInstances,
    },
    intervalClock,
    // With counters in memory, a restarted container does not wait for its predecessor; a new Pod does.
    ...(isShared ? {} : { processName: store }),
  });
  opened.defer(() => ledger.close());
  const starting = keepStarting(ledger.start, parts);
  opened.defer(starting.stop);
  const { hasVersionMismatch } = starting;
  const policies = database.policies(instanceUid);
  const requests = counted(createGateway({ ...parts, intervalClock, metrics, policies, ledger, hasVersionMismatch }));
  const close = (end: number, graceMs: number): Promise<void> => {
    starting.stop();
    opened.defer(() => ledger.close(Math.min(MAX_BOOKING, end - performance.now() - AFTER_BOOKING)));
    opened.defer(() => ledger.chargeLive().catch((error) => log.warn(UNCHARGED, { why: reasonAndCausesOf(error) })));
    opened.defer(() => requests.end(graceMs));
    return opened.disposeAsync();
  };
  let closing: Promise<void> | undefined;
  return {
    handle: requests.handle,
    /**
     * The maximum number of connections: twice that of requests, because clients keep connections for later requests.
     */
    maxConnections: parts.memory && 2 * limitsIn(parts.memory).requests,
    /** Resolves when the ledger has started, or could not for the first time. */
    started: starting.first,
    /**
     * Books everything that was settled, by any process, and audits the counters; throws if the database is
     * unreachable.
     */
    flush: async () => {
      await starting.first;
      await ledger.flush();
      await ledger.maintain();
    },
    /**
     * Closes everything when the last request has ended. After so many milliseconds the other requests are cut: streams
     * are charged for what they streamed, plain requests their whole reservation, because their cost is unknown. That
     * takes at most `closingMs` more, whatever the database and the store do.
     */
    close: (graceMs = 0, closingMs = CLOSING): Promise<void> => {
      closing ??= close(performance.now() + graceMs + closingMs, graceMs);
      return closing;
    },
  };
}

const UNCHARGED = 'requests were not charged at the stop';

/** Milliseconds that a stream needs to settle after its connection was cut. */
const AFTER_CUT = 500;
/** The default milliseconds of a close. */
const CLOSING = 12_000;
/**
 * Milliseconds that the last booking may take, and those that the steps after it need: 2 s of the ledger, 1 s of the
 * database.
 */
const MAX_BOOKING = 5_000;
const AFTER_BOOKING = 3_000;

/** The handler, and how its requests end. */
function counted(handle: HttpHandler) {
  const underWay = new Set<HttpExchange>();
  let last = Promise.withResolvers<void>();
  const ended = async (millis: number): Promise<void> => {
    if (underWay.size === 0) return;
    last = Promise.withResolvers();
    const timer = setTimeout(last.resolve, millis);
    await last.promise;
    clearTimeout(timer);
  };
  const counting: HttpHandler = async (exchange, path) => {
    underWay.add(exchange);
    try {
      await handle(exchange, path);
    } finally {
      underWay.delete(exchange);
      if (underWay.size === 0) last.resolve();
    }
  };
  return {
    handle: counting,
    /** Resolves when no request is under way, or after so many milliseconds, when the other requests are cut. */
    end: async (graceMs: number): Promise<void> => {
      await ended(graceMs);
      for (const exchange of underWay) exchange.destroy();
      await ended(AFTER_CUT);
    },
  };
}

/**
 * Calls back when every readable socket has been read, so that the requests from these sockets share a call of the
 * store.
 */
function afterReading(callback: () => void): void {
  setImmediate(callback);
}

/** Milliseconds. */
const TRY_AGAIN_AFTER = 1_000;

/**
 * Tries to start the ledger until the database accepts the content of the journal. Until then, requests get 503.
 * `first` resolves after the first attempt. `hasVersionMismatch`: the Pod is not ready, so that an upgrade does not
 * replace Pods that serve. A Pod that waits for something else is ready, because old Pods may have to end first.
 */
function keepStarting(start: () => Promise<void>, { timer, log }: Pick<GatewayParts, 'timer' | 'log'>) {
  let [isOver, hasMismatch] = [false, false];
  const attempt = async (isReported: boolean): Promise<void> => {
    try {
      if (!isOver) await start();
      hasMismatch = false;
    } catch (error) {
      hasMismatch = isVersionMismatch(error);
      if (isOver) return;
      if (!isReported) log.warn('the ledger does not start yet, and tries again', { why: reasonAndCausesOf(error) });
      timer(TRY_AGAIN_AFTER, () => void attempt(true));
    }
  };
  const stop = () => {
    isOver = true;
  };
  return { first: attempt(false), stop, hasVersionMismatch: () => hasMismatch };
}
