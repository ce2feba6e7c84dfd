// Backends of one process: the databases and stores that instances name, each database opened once.
import type {
  Backends,
  DatabaseConnection,
  InstanceIdentity,
  SharedStoreConnection,
  StoreConnection,
  StoreHealth,
} from '#core/ports/backends.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Database } from './postgres/database.ts';

/** Concurrent flushes to one database: half of its connections, so that no query waits for the stores of others. */
const FLUSHES = 4;
/** Milliseconds that a pool is kept without being asked for: a sweep asks each minute, so the password of this one was rotated, or its instance is gone. */
const UNUSED = 600_000;

interface BackendsDependencies {
  readonly clock: Clock;
  /** Opens a pool; nothing is dialled until it is asked. */
  readonly openDatabase: (connection: DatabaseConnection) => Database;
  /** Books what the instance has settled and audits its store; nothing where this platform dials no store. */
  readonly flush: (instance: InstanceIdentity, store: StoreConnection, database: Database) => Promise<void>;
  /** Absent where this platform dials no store. */
  readonly clear?: (instanceUid: string, store: StoreConnection) => Promise<void>;
  readonly probeShared: (connection: SharedStoreConnection, instanceUid: string) => Promise<StoreHealth>;
}

interface Pool {
  readonly database: Database;
  readonly inLine: ReturnType<typeof createLine>;
  readonly askedAt: Millis;
}

/** Databases are opened once per connection and kept as long as they are asked for; `close` ends them all. */
export function createBackends(deps: BackendsDependencies): Backends & { close(): Promise<void> } {
  const open = new Map<string, Pool>();
  const closeUnused = (now: Millis) => {
    for (const [id, { database, askedAt }] of open) {
      if (now - askedAt < UNUSED) continue;
      open.delete(id);
      void database.close().catch(() => undefined);
    }
  };
  const opened = (connection: DatabaseConnection) => {
    const { host, port, username, password, dbname, sslmode, sslrootcert } = connection;
    const id = JSON.stringify([host, port, username, password, dbname, sslmode, sslrootcert]);
    const askedAt = deps.clock.now();
    const { database = deps.openDatabase(connection), inLine = createLine(FLUSHES) } = open.get(id) ?? {};
    const pool = { database, inLine, askedAt };
    open.set(id, pool);
    closeUnused(askedAt);
    return pool;
  };
  return {
    database: (connection) => opened(connection).database,
    probeStore: async (connection, instanceUid) =>
      connection.type === 'memory' ? { ok: true } : deps.probeShared(connection, instanceUid),
    flush: (instance, store, connection) => {
      const { database, inLine } = opened(connection);
      return inLine(() => deps.flush(instance, store, database));
    },
    clearStore: async (instanceUid, store) => deps.clear?.(instanceUid, store),
    close: async () => {
      await Promise.allSettled([...open.values()].map(({ database }) => database.close()));
      open.clear();
    },
  };
}

/** Runs at most so many works at a time, the others in the order in which they came. */
function createLine(max: number) {
  let running = 0;
  const waiting: Array<() => void> = [];
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= max) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
