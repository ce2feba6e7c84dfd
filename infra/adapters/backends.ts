// How does one process reach the databases and stores that instances name?
import type { Backends, DatabaseConnection, StoreConnection, StoreHealth } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Registry } from '#core/ports/registry.ts';

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
  const open = new Map<string, D>();
  const database = (connection: DatabaseConnection): D => {
    const { host, port, username, password, dbname } = connection;
    const id = JSON.stringify([host, port, username, password, dbname]);
    const known = open.get(id) ?? deps.openDatabase(connection);
    open.set(id, known);
    return known;
  };
  return {
    database,
    probeStore: async (connection, instanceUid) =>
      connection.type === 'memory' ? { ok: true } : deps.probeShared(connection, instanceUid),
    flush: (instanceUid, store, connection) => deps.flush(instanceUid, store, database(connection)),
    clearStore: async (instanceUid, store) => deps.clear?.(instanceUid, store),
    close: async () => {
      await Promise.allSettled([...open.values()].map((database) => database.close()));
      open.clear();
    },
  };
}
