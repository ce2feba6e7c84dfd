// Sessions with one database: statements and transactions, and how long the database may keep silent.
import pg from 'pg';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Millis } from '#core/ports/money.ts';
import type { MemoryShare } from '../backends/reply-memory.ts';
import { ConnectionBroke, isBroken, onConnection, toEnd, toRefusal, toTimeout } from './database-error.ts';
import type { MeteredClient } from './metered-client.ts';
import { openPool, type PoolDependencies } from './pool.ts';
import { MAX_ANSWER, MAX_LARGE_ANSWER, type ReplyMeter } from './reply-meter.ts';

/** The database may keep silent for so long where a request asks: for a policy, sums, an epoch. */
export const GATEWAY_LIMIT: Millis = 1800;
/** The same of reconcile and bookings: 5 s (DESIGN 10, Time). */
export const BACKGROUND_LIMIT: Millis = 4500;

/** A statement has no name: a pooler in transaction mode gives its next one to another connection of the server. */
export interface Statement {
  readonly text: string;
  /**
   * For very many rows: applied to each JSON value as its row arrives. While rows arrive the database is not silent,
   * however long it takes.
   */
  readonly readJson?: (value: unknown) => unknown;
  /** Hears how many bytes the answer takes that is kept until the work ends (`within`). */
  readonly kept?: (bytes: number) => void;
}

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
  run<T>(limit: Millis, work: (query: Query) => Promise<T>): Promise<T>;
  /** The same with one statement. */
  query<R extends pg.QueryResultRow>(limit: Millis, ...call: Parameters<Query>): Promise<R[]>;
  /**
   * The same between `begin` and `commit`. The server too gives up a statement at `limit`, and the transaction of a
   * client that is silent for 2 s (LEDGER 8): nothing continues behind our back, and a process that sleeps holds no
   * lock.
   */
  transaction<T>(limit: Millis, work: (query: Query) => Promise<T>): Promise<T>;
  /**
   * The same connections, for work that may take a share of memory and that ends: then its calls reject, and their
   * connections are dropped.
   */
  within(share: MemoryShare): Session;
  /** The share that answers take; absent: any that a limit of one statement allows. */
  readonly share: MemoryShare | undefined;
  /** Ends the connections; a later call dials anew. */
  rest(): Promise<void>;
  close(): Promise<void>;
}

export function createSession(connection: DatabaseConnection, deps: PoolDependencies): Session {
  const pool = openPool(connection, deps);
  const used = new WeakSet<pg.PoolClient>();
  return createView({ connection, pool, used }, undefined);
}

interface SessionPool {
  readonly connection: DatabaseConnection;
  readonly pool: ReturnType<typeof openPool>;
  /** Connections that were used before. */
  readonly used: WeakSet<pg.PoolClient>;
}

function createView(pooled: SessionPool, share: MemoryShare | undefined): Session {
  const { connection, pool, used } = pooled;
  const run = async <T>(limit: Millis, work: (query: Query) => Promise<T>): Promise<T> => {
    const idleTimeout = createIdleTimeout(limit, share?.signal);
    let client: MeteredClient | undefined;
    const attempt = async (): Promise<T> => {
      const connected = await onConnection(pool.connect());
      if (idleTimeout.isOver()) return connected.release() as never;
      client = connected;
      const wasUsed = used.has(connected);
      used.add(connected);
      try {
        return await work(toQuery(connected, idleTimeout, share));
      } catch (error) {
        if (idleTimeout.isOver() || !wasUsed || !isBroken(error)) throw error;
        // The server ended it while it lay in the pool (a restart, a failover): dial anew.
        client = undefined;
        connected.release(true);
        return attempt();
      }
    };
    const working = attempt();
    // After the limit its outcome is of no use.
    working.catch(() => undefined);
    const ended = idleTimeout.over.then(() => {
      throw share?.signal.aborted ? toEnd(connection, share.signal.reason) : toTimeout(connection, limit);
    });
    try {
      const value = await Promise.race([working, ended]);
      client?.release(isInTransaction(client));
      return value;
    } catch (error) {
      client?.release(idleTimeout.isOver() || isOfConnection(error) || isInTransaction(client));
      throw toRefusal(error, connection);
    } finally {
      idleTimeout.stop();
    }
  };

  return {
    share,
    run,
    query: (limit, ...call) => run(limit, (query) => query(...call)),
    transaction: (limit, work) => run(limit, (query) => inTransaction(limit, query, work)),
    within: (other) => createView(pooled, other),
    rest: pool.rest,
    close: async () => {
      // A frozen server does not say goodbye.
      const goodbye = createIdleTimeout(1000);
      await Promise.race([pool.end().catch(() => undefined), goodbye.over]);
      goodbye.stop();
    },
  };
}

type IdleTimeout = ReturnType<typeof createIdleTimeout>;

/** The maximum time of one statement, in idle limits: a statement whose rows come one by one ends too. */
const MAX_LIMITS = 3;

/** How often the idle time is measured. */
const STEP: Millis = 250;

/** The timeout is over when the server sent nothing for `limit`, or when the signal aborts. */
function createIdleTimeout(limit: Millis, signal?: AbortSignal) {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  let heard = Date.now();
  let began = heard;
  let isOver = signal?.aborted === true;
  let timer: NodeJS.Timeout | undefined;
  const end = (): void => {
    isOver = true;
    resolve();
  };
  const wait = (left: Millis): void => {
    const due = Date.now() + Math.min(left, STEP);
    const look = (): void => {
      // A timer is late by as long as our own event loop stood still, and no socket was read.
      const late = Math.max(0, Date.now() - due);
      heard += late;
      began += late;
      const more = Math.min(heard + limit, began + MAX_LIMITS * limit) - Date.now();
      if (more <= 0) end();
      else wait(more);
    };
    timer = setTimeout(look, Math.min(left, STEP));
  };
  if (isOver) resolve();
  else wait(limit);
  signal?.addEventListener('abort', end, { once: true });
  return {
    over,
    isOver: () => isOver,
    /** A statement begins. */
    begin: (): void => {
      began = Date.now();
    },
    hear: (): void => {
      heard = Date.now();
    },
    stop: (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
    },
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

function toQuery(client: MeteredClient, { begin, hear }: IdleTimeout, share: MemoryShare | undefined): Query {
  const { meter } = client;
  return async <R extends pg.QueryResultRow>(statement: string | Statement, values?: ReadonlyArray<unknown>) => {
    const { text, readJson, kept }: Statement = typeof statement === 'string' ? { text: statement } : statement;
    const read = (json: string): unknown => {
      meter.json(json);
      const value: unknown = JSON.parse(json);
      if (readJson === undefined) return value;
      hear();
      return readJson(value);
    };
    const answer = {};
    const max = readJson === undefined ? MAX_ANSWER : MAX_LARGE_ANSWER;
    begin();
    meter.begin(max, share && (({ now }) => share.take(answer, now)));
    try {
      const call = client.query<R>({ text, types: parsersOf(read, meter), ...(values && { values: [...values] }) });
      const { rows } = await onConnection(call);
      hear();
      const { kept: bytes } = meter.end();
      kept?.(bytes);
      return rows;
    } finally {
      meter.end();
      if (share?.signal.aborted === false) share.take(answer, 0);
    }
  };
}

const { BOOL, INT4, FLOAT8, JSON: JSON_TEXT, JSONB } = pg.types.builtins;
/** Lists of the ids of a portion, which the client library parses character by character. */
const [TEXTS, MAX_LIST] = [1009, 1024 * 1024];

/**
 * Parsers for the types of our statements. The server names the type of each value, and a value of any other type stays
 * a text: a list of dates takes a second for each megabyte.
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

/** A connection in a transaction, of which whoever gets it next knows nothing. */
const isInTransaction = (client: pg.PoolClient): boolean => client.getTransactionStatus() !== 'I';

/** Not only a statement failed, or what was done beside it: the connection did. */
function isOfConnection(error: unknown): boolean {
  return error instanceof ConnectionBroke || (error instanceof pg.DatabaseError && error.severity !== 'ERROR');
}
