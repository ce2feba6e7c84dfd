// How does one process reach the databases and stores that instances name?
import type { Backends, DatabaseConnection, StoreConnection, StoreHealth } from '#core/ports/backends.ts';
import type { Books } from '#core/ports/books.ts';
import type { Registry } from '#core/ports/registry.ts';

export interface BackendsDependencies {
  /** Opens a pool; nothing is dialled until it is asked. */
  readonly openDatabase: (connection: DatabaseConnection) => Registry & Books & { close(): Promise<void> };
  /** Books what this process has settled for the instance; nothing where the platform's gateways book for themselves. */
  readonly flush: (instanceUid: string) => Promise<void>;
  /** Asks a store that processes share; absent where this platform dials none. */
  readonly probeShared?: (
    connection: Exclude<StoreConnection, { type: 'memory' }>,
    instanceUid: string,
  ) => Promise<StoreHealth>;
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
    probeStore: (connection, instanceUid) => probe(deps, connection, instanceUid),
    flush: (instanceUid) => deps.flush(instanceUid),
    close: async () => {
      await Promise.allSettled([...open.values()].map((database) => database.close()));
      open.clear();
    },
  };
}

async function probe(
  { probeShared }: BackendsDependencies,
  connection: StoreConnection,
  instanceUid: string,
): Promise<StoreHealth> {
  if (connection.type === 'memory') return { ok: true };
  if (probeShared !== undefined) return probeShared(connection, instanceUid);
  const what = connection.type === 'redis' ? `Redis at ${connection.host}:${connection.port}` : connection.url;
  const message = `${what} cannot be asked from where reconcile runs: run reconcile as a Node process`;
  return { ok: false, reason: 'StoreUnreachable', message };
}
