// How is one database spoken to, and how long may it keep silent?
import pg from 'pg';
import type { DatabaseConnection, SslMode } from '#core/ports/backends.ts';
import type { Log } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import { ConnectionBroke, isBroken, NO_TLS, onConnection, toRefusal, toSilence } from './refusal.ts';

interface Statement {
  /** Prepares it once per connection. */
  readonly name?: string;
  readonly text: string;
}

/** Very many rows: each is told as it arrives, and while they arrive the database is not silent, however long it takes. */
export type Stream = <R extends pg.QueryResultRow>(
  statement: Statement & {
    /** Applied to each JSON value as its row arrives. */
    readonly readJson: (value: unknown) => unknown;
    readonly onRow: (row: R) => void;
  },
  values: ReadonlyArray<unknown>,
) => Promise<void>;

/** One statement; answers its rows. */
export type Query = <R extends pg.QueryResultRow>(
  statement: string | Statement,
  values?: ReadonlyArray<unknown>,
) => Promise<R[]>;

export interface Session {
  /**
   * Statements on one connection. When the database keeps silent for `limit`, the wait for a connection included,
   * DatabaseUnreachable is thrown and the connection dropped. `work` may run again when its connection turns out to be
   * dead: it must be repeatable. `work` never asks the session itself, or it could wait for a connection that it holds.
   */
  run<T>(limit: Millis, work: (query: Query, stream: Stream) => Promise<T>): Promise<T>;
  /**
   * The same between `begin` and `commit`. The server too gives up a statement at `limit`, and the transaction of a client
   * that is silent for 2 s (LEDGER 8): nothing goes on behind our back, and a process that sleeps holds no lock.
   */
  transaction<T>(limit: Millis, work: (query: Query) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const CONNECTIONS = 8;
const CONNECT_LIMIT: Millis = 5000;
const NOT_VERIFIABLE =
  'this platform verifies by its own authorities only: sslrootcert must be `system`, sslmode verify-full';

export interface SessionDependencies {
  readonly log: Log;
  /** The platform lets nobody say which authorities to trust (Workers): a connection that names some is refused. */
  readonly trustsSystemOnly?: boolean;
}

/**
 * A pool that dials when first asked, with TLS as the connection says (libpq's `sslmode`), never with less. The PG* variables
 * of the environment and ~/.pgpass are not read.
 */
export function createSession(connection: DatabaseConnection, deps: SessionDependencies): Session {
  const mode = modeOf(connection);
  let pool = createPool(connection, tlsOf(mode, connection.sslrootcert), deps.log);
  const seen = new WeakSet<pg.PoolClient>();
  const isVerifiable = deps.trustsSystemOnly !== true || [undefined, 'system'].includes(connection.sslrootcert);

  const connect = async (): Promise<pg.PoolClient> => {
    const used = pool;
    if (!isVerifiable) throw new Error(NOT_VERIFIABLE);
    try {
      return await used.connect();
    } catch (error) {
      if (mode !== 'prefer' || !(error instanceof Error && error.message === NO_TLS)) throw error;
      // Many calls learn it at once, and one makes the new pool. The old one has no connection to end, only calls that wait to learn it.
      if (used === pool) pool = createPool(connection, false, deps.log);
      return pool.connect();
    }
  };

  const run = async <T>(limit: Millis, work: (query: Query, stream: Stream) => Promise<T>): Promise<T> => {
    let client: pg.PoolClient | undefined;
    let late = false;
    let timer: NodeJS.Timeout | undefined;
    let heard = Date.now();
    const silence = new Promise<never>((_, reject) => {
      const look = () => {
        const left = heard + limit - Date.now();
        if (left > 0) {
          timer = setTimeout(look, left);
          return;
        }
        late = true;
        reject(toSilence(connection, limit));
      };
      timer = setTimeout(look, limit);
    });
    const hear = () => {
      heard = Date.now();
    };
    const attempt = async (): Promise<T> => {
      const connected = await onConnection(connect());
      if (late) return connected.release() as never;
      client = connected;
      const isOld = seen.has(connected);
      seen.add(connected);
      try {
        return await work(toQuery(connected, hear), toStream(connected, hear));
      } catch (error) {
        if (late || !isOld || !isBroken(error)) throw error;
        // The server ended it while it lay in the pool (a restart, a failover): dial anew.
        client = undefined;
        connected.release(true);
        return attempt();
      }
    };
    const working = attempt();
    // After the limit nobody listens to how it ended.
    working.catch(() => undefined);
    try {
      const value = await Promise.race([working, silence]);
      client?.release();
      return value;
    } catch (error) {
      client?.release(late || isOfConnection(error));
      throw toRefusal(error, connection);
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    run,
    transaction: (limit, work) => run(limit, (query) => inTransaction(limit, query, work)),
    close: async () => {
      // A frozen server does not say goodbye.
      let timer: NodeJS.Timeout | undefined;
      const patience = new Promise((resolve) => {
        timer = setTimeout(resolve, 1000);
      });
      await Promise.race([pool.end().catch(() => undefined), patience]);
      clearTimeout(timer);
    },
  };
}

/** What a lock is worth to a process that holds it and falls silent. */
const IDLE: Millis = 2000;

async function inTransaction<T>(limit: Millis, query: Query, work: (query: Query) => Promise<T>): Promise<T> {
  const bounds = `set local statement_timeout = ${limit}; set local idle_in_transaction_session_timeout = ${IDLE}`;
  await query(`begin; ${bounds}`);
  let value: T;
  try {
    value = await work(query);
  } catch (error) {
    await query('rollback');
    throw error;
  }
  await query('commit');
  return value;
}

/** Hyperdrive is inside the isolate: what leaves it is encrypted. */
function modeOf({ host, sslmode }: DatabaseConnection): SslMode {
  if (host.startsWith('/') || host.endsWith('.hyperdrive.local')) return 'disable';
  const isLoopback = host === 'localhost' || host === '::1' || host.startsWith('127.');
  return sslmode ?? (isLoopback ? 'disable' : 'prefer');
}

/** `require` verifies where authorities are named, as libpq's does. */
function tlsOf(mode: SslMode, sslrootcert: string | undefined): pg.ConnectionConfig['ssl'] {
  if (mode === 'disable') return false;
  if (mode === 'prefer' || sslrootcert === undefined) return { rejectUnauthorized: false };
  const authorities = sslrootcert === 'system' ? {} : { ca: sslrootcert };
  return mode === 'verify-full' ? authorities : { ...authorities, checkServerIdentity: () => undefined };
}

function createPool(connection: DatabaseConnection, ssl: pg.ConnectionConfig['ssl'], log: Log): pg.Pool {
  const { host, port, username, password, dbname } = connection;
  const pool = new pg.Pool({
    host,
    port,
    user: username,
    database: dbname,
    // A function, so that an empty password is not looked up in the environment.
    password: () => password,
    ssl,
    application_name: 'gateway-operator',
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_LIMIT,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    allowExitOnIdle: true,
  });
  pool.on('error', (error) => log.warn('an idle database connection broke', { host, port, error: error.message }));
  // A checked-out client that breaks between two statements emits to nobody else; the next statement tells.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

function toQuery(client: pg.PoolClient, hear: () => void): Query {
  return async <R extends pg.QueryResultRow>(statement: string | Statement, values?: ReadonlyArray<unknown>) => {
    const said = typeof statement === 'string' ? { text: statement } : statement;
    const result = await onConnection(client.query<R>(values === undefined ? said : { ...said, values: [...values] }));
    hear();
    return result.rows;
  };
}

function toStream(client: pg.PoolClient, hear: () => void): Stream {
  return ({ text, readJson, onRow }, values) => {
    const query = new pg.Query({ text, values: [...values], types: readingJson(readJson) });
    const ended = new Promise<void>((resolve, reject) => {
      query.on('row', (row) => {
        hear();
        onRow(row);
      });
      query.on('end', () => resolve());
      query.on('error', reject);
    });
    client.query(query);
    return onConnection(ended);
  };
}

const JSON_TYPES: ReadonlySet<number> = new Set([pg.types.builtins.JSON, pg.types.builtins.JSONB]);

function readingJson(read: (value: unknown) => unknown): pg.CustomTypesConfig {
  return {
    getTypeParser: (type: number, format?: 'text' | 'binary') =>
      JSON_TYPES.has(type) ? (text: string) => read(JSON.parse(text)) : pg.types.getTypeParser(type, format),
  } as pg.CustomTypesConfig;
}

/** Not only a statement failed, or what was done beside it: the connection did. */
function isOfConnection(error: unknown): boolean {
  return error instanceof ConnectionBroke || (error instanceof pg.DatabaseError && error.severity !== 'ERROR');
}
