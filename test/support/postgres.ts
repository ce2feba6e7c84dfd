// A PostgreSQL for one test, which may kill, freeze and restart it.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { startOf } from '#adapters/process/running-processes.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import * as launcher from '../../infra/platforms/local/database/postgres.ts';
import { createChildren } from '../../infra/platforms/local/state/children.ts';
import { freePort, onFreePort } from '../../infra/platforms/local/state/ports.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface TestPostgres {
  /** The folder of its data. */
  readonly folder: string;
  /** The superuser's connection to the database `postgres`. */
  readonly connection: DatabaseConnection;
  /** A new empty database on this server. */
  createDatabase(): Promise<DatabaseConnection>;
  /** Runs a statement as the superuser. */
  query<R extends pg.QueryResultRow>(on: DatabaseConnection, text: string, values?: unknown[]): Promise<R[]>;
  /** Sends SIGKILL to the postmaster and all its children; returns when they are gone. */
  kill(): Promise<void>;
  /** Freezes the whole server, with connections open; returns a function that thaws it. */
  freeze(): () => void;
  /** Restarts the server on the same folder and port. */
  start(): Promise<void>;
  /** Stops the server and removes its folder. */
  stop(): Promise<void>;
}

export interface TestPostgresOptions {
  /** False (default): no fsync, which `kill -9` of processes does not need. */
  readonly durable?: boolean;
  /** A certificate and key in PEM, with which the server also speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Certificates in PEM: the database `for_certificates` is for clients whose certificate they have signed. */
  readonly clientAuthority?: string;
  /** More settings, `name=value` each. */
  readonly settings?: ReadonlyArray<string>;
  /** Existing data, and the password of its superuser. */
  readonly existing?: { readonly password: string; writeTo(folder: string): Promise<void> };
}

/** Runs initdb and starts, which takes about a second: call it once per test file. */
export async function startPostgres(options: TestPostgresOptions = {}): Promise<TestPostgres> {
  const { durable = false, tls, clientAuthority, settings = [], existing } = options;
  const folder = temporaryFolder();
  await existing?.writeTo(join(folder, 'data'));
  const own = {
    children: createChildren(join(folder, 'children')),
    folder: join(folder, 'data'),
    username: 'postgres',
    password: existing?.password ?? randomBytes(9).toString('hex'),
    isDurable: durable,
    files: {
      ...(tls !== undefined && { 'server.cert': tls.cert, 'server.key': tls.key }),
      ...(clientAuthority !== undefined && { 'clients.cert': clientAuthority, 'clients.conf': FOR_CERTIFICATES }),
    },
    settings: [
      ...settings,
      ...(tls === undefined ? [] : WITH_TLS),
      ...(clientAuthority === undefined
        ? []
        : ['ssl_ca_file=clients.cert', `hba_file=${join(folder, 'data/clients.conf')}`]),
    ],
  };
  const server = await onFreePort(
    () => freePort(0, 'any'),
    (port) => launcher.startPostgres({ ...own, port }),
  );
  const { connection } = server;
  const pids = () => [server.pid(), ...childrenOf(server.pid())];
  return {
    folder: join(folder, 'data'),
    connection,
    createDatabase: async () => {
      const dbname = `test_${randomBytes(6).toString('hex')}`;
      await query(connection, `create database ${dbname} strategy file_copy`);
      return { ...connection, dbname };
    },
    query,
    kill: async () => {
      const all = pids();
      signal(all, 'SIGKILL');
      await server.ended();
      while (all.some((pid) => startOf(pid) !== undefined)) await pause(5);
    },
    freeze: () => {
      const all = pids();
      signal(all, 'SIGSTOP');
      return () => signal(all, 'SIGCONT');
    },
    start: server.start,
    stop: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const FOR_CERTIFICATES = `hostssl for_certificates all all scram-sha-256 clientcert=verify-ca
host for_certificates all all reject
host all all all scram-sha-256
`;

const WITH_TLS = ['ssl=on', 'ssl_cert_file=server.cert', 'ssl_key_file=server.key'];

export async function query<R extends pg.QueryResultRow>(
  on: DatabaseConnection,
  text: string,
  values: unknown[] = [],
): Promise<R[]> {
  const client = new pg.Client({ ...on, user: on.username, database: on.dbname, ssl: false });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<R>(text, values)).rows;
  } finally {
    await client.end();
  }
}

function signal(pids: ReadonlyArray<number>, name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // The process ended by itself meanwhile.
    }
  }
}

function childrenOf(parent: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return lines
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, ppid]) => (pid !== undefined && ppid === parent ? [pid] : []));
}
