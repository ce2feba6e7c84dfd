// Sessions with one database: statements and transactions, and how long the database may keep silent.
import pg from 'pg';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Millis } from '#core/ports/money.ts';
import { openPool, type PoolDependencies } from './pool.ts';
import { ConnectionBroke, isBroken, onConnection, toRefusal, toSilence } from './refusal.ts';

/** The database may keep silent for so long where a request asks: for a policy, sums, an epoch. */
export const GATEWAY_LIMIT: Millis = 1800;
/** The same of reconcile and bookings: 5 s (DESIGN 10, Time). */
export const BACKGROUND_LIMIT: Millis = 4500;

/** A statement has no name: a pooler in transaction mode gives its next one to another connection of the server. */
export interface Statement {
  readonly text: string;
  /** For very many rows: applied to each JSON value as its row arrives. While rows arrive the database is not silent, however long it takes. */
  readonly readJson?: (value: unknown) => unknown;
}

/** One statement; answers its rows. */
export type Query = <R extends pg.QueryResultRow>(
  statement: string | Statement,
  values?: ReadonlyArray<unknown>,
) => Promise<R[]>;

export type Session = ReturnType<typeof createSession>;

export function createSession(connection: DatabaseConnection, deps: PoolDependencies) {
  const pool = openPool(connection, deps);
  const used = new WeakSet<pg.PoolClient>();

  /**
   * Statements on one connection. When the database keeps silent for `limit`, the wait for a connection included,
   * DatabaseUnreachable is thrown and the connection dropped. `work` may run again when its connection turns out to be
   * dead: it must be repeatable. `work` never asks the session itself, or it could wait for a connection that it holds.
   */
  const run = async <T>(limit: Millis, work: (query: Query) => Promise<T>): Promise<T> => {
    const silence = createSilence(limit);
    let client: pg.PoolClient | undefined;
    const attempt = async (): Promise<T> => {
      const connected = await onConnection(pool.connect());
      if (silence.isOver()) return connected.release() as never;
      client = connected;
      const wasUsed = used.has(connected);
      used.add(connected);
      try {
        return await work(toQuery(connected, silence.hear));
      } catch (error) {
        if (silence.isOver() || !wasUsed || !isBroken(error)) throw error;
        // The server ended it while it lay in the pool (a restart, a failover): dial anew.
        client = undefined;
        connected.release(true);
        return attempt();
      }
    };
    const working = attempt();
    // After the limit its outcome is of no use.
    working.catch(() => undefined);
    try {
      const value = await Promise.race([
        working,
        silence.over.then(() => Promise.reject(toSilence(connection, limit))),
      ]);
      client?.release(isInTransaction(client));
      return value;
    } catch (error) {
      client?.release(silence.isOver() || isOfConnection(error) || isInTransaction(client));
      throw toRefusal(error, connection);
    } finally {
      silence.stop();
    }
  };

  return {
    run,
    /** The same with one statement. */
    query: <R extends pg.QueryResultRow>(limit: Millis, ...call: Parameters<Query>) =>
      run(limit, (query) => query<R>(...call)),
    /**
     * The same between `begin` and `commit`. The server too gives up a statement at `limit`, and the transaction of a client
     * that is silent for 2 s (LEDGER 8): nothing goes on behind our back, and a process that sleeps holds no lock.
     */
    transaction: <T>(limit: Millis, work: (query: Query) => Promise<T>) =>
      run(limit, (query) => inTransaction(limit, query, work)),
    close: async () => {
      // A frozen server does not say goodbye.
      const goodbye = createSilence(1000);
      await Promise.race([pool.end().catch(() => undefined), goodbye.over]);
      goodbye.stop();
    },
  };
}

/** A silence is over when nothing was heard for `limit`. */
function createSilence(limit: Millis) {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  let heard = Date.now();
  let isOver = false;
  let timer: NodeJS.Timeout;
  const look = (): void => {
    const left = heard + limit - Date.now();
    isOver = left <= 0;
    if (isOver) resolve();
    else timer = setTimeout(look, left);
  };
  timer = setTimeout(look, limit);
  return {
    over,
    isOver: () => isOver,
    hear: (): void => {
      heard = Date.now();
    },
    stop: () => clearTimeout(timer),
  };
}

/** The longest time that a silent process keeps its locks. */
const IDLE: Millis = 2000;

async function inTransaction<T>(limit: Millis, query: Query, work: (query: Query) => Promise<T>): Promise<T> {
  const bounds = `set local statement_timeout = ${limit}; set local idle_in_transaction_session_timeout = ${IDLE}`;
  await query(`begin; ${bounds}`);
  let value: T;
  try {
    value = await work(query);
  } catch (error) {
    // A rollback that fails tells nothing new; its connection is still in the transaction, so it is dropped.
    await query('rollback').catch(() => undefined);
    throw error;
  }
  await query('commit');
  return value;
}

function toQuery(client: pg.PoolClient, hear: () => void): Query {
  return async <R extends pg.QueryResultRow>(statement: string | Statement, values?: ReadonlyArray<unknown>) => {
    const { readJson, ...asked }: Statement = typeof statement === 'string' ? { text: statement } : statement;
    const read = (text: string) => {
      hear();
      return readJson?.(JSON.parse(text));
    };
    const types = readJson === undefined ? {} : { types: readingJson(read) };
    const call = client.query<R>({ ...asked, ...types, ...(values !== undefined && { values: [...values] }) });
    const { rows } = await onConnection(call);
    hear();
    return rows;
  };
}

const JSON_TYPES: ReadonlySet<number> = new Set([pg.types.builtins.JSON, pg.types.builtins.JSONB]);

function readingJson(read: (text: string) => unknown): pg.CustomTypesConfig {
  return {
    getTypeParser: (type: number, format?: 'text' | 'binary') =>
      JSON_TYPES.has(type) ? read : pg.types.getTypeParser(type, format),
  } as pg.CustomTypesConfig;
}

/** A connection in a transaction, of which whoever gets it next knows nothing. */
const isInTransaction = (client: pg.PoolClient): boolean => client.getTransactionStatus() !== 'I';

/** Not only a statement failed, or what was done beside it: the connection did. */
function isOfConnection(error: unknown): boolean {
  return error instanceof ConnectionBroke || (error instanceof pg.DatabaseError && error.severity !== 'ERROR');
}
