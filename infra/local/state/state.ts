// What does the stack remember between two starts, and who may use the folder?
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { UsageError } from '../options.ts';
import { type Children, createChildren } from './children.ts';
import { makeFolder, unusable } from './folder.ts';

/** Written once, at the first start on a folder. */
const Remembered = z.object({
  /** Password of the embedded PostgreSQL. */
  databasePassword: z.string(),
  /** Bearer token of the embedded cluster's one user. */
  clusterToken: z.string(),
  /** The credential in the sample's model Secrets; the sample upstream takes any. */
  upstreamKey: z.string(),
  /** Where things listened last time: they listen there again when the port is still free. */
  ports: z.record(z.string(), z.number()),
});

export type Remembered = z.infer<typeof Remembered>;

export interface State {
  readonly folder: string;
  readonly children: Children;
  readonly remembered: Remembered;
  path(...names: ReadonlyArray<string>): string;
  rememberPort(name: string, port: number): void;
  /** Gives the folder free for another stack. */
  release(): Promise<void>;
}

/** Takes the folder for this process. Throws UsageError when another stack runs on it, when it holds something else, or cannot be written to. */
export async function openState(folder: string, reset: boolean): Promise<State> {
  try {
    return await open(folder, reset);
  } catch (error) {
    throw unusable(folder, error);
  }
}

async function open(folder: string, reset: boolean): Promise<State> {
  makeFolder(folder);
  refuseForeign(folder);
  const release = await lock(folder);
  const children = createChildren(join(folder, 'children'));
  await children.endLeftovers();
  if (reset) empty(folder);
  const file = join(folder, 'state.json');
  const remembered = existsSync(file) ? read(file) : first();
  const write = () => writeWhole(file, JSON.stringify(remembered, null, 2));
  write();
  rmSync(join(folder, 'endpoints.json'), { force: true });
  return {
    folder,
    children,
    remembered,
    path: (...names) => join(folder, ...names),
    rememberPort(name, port) {
      remembered.ports[name] = port;
      write();
    },
    release,
  };
}

/** Writes a file that is there whole or not at all, readable by this user only. */
export function writeWhole(file: string, text: string): void {
  const fresh = `${file}.new`;
  writeFileSync(fresh, text, { mode: 0o600, flush: true });
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
}

function first(): Remembered {
  const secret = () => randomBytes(24).toString('hex');
  return { databasePassword: secret(), clusterToken: secret(), upstreamKey: `sample-${secret()}`, ports: {} };
}

function read(file: string): Remembered {
  try {
    return Remembered.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    throw new UsageError(
      `${file} is damaged. Restore it, or start anew with --reset (this deletes the state folder).`,
      {
        cause,
      },
    );
  }
}

/** A folder with other people's files is never taken, and so never emptied by --reset. */
function refuseForeign(folder: string): void {
  const names = readdirSync(folder);
  if (
    names.length === 0 ||
    names.includes('state.json') ||
    names.every((name) => /^(lock\.sock|children|state\.json\.new)$/.test(name))
  )
    return;
  throw new UsageError(`--state: ${folder} holds other files and was not made by this program. Name another folder.`);
}

function empty(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (name !== 'lock.sock') rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** A listening socket is the lock: it ends with the process, however the process ends. */
async function lock(folder: string): Promise<() => Promise<void>> {
  const path = socketPath(folder);
  if (await answers(path)) {
    throw new UsageError(`Another stack runs on ${folder}. Stop it first, or name another folder with --state DIR.`);
  }
  rmSync(path, { force: true });
  const server = createServer((socket) => socket.end());
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve));
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}

/** A socket's path holds about a hundred bytes: a deep folder is locked by its hash. */
function socketPath(folder: string): string {
  const near = join(folder, 'lock.sock');
  const hash = createHash('sha256').update(folder).digest('hex').slice(0, 24);
  return Buffer.byteLength(near) < 100 ? near : join(tmpdir(), `gateway-operator-${hash}.sock`);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
