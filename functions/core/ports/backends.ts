// Backends: the database and the store of an instance, whose addresses reconcile reads from Secrets.
import type { Books } from './books.ts';
import type { Registry } from './registry.ts';

export interface DatabaseConnection {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  /** Empty: none. */
  readonly password: string;
  readonly dbname: string;
  /** TLS in libpq's words. Absent: `prefer`, and no TLS to a loopback address. */
  readonly sslmode?: SslMode;
  /** PEM texts of the authorities that are trusted, or `system`: those that the platform trusts. */
  readonly sslrootcert?: string;
}

/** What `sslmode` may say, as libpq means it. */
export const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

export type SslMode = (typeof SSL_MODES)[number];

/** `memory`: one process only. `redis`: TCP (`rediss`: TLS). `upstash`: HTTPS, `password` is the token. */
export type StoreConnection =
  | { readonly type: 'memory' }
  | {
      readonly type: 'redis';
      readonly host: string;
      readonly port: number;
      readonly password: string;
      readonly tls: boolean;
    }
  | { readonly type: 'upstash'; readonly url: string; readonly token: string };

/** A store that processes share. */
export type SharedStoreConnection = Exclude<StoreConnection, { type: 'memory' }>;

export type StoreHealth =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly reason: 'StoreUnreachable' | 'StoreEvicts' | 'StoreNotShared';
      readonly message: string;
    };

export interface Backends {
  /** The database behind this connection; the same one is reused within the process. Nothing is dialled until it is asked. */
  database(connection: DatabaseConnection): Registry & Books;
  /** Whether the store really answers and can be trusted with counters. Gives up within 2 s. */
  probeStore(connection: StoreConnection, instanceUid: string): Promise<StoreHealth>;
  /**
   * Books what was settled and is not booked yet, by any process, so that sums are true; then compares every counter of the
   * store with its sum.
   */
  flush(instanceUid: string, store: StoreConnection, database: DatabaseConnection): Promise<void>;
  /** The instance is gone: none of its keys stays in the store. */
  clearStore(instanceUid: string, store: StoreConnection): Promise<void>;
}

/** The database refused or kept silent. `message` says which and what to check, never a password. */
export class DatabaseUnreachable extends Error {
  override readonly name: string = 'DatabaseUnreachable';
}

/** The database answers and has no schema yet: the gateway can do nothing with it, reconcile makes the schema. */
export class SchemaMissing extends DatabaseUnreachable {
  override readonly name = 'SchemaMissing';
}
