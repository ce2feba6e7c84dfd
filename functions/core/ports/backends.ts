// Backends: the database and the counter store of an instance, whose addresses the reconciler reads from Secrets.
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
  /** PEM texts of the trusted authorities, or `system`: the authorities that the platform trusts. */
  readonly sslrootcert?: string;
  /** The client certificate and its private key, both PEM; both or none. */
  readonly sslcert?: string;
  readonly sslkey?: string;
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

/** The name of a store in PostgreSQL: its address, without user and password. */
export function storeName(connection: StoreConnection): string {
  if (connection.type === 'memory') return 'memory';
  return connection.type === 'upstash' ? connection.url : `redis ${connection.host}:${connection.port}`;
}

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

/** The place in a list where the next work continues, as a share of the list: from 0 to less than 1. */
export interface Cursor {
  readonly from: number;
  move(to: number): void;
}

export interface Flush<Database> {
  readonly store: StoreConnection;
  readonly database: Database;
  readonly cursor: Cursor;
}

export interface Backends {
  /**
   * Returns backends for one piece of work. `members`: the number of members of instances that the work is about.
   * Replies take the share of the work in the memory of the process until `end`. After `end`, all calls of the work
   * reject. If replies need more memory than the share, only this work fails (DatabaseUnreachable). `why`: the end of a
   * sentence about the server.
   */
  begin(members: number): { readonly backends: Backends; end(why?: string): void };
  /** The database of this connection; a process reuses the same one. The first call connects. */
  database(connection: DatabaseConnection): Registry & LedgerReader;
  /** Checks whether the store replies and keeps counters safely. Takes at most 2 s. */
  probeStore(connection: StoreConnection, instanceUid: string): Promise<StoreHealth>;
  /**
   * Books all settlements of any process that are not booked yet, so that sums are true; then compares every counter of
   * the store with its sum, from the cursor on. Of very many counters, the next flush continues with the rest.
   */
  flush(instance: InstanceIdentity, work: Flush<DatabaseConnection>): Promise<void>;
  /** Deletes all keys of a deleted instance from the store. */
  clearStore(instanceUid: string, store: StoreConnection): Promise<void>;
}

/** The database refused or did not reply. `message` has the address and what to check, never a password. */
export class DatabaseUnreachable extends Error {
  override readonly name: string = 'DatabaseUnreachable';
}

/** The database replies but has no schema yet: the reconciler creates it, and the gateway waits for it. */
export class SchemaMissing extends DatabaseUnreachable {
  override readonly name = 'SchemaMissing';
}
