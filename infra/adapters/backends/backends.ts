// Backends of one process: the databases and stores that instances name, each database opened once.
import { createLimiter, type Limiter } from '#core/concurrency/limiter.ts';
import type {
  Backends,
  DatabaseConnection,
  Flush,
  InstanceIdentity,
  SharedStoreConnection,
  StoreConnection,
  StoreHealth,
} from '#core/ports/backends.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Database, DatabaseWithin } from '../postgres/database.ts';
import { createMemoryBudget, type MemoryBudget, type MemoryShare } from './reply-memory.ts';

/** Concurrent flushes to one database: half of its connections, so that no query waits for the stores of others. */
const FLUSHES = 4;
/**
 * Milliseconds that a pool is kept without being asked for: a resync asks each minute, so the password of this one was
 * rotated, or its instance is gone.
 */
const UNUSED = 600_000;
/**
 * Pools that are kept, each with up to 0.5 MB of certificates: more than the instances that a process looks at
 * concurrently. Whoever rotates passwords faster than `UNUSED` takes no more.
 */
const MAX_POOLS = 128;

/**
 * Milliseconds that a flush may take: one whose store answers slowly and without end keeps others of its database
 * waiting.
 */
const MAX_FLUSH = 10_000;
/** Bytes that answers about an instance may take whatever others need: of its own state, and of each of its members. */
const ENTITLED = 1024 * 1024;
const ENTITLED_PER_MEMBER = 4096;

interface BackendsDependencies {
  readonly clock: Clock;
  /** Bytes that all answers together may take beyond what each instance is entitled to. */
  readonly maxAnswers: number;
  /** Opens a pool; nothing is dialled until it is asked. */
  readonly openDatabase: (connection: DatabaseConnection) => Database;
  /** Books what the instance has settled and audits its store; nothing where this platform dials no store. */
  readonly flush: (
    instance: InstanceIdentity,
    work: Flush<DatabaseWithin> & { readonly share: MemoryShare },
  ) => Promise<void>;
  /** Absent where this platform dials no store. */
  readonly clear?: (instanceUid: string, store: StoreConnection, share: MemoryShare) => Promise<void>;
  readonly probeShared: (connection: SharedStoreConnection, instanceUid: string) => Promise<StoreHealth>;
}

interface Pool {
  readonly database: Database;
  readonly limitFlushes: Limiter;
  readonly askedAt: Millis;
}

/** Databases are opened once per connection; those that were asked for last are kept. `close` ends them all. */
export function createBackends(deps: BackendsDependencies): Backends & { close(): Promise<void> } {
  const pools = createPools(deps);
  const budget = createMemoryBudget(deps.maxAnswers);
  const begin: Backends['begin'] = (members) => {
    const entitled = ENTITLED + members * ENTITLED_PER_MEMBER;
    const share = budget.share(entitled);
    return { backends: within(share, entitled), end: share.end };
  };
  const within = (share: MemoryShare, entitled: number): Backends => {
    const views = new Map<Database, DatabaseWithin>();
    return {
      begin,
      database: (connection) => {
        const { database } = pools.opened(connection);
        const view = views.get(database) ?? database.withShare(share);
        views.set(database, view);
        return view;
      },
      probeStore: async (connection, instanceUid) =>
        connection.type === 'memory' ? { ok: true } : deps.probeShared(connection, instanceUid),
      flush: (instance, work) => {
        const { database, limitFlushes } = pools.opened(work.database);
        return limitFlushes(() =>
          withOwnShare(budget.share(entitled), share.signal, (own) =>
            deps.flush(instance, { ...work, database: database.withShare(own), share: own }),
          ),
        );
      },
      clearStore: async (instanceUid, store) => deps.clear?.(instanceUid, store, share),
    };
  };
  return { ...within(budget.share(0), 0), close: pools.close };
}

/** Work with a share of its own, which ends with the work that it is part of, and after a time. */
async function withOwnShare<T>(
  share: ReturnType<MemoryBudget['share']>,
  parent: AbortSignal,
  work: (share: MemoryShare) => Promise<T>,
): Promise<T> {
  const end = () => share.end();
  const timeout = setTimeout(end, MAX_FLUSH);
  parent.addEventListener('abort', end);
  if (parent.aborted) end();
  try {
    return await work(share);
  } finally {
    clearTimeout(timeout);
    parent.removeEventListener('abort', end);
    end();
  }
}

function createPools({ clock, openDatabase }: Pick<BackendsDependencies, 'clock' | 'openDatabase'>) {
  const open = new Map<string, Pool>();
  /** Pools are in the order in which they were last asked for. */
  const closeUnused = (now: Millis) => {
    for (const [id, { database, askedAt }] of open) {
      if (now - askedAt < UNUSED && open.size <= MAX_POOLS) return;
      open.delete(id);
      // Work under way may still ask it.
      void database.disconnect().catch(() => undefined);
    }
  };
  return {
    opened: (connection: DatabaseConnection): Pool => {
      const id = JSON.stringify(Object.entries(connection).sort());
      const askedAt = clock.now();
      const { database = openDatabase(connection), limitFlushes = createLimiter(FLUSHES) } = open.get(id) ?? {};
      const pool = { database, limitFlushes, askedAt };
      open.delete(id);
      open.set(id, pool);
      closeUnused(askedAt);
      return pool;
    },
    close: async (): Promise<void> => {
      await Promise.allSettled([...open.values()].map(({ database }) => database.close()));
      open.clear();
    },
  };
}
