// Backends of one process: the databases and stores that instances name, each database opened once.
import { createLimiter, type Limiter, mapConcurrent } from '#core/concurrency/limiter.ts';
import type {
  Backends,
  DatabaseConnection,
  FlushWork,
  InstanceIdentity,
  SharedStoreConnection,
  StoreConnection,
  StoreHealth,
} from '#core/ports/backends.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Database, DatabaseWithin } from '../postgres/database.ts';
import { createMemoryBudget, type MemoryBudget, type WorkMemory } from './reply-memory.ts';

/** Concurrent flushes to one database: half of its connections, so that no query waits for the stores of others. */
const FLUSHES = 4;
/**
 * Milliseconds for which an unused pool is kept. A resync uses each pool every minute, so the password of an unused one
 * was rotated, or its instance is gone.
 */
const UNUSED = 600_000;
/**
 * The maximum number of pools, each with up to 0.5 MB of certificates: more than the instances that a process observes
 * concurrently. So passwords that are rotated faster than `UNUSED` take no more memory.
 */
const MAX_POOLS = 128;

/**
 * The maximum milliseconds of a flush: with a slow store that never ends its reply, it would delay other flushes to
 * its database.
 */
const MAX_FLUSH = 10_000;
/** The databases that are maintained concurrently, and the maximum milliseconds in which another one begins. */
const MAINTAINED = 8;
const MAX_MAINTENANCE: Millis = 20_000;
/** The maximum number of databases that wait for maintenance, each with up to 64 KiB of certificates. */
const MAX_WAITING = 1000;
/** Bytes that replies about an instance may take in any case: for its own state, and for each of its members. */
const ENTITLED = 1024 * 1024;
const ENTITLED_PER_MEMBER = 4096;

interface BackendsDependencies {
  readonly clock: Clock;
  /** Bytes that all replies together may take beyond what each instance is entitled to. */
  readonly maxReplyBytes: number;
  /** Opens a pool, which connects with its first call. */
  readonly openDatabase: (connection: DatabaseConnection) => Database;
  /** Books what the instance has settled and audits its store. Does nothing on a platform that connects to no store. */
  readonly flush: (
    instance: InstanceIdentity,
    work: FlushWork<DatabaseWithin> & { readonly workMemory: WorkMemory },
  ) => Promise<void>;
  /**
   * Makes and drops days of ledger rows, and sums up usage; never rejects. Absent: none of it. `whole`: the database for
   * work after this call.
   */
  readonly maintain?: (database: DatabaseWithin, whole: Database) => Promise<void>;
  /** Absent: the platform connects to no store. */
  readonly clear?: (instanceUid: string, store: StoreConnection, workMemory: WorkMemory) => Promise<void>;
  readonly probeShared: (connection: SharedStoreConnection, instanceUid: string) => Promise<StoreHealth>;
}

interface Pool {
  readonly database: Database;
  readonly limitFlushes: Limiter;
  readonly askedAt: Millis;
}

/** Databases are opened once per connection; those that were used last are kept. `close` ends them all. */
export function createBackends(deps: BackendsDependencies): Backends & { close(): Promise<void> } {
  const pools = createPools(deps);
  const budget = createMemoryBudget(deps.maxReplyBytes);
  const maintenance = createMaintenance(deps, pools, budget);
  const begin: Backends['begin'] = (members) => {
    const entitled = ENTITLED + members * ENTITLED_PER_MEMBER;
    const workMemory = budget.workMemory(entitled);
    return { backends: within(workMemory, entitled), end: workMemory.end };
  };
  const within = (workMemory: WorkMemory, entitled: number): Backends => {
    const views = new Map<Database, DatabaseWithin>();
    return {
      begin,
      database: (connection) => {
        const { database } = pools.opened(connection);
        const view = views.get(database) ?? database.withWorkMemory(workMemory);
        views.set(database, view);
        return view;
      },
      probeStore: async (connection, instanceUid) =>
        connection.type === 'memory' ? { ok: true } : deps.probeShared(connection, instanceUid),
      flush: (instance, work) => {
        const { database, limitFlushes } = pools.opened(work.database);
        maintenance.add(work.database);
        return limitFlushes(() =>
          withOwnMemory(budget.workMemory(entitled), workMemory.signal, (own) =>
            deps.flush(instance, { ...work, database: database.withWorkMemory(own), workMemory: own }),
          ),
        );
      },
      maintain: maintenance.run,
      clearStore: async (instanceUid, store) => deps.clear?.(instanceUid, store, workMemory),
    };
  };
  return { ...within(budget.workMemory(0), 0), close: pools.close };
}

/** The databases that were used since their last maintenance, by connection, in the order of their first use. */
function createMaintenance(
  { clock, maintain }: Pick<BackendsDependencies, 'clock' | 'maintain'>,
  pools: ReturnType<typeof createPools>,
  budget: MemoryBudget,
) {
  const waiting = new Map<string, DatabaseConnection>();
  return {
    add: (connection: DatabaseConnection): void => {
      if (maintain !== undefined && waiting.size < MAX_WAITING) waiting.set(idOf(connection), connection);
    },
    run: async (): Promise<void> => {
      const end = clock.now() + MAX_MAINTENANCE;
      const one = async ([id, connection]: readonly [string, DatabaseConnection]) => {
        if (clock.now() >= end || !waiting.delete(id)) return;
        const { database } = pools.opened(connection);
        await withOwnMemory(budget.workMemory(ENTITLED), undefined, async (own) =>
          maintain?.(database.withWorkMemory(own), database),
        );
      };
      await mapConcurrent([...waiting], one, MAINTAINED);
    },
  };
}

/** Work with memory of its own, which ends with the work that it is part of, and after a time. */
async function withOwnMemory<T>(
  workMemory: ReturnType<MemoryBudget['workMemory']>,
  parent: AbortSignal | undefined,
  work: (workMemory: WorkMemory) => Promise<T>,
): Promise<T> {
  const end = () => workMemory.end();
  const timeout = setTimeout(end, MAX_FLUSH);
  parent?.addEventListener('abort', end);
  if (parent?.aborted) end();
  try {
    return await work(workMemory);
  } finally {
    clearTimeout(timeout);
    parent?.removeEventListener('abort', end);
    end();
  }
}

const idOf = (connection: DatabaseConnection): string => JSON.stringify(Object.entries(connection).sort());

function createPools({ clock, openDatabase }: Pick<BackendsDependencies, 'clock' | 'openDatabase'>) {
  const open = new Map<string, Pool>();
  /** Pools are in the order of their last use. */
  const closeUnused = (now: Millis) => {
    for (const [id, { database, askedAt }] of open) {
      if (now - askedAt < UNUSED && open.size <= MAX_POOLS) return;
      open.delete(id);
      // Work in progress may still use it.
      void database.disconnect().catch(() => undefined);
    }
  };
  return {
    opened: (connection: DatabaseConnection): Pool => {
      const id = idOf(connection);
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
