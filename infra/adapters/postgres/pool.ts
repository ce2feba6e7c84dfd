// The pool of connections to one database, with TLS as `sslmode` requires it.
import { createSecureContext } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { cutText } from '#core/json/text.ts';
import type { DatabaseConnection, SslMode } from '#core/ports/backends.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Log } from '#core/ports/telemetry.ts';
import { MAX_ROUNDS } from './authentication.ts';
import { NO_TLS } from './database-error.ts';
import { Client, type MeteredClient } from './metered-client.ts';

const CONNECTIONS = 8;
const CONNECT_TIMEOUT: Millis = 5000;
const NOT_VERIFIABLE =
  'this platform trusts only its own certificate authorities, and has no client certificates: set sslrootcert to `system` and sslmode to verify-full';

export interface PoolDependencies {
  readonly log: Log;
  /**
   * Reads the login (user, password, certificates) again, after a connection that failed; its other values are not
   * used. Throws or returns the same while there is no other. Absent: it never changes.
   */
  readonly readLogin?: (() => DatabaseConnection) | undefined;
  /** The platform trusts its own authorities only (Workers): a connection with other authorities is refused. */
  readonly trustsSystemOnly?: boolean;
}

export interface MeteredPool {
  connect(): Promise<MeteredClient>;
  /** Ends the connections; a later call connects again. */
  disconnect(): Promise<void>;
  end(): Promise<void>;
}

/**
 * Connects with the first call, with TLS as `sslmode` requires (libpq's meaning), never with weaker security. The PG*
 * variables of the environment and ~/.pgpass are not read.
 */
export function openPool(first: DatabaseConnection, deps: PoolDependencies): MeteredPool {
  const mode = modeOf(first);
  const { sslrootcert, sslcert } = first;
  const isVerifiable =
    deps.trustsSystemOnly !== true || ([undefined, 'system'].includes(sslrootcert) && sslcert === undefined);
  const { host, port } = first;
  let connection = first;
  let isPlain = false;
  let pool: pg.Pool | undefined;
  const currentPool = (): pg.Pool => {
    pool ??= createPool(connection, isPlain ? false : tlsOf(mode, connection), deps);
    return pool;
  };
  const disconnect = async (): Promise<void> => {
    const previousPool = pool;
    pool = undefined;
    // A pool that has ended never serves its waiting calls. If there are any, its connections end when they are idle.
    if (previousPool?.waitingCount === 0) await previousPool.end();
  };
  /**
   * Whether another login was read and the server has accepted it: only then it replaces the present one, whose
   * connections end when they are idle. Throws if the server refuses it too.
   */
  const renewLogin = async (): Promise<boolean> => {
    const next = { ...connection, ...readLogin(deps) };
    if (isDeepStrictEqual(next, connection)) return false;
    const nextPool = createPool(next, isPlain ? false : tlsOf(mode, next), deps);
    try {
      (await connect(nextPool)).release();
    } catch (error) {
      nextPool.end().catch(() => undefined);
      throw error;
    }
    // A connection that breaks while it ends must not end the process.
    disconnect().catch(() => undefined);
    [connection, pool] = [next, nextPool];
    deps.log.info('the login of the database has changed', { host, port });
    return true;
  };
  let renewing: Promise<boolean> | undefined;
  const renewLoginOnce = (): Promise<boolean> => {
    renewing ??= renewLogin().finally(() => {
      renewing = undefined;
    });
    return renewing;
  };
  return {
    connect: async () => {
      if (!isVerifiable) throw new Error(NOT_VERIFIABLE);
      const used = connection;
      try {
        return await connect(currentPool());
      } catch (error) {
        // Servers and poolers refuse a login with many different errors, so each one leads to the present login.
        if (mode !== 'prefer' || !(error instanceof Error && error.message === NO_TLS)) {
          if (connection !== used || (await renewLoginOnce())) return connect(currentPool());
          throw error;
        }
        // Many concurrent calls get this error, and the first makes the new pool. The old pool has no connections to
        // end, only calls that will get the same error.
        if (!isPlain) {
          isPlain = true;
          pool = undefined;
          const message =
            'the database offers no TLS, so the connection is plain text; `sslmode: require` would refuse it';
          deps.log.warn(message, { host, port });
        }
        return connect(currentPool());
      }
    },
    disconnect,
    end: async () => pool?.end(),
  };
}

/** The parts of a connection that a rotation changes. An absent certificate stays absent. */
function readLogin({ readLogin: read }: PoolDependencies): Partial<DatabaseConnection> | undefined {
  try {
    const found = read?.();
    if (found === undefined) return undefined;
    const { username, password, sslrootcert, sslcert, sslkey } = found;
    return {
      username,
      password,
      ...(sslrootcert && { sslrootcert }),
      ...(sslcert && { sslcert }),
      ...(sslkey && { sslkey }),
    };
  } catch {
    // The kubelet is writing the files, or the Secret lacks a key.
    return undefined;
  }
}

/** The pool makes connections of this class. */
const connect = async (pool: pg.Pool): Promise<MeteredClient> => (await pool.connect()) as MeteredClient;

/** Hyperdrive is inside the isolate; its own connection to the database is encrypted. */
function modeOf({ host, sslmode }: DatabaseConnection): SslMode {
  if (host.startsWith('/') || host.endsWith('.hyperdrive.local')) return 'disable';
  const isLoopback = host === 'localhost' || host === '::1' || host.startsWith('127.');
  return sslmode ?? (isLoopback ? 'disable' : 'prefer');
}

/**
 * With `sslrootcert`, `require` verifies the certificate, as in libpq. Certificates are read once for all connections
 * of the pool.
 */
function tlsOf(mode: SslMode, { sslrootcert, sslcert, sslkey }: DatabaseConnection): pg.ConnectionConfig['ssl'] {
  if (mode === 'disable') return false;
  const ca = sslrootcert === 'system' ? undefined : sslrootcert;
  const files = { ...(ca && { ca }), ...(sslcert && { cert: sslcert }), ...(sslkey && { key: sslkey }) };
  const secureContext = Object.keys(files).length === 0 ? {} : { secureContext: createSecureContext(files) };
  if (mode === 'prefer' || sslrootcert === undefined) return { ...secureContext, rejectUnauthorized: false };
  return mode === 'verify-full' ? secureContext : { ...secureContext, checkServerIdentity: () => undefined };
}

function createPool(
  connection: DatabaseConnection,
  ssl: pg.ConnectionConfig['ssl'],
  { log }: PoolDependencies,
): pg.Pool {
  const { host, port, username, password, dbname } = connection;
  // The types of the library leave this option out.
  const rounds: object = { scramMaxIterations: MAX_ROUNDS };
  const pool = new pg.Pool({
    ...rounds,
    Client,
    host,
    port,
    user: username,
    database: dbname,
    // A function, so that an empty password is not looked up in the environment.
    password: () => password,
    ssl,
    application_name: 'gateway-operator',
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  pool.on('error', (error) =>
    log.warn('an idle database connection broke', { host, port, error: cutText(error.message) }),
  );
  // A client in use that breaks between two statements has no other listener; its next statement fails.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}
