// How does one instance's gateway run inside the stack's process?
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '#adapters/open-store.ts';
import { createOutbox } from '#adapters/outbox/outbox.ts';
import type { createDatabase } from '#adapters/postgres/database.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import type { DatabaseConnection, StoreConnection } from '#core/ports/backends.ts';
import type { Log, Metrics } from '#core/ports/clock.ts';
import type { Connection } from '#core/ports/connection.ts';
import type { Upstream } from '#core/ports/serving.ts';
import type { Snapshot } from '#core/snapshot.ts';
import { createGateway } from '../../../functions/gateway/app.ts';
import type { NodeDependencies } from '../../node/platform.ts';

export type Database = ReturnType<typeof createDatabase>;

export interface RuntimeDependencies extends NodeDependencies {
  readonly openDatabase: (connection: DatabaseConnection) => Database;
  /** Outboxes live here, one folder per instance. */
  readonly folder: string;
  readonly upstream: Upstream;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** What an instance's gateway is made from; with another of these it goes on serving, only another `connection` or `store` makes a new one. */
export interface Configuration {
  readonly connection: DatabaseConnection;
  readonly store: StoreConnection;
  readonly snapshot: Snapshot;
  /** `secret` → its entries, as text. */
  readonly secrets: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

export interface GatewayRuntime {
  readonly connection: DatabaseConnection;
  readonly store: StoreConnection;
  configure(configuration: Configuration): void;
  fetch(request: Request, connection: Connection): Response | Promise<Response>;
  /** Books everything that was settled, by whomever, and audits the counters; throws when the database is away. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Starts the gateway; what an earlier process left in the instance's outbox is booked first. */
export async function startRuntime(deps: RuntimeDependencies, first: Configuration): Promise<GatewayRuntime> {
  const { clock, ids, hash, random, timer, log, metrics, upstream } = deps;
  const { uid } = first.snapshot.instance;
  let current = first;
  const folder = join(deps.folder, uid);
  mkdirSync(folder, { recursive: true });
  const { store, isShared, close: closeStore } = openStore(first.store, { instanceUid: uid, clock, log });
  const outbox = createOutbox({ folder, log });
  const books = deps.openDatabase(first.connection);
  const epochs = isShared ? { epochs: books.epochs(uid) } : {};
  const ledger = createLedger({ instanceUid: uid, store, books, ...epochs, outbox, clock, ids, timer, log, metrics });
  try {
    await ledger.start();
  } catch (error) {
    await outbox.close();
    await closeStore();
    await books.close();
    throw error;
  }
  const app = createGateway({
    snapshots: { current: () => current.snapshot },
    credentials: { read: (secret, entry) => current.secrets.get(secret)?.[entry] },
    policies: books.policies(uid),
    ledger,
    upstream,
    clock,
    ids,
    hash,
    random,
    timer,
    log,
    metrics,
  });
  return {
    connection: first.connection,
    store: first.store,
    configure: (configuration) => {
      current = configuration;
    },
    fetch: (...call) => app.fetch(...call),
    flush: async () => {
      await ledger.flush();
      await ledger.tend();
    },
    close: async () => {
      await ledger.close();
      await outbox.close();
      await closeStore();
      await books.close();
    },
  };
}
