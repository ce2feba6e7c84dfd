// What does the stack remember between two starts, and who may use the folder?
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { FolderInUse, lockFolder } from '#adapters/outbox/lock.ts';
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
  release(): void;
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
  const release = lock(folder);
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
    names.every((name) => /^(lock.*|children|state\.json\.new)$/.test(name))
  )
    return;
  throw new UsageError(`--state: ${folder} holds other files and was not made by this program. Name another folder.`);
}

function empty(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (name !== 'lock') rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** Says to other machines that share the folder that this process lives. */
const TOUCH_EVERY = 1_000;

function lock(folder: string): () => void {
  try {
    const { touch, release } = lockFolder(folder);
    const timer = setInterval(() => {
      try {
        touch();
      } catch {
        // The folder was removed: nothing is left to lock.
      }
    }, TOUCH_EVERY).unref();
    return () => {
      clearInterval(timer);
      release();
    };
  } catch (cause) {
    if (!(cause instanceof FolderInUse)) throw cause;
    throw new UsageError(`Another stack runs on ${folder}. Stop it first, or name another folder with --state DIR.`, {
      cause,
    });
  }
}
