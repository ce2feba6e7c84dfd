// Backends: the database and the store of an instance, whose addresses reconcile reads from Secrets.
import type { LedgerReader } from './ledger-rows.ts';
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

/** Values of `sslmode`, with libpq's meaning. */
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

/** An instance: the uid that its ledger knows, and the name that people know. */
export interface InstanceIdentity {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Backends {
  /**
   * The same for one piece of work, about so many members of instances: what it is answered takes its share of the
   * process's memory until `end`, and nothing that it asked continues after that: its calls reject, as do later ones.
   * Work whose servers answer with more than there is memory for fails alone (DatabaseUnreachable). `why`: the rest of
   * a sentence about the server.
   */
  begin(members: number): { readonly backends: Backends; end(why?: string): void };
  /** The database of this connection; a process reuses the same one. The first call connects. */
  database(connection: DatabaseConnection): Registry & LedgerReader;
  /** Whether the store really answers and can be trusted with counters. Gives up within 2 s. */
  probeStore(connection: StoreConnection, instanceUid: string): Promise<StoreHealth>;
  /**
   * Books all settlements of any process that are not booked yet, so that sums are true; then compares every counter of
   * the store with its sum.
   */
  flush(instance: InstanceIdentity, store: StoreConnection, database: DatabaseConnection): Promise<void>;
  /** Deletes all keys of a deleted instance from the store. */
  clearStore(instanceUid: string, store: StoreConnection): Promise<void>;
}

/** The database refused or did not answer. `message` says which and what to check, never a password. */
export class DatabaseUnreachable extends Error {
  override readonly name: string = 'DatabaseUnreachable';
}

/** The database answers and has no schema yet: reconcile makes the schema; the gateway has to wait for it. */
export class SchemaMissing extends DatabaseUnreachable {
  override readonly name = 'SchemaMissing';
}
