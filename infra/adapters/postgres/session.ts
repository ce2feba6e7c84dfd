// Sessions with one database: statements and transactions, with time limits for a silent database.
import pg from 'pg';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Millis } from '#core/ports/money.ts';
import type { WorkMemory } from '../backends/reply-memory.ts';
import {
  asConnectionError,
  ConnectionBroke,
  isBroken,
  toCallerError,
  toTimeout,
  toWorkEndedError,
} from './database-error.ts';
import type { MeteredClient } from './metered-client.ts';
import { openPool, type PoolDependencies } from './pool.ts';
import { MAX_ANSWER, MAX_LARGE_ANSWER, type ReplyMeter } from './reply-meter.ts';

/** The maximum silence of the database while a request waits: for a policy, sums, an epoch. */
export const GATEWAY_LIMIT: Millis = 1800;
/** The maximum silence for the reconciler and bookings, so that they end within 5 s (DESIGN 10, Time). */
export const BACKGROUND_LIMIT: Millis = 4500;

/** A statement, never a named one: a pooler in transaction mode runs each statement on another connection. */
export interface Statement {
  readonly text: string;
  /**
   * For very many rows: called with each JSON value when its row arrives. While rows arrive the database is not silent,
   * however long the statement takes.
   */
  readonly readJson?: (value: unknown) => unknown;
  /** Gets the size of the reply in memory, which is kept until the work ends (`withWorkMemory`). */
  readonly onBytes?: (bytes: number) => void;
}

/** Runs one statement; returns its rows. */
export type Query = <R extends pg.QueryResultRow>(
  statement: string | Statement,
  values?: ReadonlyArray<unknown>,
) => Promise<R[]>;

export interface Session {
  /**
   * Runs statements on one connection. If the database is silent for `limit`, the wait for a connection included,
   * DatabaseUnreachable is thrown and the connection dropped. `work` must be repeatable: it runs again if its
   * connection was dead. `work` never uses the session itself, since it could wait for the connection that it has.
   */
  run<T>(limit: Millis, work: (query: Query) => Promise<T>): Promise<T>;
  /** Like `run`, with one statement. */
  query<R extends pg.QueryResultRow>(limit: Millis, ...call: Parameters<Query>): Promise<R[]>;
  /**
   * Like `run`, in a transaction. The server also ends a statement at `limit`, and the transaction of a client that is
   * silent for 2 s (LEDGER 8): no statement continues after its limit, and a suspended process keeps no lock.
   */
  transaction<T>(limit: Millis, work: (query: Query) => Promise<T>): Promise<T>;
  /**
   * A session with the same connections for one piece of work, which has its own memory. At the end of the work, its
   * calls reject and their connections are dropped.
   */
  withWorkMemory(workMemory: WorkMemory): Session;
  /** The memory for replies; absent: only the limit of each statement applies. */
  readonly workMemory: WorkMemory | undefined;
  /** Ends the connections; a later call connects again. */
  disconnect(): Promise<void>;
  close(): Promise<void>;
}

export function createSession(connection: DatabaseConnection, deps: PoolDependencies): Session {
  const pool = openPool(connection, deps);
  const usedClients = new WeakSet<pg.PoolClient>();
  return createSessionOn({ connection, pool, usedClients }, undefined);
}

interface SessionPool {
  readonly connection: DatabaseConnection;
  readonly pool: ReturnType<typeof openPool>;
  /** Connections that were used before. */
  readonly usedClients: WeakSet<pg.PoolClient>;
}

function createSessionOn(pooled: SessionPool, workMemory: WorkMemory | undefined): Session {
  const { connection, pool, usedClients } = pooled;
  const run = async <T>(limit: Millis, work: (query: Query) => Promise<T>): Promise<T> => {
    const idleTimeout = createIdleTimeout(limit, workMemory?.signal);
    let client: MeteredClient | undefined;
    const attempt = async (): Promise<T> => {
      const connected = await asConnectionError(pool.connect());
      if (idleTimeout.isOver()) return connected.release() as never;
      client = connected;
      const wasUsed = usedClients.has(connected);
      usedClients.add(connected);
      try {
        return await work(toQuery(connected, idleTimeout, workMemory));
      } catch (error) {
        if (idleTimeout.isOver() || !wasUsed || !isBroken(error)) throw error;
        // The server ended the connection while it was idle in the pool (a restart, a failover): connect again.
        client = undefined;
        connected.release(true);
        return attempt();
      }
    };
    const working = attempt();
    // After the limit, the outcome of the work is ignored.
    working.catch(() => undefined);
    const timeout = idleTimeout.over.then(() => {
      throw workMemory?.signal.aborted
        ? toWorkEndedError(connection, workMemory.signal.reason)
        : toTimeout(connection, limit);
    });
    try {
      const value = await Promise.race([working, timeout]);
      client?.release(isInTransaction(client));
      return value;
    } catch (error) {
      client?.release(idleTimeout.isOver() || isOfConnection(error) || isInTransaction(client));
      throw toCallerError(error, connection);
    } finally {
      idleTimeout.stop();
    }
  };

  return {
    workMemory,
    run,
    query: (limit, ...call) => run(limit, (query) => query(...call)),
    transaction: (limit, work) => run(limit, (query) => inTransaction(limit, query, work)),
    withWorkMemory: (other) => createSessionOn(pooled, other),
    disconnect: pool.disconnect,
    close: async () => {
      // A frozen server does not close its connections.
      const closeTimeout = createIdleTimeout(1000);
      await Promise.race([pool.end().catch(() => undefined), closeTimeout.over]);
      closeTimeout.stop();
    },
  };
}

type IdleTimeout = ReturnType<typeof createIdleTimeout>;

/** The maximum time of one statement, as a multiple of `limit`: a statement whose rows come slowly ends too. */
const MAX_LIMITS = 3;

/** The interval at which the idle time is measured. */
const STEP: Millis = 250;

/** A timeout that is over if the server sends nothing for `limit`, or if the signal aborts. */
function createIdleTimeout(limit: Millis, signal?: AbortSignal) {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  let lastDataAt = Date.now();
  let startedAt = lastDataAt;
  let isOver = signal?.aborted === true;
  let timer: NodeJS.Timeout | undefined;
  const end = (): void => {
    isOver = true;
    resolve();
  };
  const wait = (left: Millis): void => {
    const due = Date.now() + Math.min(left, STEP);
    const check = (): void => {
      // The timer is late if our own event loop was blocked. During this time no socket was read, so it does not count.
      const late = Math.max(0, Date.now() - due);
      lastDataAt += late;
      startedAt += late;
      const more = Math.min(lastDataAt + limit, startedAt + MAX_LIMITS * limit) - Date.now();
      if (more <= 0) end();
      else wait(more);
    };
    timer = setTimeout(check, Math.min(left, STEP));
  };
  if (isOver) resolve();
  else wait(limit);
  signal?.addEventListener('abort', end, { once: true });
  return {
    over,
    isOver: () => isOver,
    /** A statement begins. */
    begin: (): void => {
      startedAt = Date.now();
    },
    touch: (): void => {
      lastDataAt = Date.now();
    },
    stop: (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
    },
  };
}

/** The maximum time for which a silent process keeps its locks. */
const IDLE: Millis = 2000;

async function inTransaction<T>(limit: Millis, query: Query, work: (query: Query) => Promise<T>): Promise<T> {
  const bounds = `set local statement_timeout = ${limit}; set local idle_in_transaction_session_timeout = ${IDLE}`;
  // The database's own default may be stricter: then a transaction that waited for a lock would not see what the one
  // before it has committed, and a recount would lose a booking.
  await query(`begin isolation level read committed; ${bounds}`);
  let value: T;
  try {
    value = await work(query);
  } catch (error) {
    // The error of a failed rollback is ignored; its connection is still in the transaction, so it is dropped.
    await query('rollback').catch(() => undefined);
    throw error;
  }
  await query('commit');
  return value;
}

function toQuery(client: MeteredClient, { begin, touch }: IdleTimeout, workMemory: WorkMemory | undefined): Query {
  const { meter } = client;
  return async <R extends pg.QueryResultRow>(statement: string | Statement, values?: ReadonlyArray<unknown>) => {
    const { text, readJson, onBytes }: Statement = typeof statement === 'string' ? { text: statement } : statement;
    const read = (json: string): unknown => {
      meter.json(json);
      const value: unknown = JSON.parse(json);
      if (readJson === undefined) return value;
      touch();
      return readJson(value);
    };
    const replyMemory = {};
    const max = readJson === undefined ? MAX_ANSWER : MAX_LARGE_ANSWER;
    begin();
    meter.begin(max, workMemory && (({ now }) => workMemory.take(replyMemory, now)));
    try {
      const call = client.query<R>({ text, types: parsersOf(read, meter), ...(values && { values: [...values] }) });
      const { rows } = await asConnectionError(call);
      touch();
      const { kept: bytes } = meter.end();
      onBytes?.(bytes);
      return rows;
    } finally {
      meter.end();
      if (workMemory?.signal.aborted === false) workMemory.take(replyMemory, 0);
    }
  };
}

const { BOOL, INT4, FLOAT8, JSON: JSON_TEXT, JSONB } = pg.types.builtins;
/** The type `text[]`, and the maximum size of such a list: the client library parses it character by character. */
const [TEXTS, MAX_LIST] = [1009, 1024 * 1024];

/**
 * Parsers for the types of our statements. The server names the type of each value; a value of any other type stays a
 * text, since the library would parse a list of dates at one megabyte per second.
 */
function parsersOf(readJson: (text: string) => unknown, meter: ReplyMeter): pg.CustomTypesConfig {
  const parsers = new Map<number, (text: string) => unknown>();
  for (const type of [JSON_TEXT, JSONB]) parsers.set(type, readJson);
  for (const type of [BOOL, INT4, FLOAT8]) parsers.set(type, pg.types.getTypeParser(type));
  const parseTexts = pg.types.getTypeParser(TEXTS);
  parsers.set(TEXTS, (text) => {
    meter.json(text, MAX_LIST);
    return parseTexts(text);
  });
  return { getTypeParser: (type: number) => parsers.get(type) ?? meter.text } as pg.CustomTypesConfig;
}

/** Whether the connection is still in a transaction, so that it cannot be used again. */
const isInTransaction = (client: pg.PoolClient): boolean => client.getTransactionStatus() !== 'I';

/** Whether the connection itself failed, not only a statement. */
function isOfConnection(error: unknown): boolean {
  return (
    isBroken(error) ||
    error instanceof ConnectionBroke ||
    (error instanceof pg.DatabaseError && error.severity !== 'ERROR')
  );
}
