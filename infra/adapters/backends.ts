// Backends of one process: the databases and stores that instances name, each database opened once.
import type { Backends, DatabaseConnection, StoreConnection, StoreHealth } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Registry } from '#core/ports/registry.ts';

/** Of one database at a time: half of its connections, so that no question waits for the stores of others. */
const FLUSHES = 4;

type Openable = Registry & Books & { close(): Promise<void> };

export interface BackendsDependencies<D extends Openable> {
  /** Opens a pool; nothing is dialled until it is asked. */
  readonly openDatabase: (connection: DatabaseConnection) => D;
  /** Books what the instance has settled and audits its store; nothing where this platform dials no store. */
  readonly flush: (instanceUid: string, store: StoreConnection, database: D) => Promise<void>;
  /** Absent where this platform dials no store. */
  readonly clear?: (instanceUid: string, store: StoreConnection) => Promise<void>;
  /** Asks a store that processes share. */
  readonly probeShared: (
    connection: Exclude<StoreConnection, { type: 'memory' }>,
    instanceUid: string,
  ) => Promise<StoreHealth>;
}

/** Databases are opened once per connection and kept; `close` ends them all. */
export function createBackends<D extends Openable>(
  deps: BackendsDependencies<D>,
): Backends & { close(): Promise<void> } {
  const open = new Map<string, { readonly database: D; readonly inLine: ReturnType<typeof createLine> }>();
  const opened = (connection: DatabaseConnection) => {
    const { host, port, username, password, dbname, sslmode, sslrootcert } = connection;
    const id = JSON.stringify([host, port, username, password, dbname, sslmode, sslrootcert]);
    const one = open.get(id) ?? { database: deps.openDatabase(connection), inLine: createLine(FLUSHES) };
    open.set(id, one);
    return one;
  };
  return {
    database: (connection) => opened(connection).database,
    probeStore: async (connection, instanceUid) =>
      connection.type === 'memory' ? { ok: true } : deps.probeShared(connection, instanceUid),
    flush: (instanceUid, store, connection) => {
      const { database, inLine } = opened(connection);
      return inLine(() => deps.flush(instanceUid, store, database));
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
