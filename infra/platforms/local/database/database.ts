// The PostgreSQL of the stack's instances: the embedded one, kept running, or the one that was named.
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf } from '../../../../functions/core/failure/error-text.ts';
import type { DatabaseConnection } from '../../../../functions/core/ports/backends.ts';
import type { Log } from '../../../../functions/core/ports/telemetry.ts';
import { UsageError } from '../options.ts';
import type { StartContext } from '../start.ts';
import { onFreePort, portOf } from '../state/ports.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';

const NAME = 'gateway';

/**
 * Starts the embedded PostgreSQL, or reaches the one that was named. Throws UsageError when that one does not answer.
 */
export async function openDatabase({ options, state, log, onStop }: StartContext) {
  if (options.database !== undefined) return reach(options.database);
  const { children, remembered } = state;
  const own = { children, folder: state.path('postgres'), username: NAME, password: remembered.databasePassword };
  const server = await onFreePort(
    () => portOf(state, 'database'),
    (port) => startPostgres({ ...own, port }),
  );
  onStop(keepRunning(server, log));
  await createIfAbsent(server.connection);
  const connection = { ...server.connection, dbname: NAME };
  return { connection, description: `PostgreSQL on 127.0.0.1:${connection.port}` };
}

/** Milliseconds between two tries to start a server that died: twice as long each time. */
const MIN_WAIT = 200;
const MAX_WAIT = 10_000;

/**
 * Starts a server that died again, until the stop that is returned. A server that does not start is reported once, and
 * tried again.
 */
export function keepRunning(server: PostgresServer, log: Log): () => Promise<void> {
  let isStopping = false;
  const follow = async () => {
    for (let wait = MIN_WAIT; !isStopping; ) {
      await server.ended();
      await pause(wait, undefined, { ref: false });
      if (isStopping) return;
      try {
        await server.start();
        log.warn('PostgreSQL ended by itself and was started again');
        wait = MIN_WAIT;
      } catch (error) {
        const why = reasonOf(error);
        if (wait === MIN_WAIT) log.error('PostgreSQL ended by itself and does not start: it is tried again', { why });
        wait = Math.min(2 * wait, MAX_WAIT);
      }
    }
  };
  void follow();
  return async () => {
    isStopping = true;
    await server.stop();
  };
}

async function createIfAbsent(connection: DatabaseConnection): Promise<void> {
  const client = clientOf(connection);
  await client.connect();
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [NAME]);
    if (found.rowCount === 0) await client.query(`create database ${client.escapeIdentifier(NAME)}`);
  } finally {
    await client.end();
  }
}

async function reach(url: URL) {
  const connection: DatabaseConnection = {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || 5432),
    username: decodeURIComponent(url.username || 'postgres'),
    password: decodeURIComponent(url.password),
    dbname: decodeURIComponent(url.pathname.slice(1)),
  };
  const where = `${connection.host}:${connection.port}/${connection.dbname}`;
  const client = clientOf(connection);
  try {
    await client.connect();
  } catch (cause) {
    throw new UsageError(`--database: PostgreSQL at ${where} cannot be used: ${reasonOf(cause)}.`, { cause });
  }
  await client.end();
  return { connection, description: `PostgreSQL on ${where}` };
}

function clientOf({ username: user, dbname: database, ...at }: DatabaseConnection): pg.Client {
  return new pg.Client({ ...at, user, database, connectionTimeoutMillis: 5000 });
}
