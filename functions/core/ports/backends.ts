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

export interface Server {
  readonly host: string;
  readonly port: number;
}

/** `memory`: one process only. `redis`: TCP (`rediss`: TLS). `upstash`: HTTPS, `password` is the token. */
export type StoreConnection =
  | { readonly type: 'memory' }
  | {
      readonly type: 'redis';
      readonly host: string;
      readonly port: number;
      /** The other servers that `host` lists. */
      readonly otherServers?: ReadonlyArray<Server>;
      /** The name of the primary; present: the servers are Sentinels. */
      readonly sentinelMaster?: string;
      /** The password of the Sentinels; absent: they have the login of Redis. */
      readonly sentinelPassword?: string;
      readonly password: string;
      /** The ACL user; absent: `default`. */
      readonly username?: string;
      readonly tls: boolean;
      /** PEM: the authorities that are trusted, in place of those of the platform. */
      readonly ca?: string;
      /** PEM: both or none. */
      readonly clientCertificate?: string;
      readonly clientKey?: string;
    }
  | { readonly type: 'upstash'; readonly url: string; readonly token: string };

/** A Redis that is reached by TCP. */
export type RedisAddress = Extract<StoreConnection, { type: 'redis' }>;

/** The servers that a Secret names: a Redis, nodes of a Cluster, or Sentinels. */
export const serversOf = ({ host, port, otherServers = [] }: RedisAddress): ReadonlyArray<Server> => [
  { host, port },
  ...otherServers,
];

/** The servers as a text, such as `a:6379,b:6379`. */
export const toServerText = (address: RedisAddress): string =>
  serversOf(address)
    .map(({ host, port }) => `${host}:${port}`)
    .join(',');

/** The name of a store in PostgreSQL: its address, without user and password. */
export function storeName(connection: StoreConnection): string {
  if (connection.type === 'memory') return 'memory';
  if (connection.type === 'upstash') return connection.url;
  const { sentinelMaster } = connection;
  return `redis ${toServerText(connection)}${sentinelMaster === undefined ? '' : ` ${sentinelMaster}`}`;
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

/** The place in a list at which the next work continues, as a share of the list: from 0 to less than 1. */
export interface Cursor {
  readonly from: number;
  move(to: number): void;
}

/** The backends that a flush uses, and the counter with which its audit begins. */
export interface FlushWork<Database> {
  readonly store: StoreConnection;
  readonly database: Database;
  readonly cursor: Cursor;
}

export interface Backends {
  /**
   * Returns backends for one piece of work, which has a share of the process's memory for replies. `members`: the
   * number of VirtualKeys, Users and Teams that the work reads; the share grows with it. If replies need more memory
   * than the share, only this work fails (DatabaseUnreachable). After `end`, all its calls reject. `why`: the end of a
   * message that begins with the name of the server.
   */
  begin(members: number): { readonly backends: Backends; end(why?: string): void };
  /** The database of this connection; a process reuses the same one. The first call connects. */
  database(connection: DatabaseConnection): Registry & LedgerReader;
  /** Checks whether the store replies and keeps counters safely. Takes at most 2 s. */
  probeStore(connection: StoreConnection, instanceUid: string): Promise<StoreHealth>;
  /**
   * Books the settlements of all processes that are not booked yet, so that sums contain them; then compares every
   * counter of the store with its sum, from the cursor on. If there are too many, the next flush continues.
   */
  flush(instance: InstanceIdentity, work: FlushWork<DatabaseConnection>): Promise<void>;
  /**
   * Does the daily work in each database that a flush has used since: makes days of ledger rows, drops old ones. At the
   * end of a resync, so that no audit waits for it. Databases for which the time was too short are the first next time.
   */
  maintain(): Promise<void>;
  /** Deletes all keys of a deleted instance from the store. */
  clearStore(instanceUid: string, store: StoreConnection): Promise<void>;
}

/** The database refused or did not reply. `message` has the address and what to check, never a password. */
export class DatabaseUnreachable extends Error {
  override readonly name: string = 'DatabaseUnreachable';
}

/** Another version of the operator made the schema of the database. */
export class SchemaMismatch extends DatabaseUnreachable {
  override readonly name = 'SchemaMismatch';
}

/** Another version of the operator wrote the counters of the counter store. */
export class LayoutMismatch extends Error {
  override readonly name = 'LayoutMismatch';
}

/** Whether a process of this version cannot use the database or the counter store until a person acts. */
export function isVersionMismatch(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error instanceof SchemaMismatch || error instanceof LayoutMismatch || isVersionMismatch(error.cause);
}

/** The database replies but has no schema yet: the reconciler creates it, and the gateway waits for it. */
export class SchemaMissing extends DatabaseUnreachable {
  override readonly name = 'SchemaMissing';
}
