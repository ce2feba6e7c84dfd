// How does one process reach the databases and stores that instances name?
import type { Backends, DatabaseConnection, StoreConnection, StoreHealth } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Registry } from '#core/ports/registry.ts';

export interface BackendsDependencies {
  /** Opens a pool; nothing is dialled until it is asked. */
  readonly openDatabase: (connection: DatabaseConnection) => Registry & Books & { close(): Promise<void> };
  /** Books what this process has settled for the instance; nothing where the platform's gateways book for themselves. */
  readonly flush: (instanceUid: string) => Promise<void>;
}

/** Databases are opened once per connection and kept; `close` ends them all. */
export function createBackends(deps: BackendsDependencies): Backends & { close(): Promise<void> } {
  const open = new Map<string, ReturnType<BackendsDependencies['openDatabase']>>();
  return {
    database(connection) {
      const { host, port, username, password, dbname } = connection;
      const id = JSON.stringify([host, port, username, password, dbname]);
      const known = open.get(id) ?? deps.openDatabase(connection);
      open.set(id, known);
      return known;
    },
    probeStore: async (connection) => probe(connection),
    flush: (instanceUid) => deps.flush(instanceUid),
    close: async () => {
      await Promise.allSettled([...open.values()].map((database) => database.close()));
      open.clear();
    },
  };
}

function probe(connection: StoreConnection): StoreHealth {
  if (connection.type === 'memory') return { ok: true };
  const what = connection.type === 'redis' ? `Redis at ${connection.host}:${connection.port}` : connection.url;
  return {
    ok: false,
    reason: 'StoreUnreachable',
    message: `${what} is not spoken to by this version: it keeps counters in the gateway's own process only. Set the host entry of the store Secret to "memory" and run one gateway process.`,
  };
}
