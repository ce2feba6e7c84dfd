// State of the stack: a folder that only this process uses, and the file with secrets and ports of earlier starts.
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { reasonOf } from '../../../../functions/core/failure/error-text.ts';
import { FolderInUse, lockFolder } from '../../../adapters/journal/lock.ts';
import { UsageError } from '../options.ts';
import { createChildren } from './children.ts';

/** The content of `state.json`; its secrets are created once, at the first start on a folder. */
const SavedState = z.object({
  /** Password of the embedded PostgreSQL. */
  databasePassword: z.string(),
  /** Bearer token of the embedded cluster's one user. */
  clusterToken: z.string(),
  /** The credential in the sample's model Secrets; the sample upstream takes any. */
  upstreamKey: z.string(),
  /** Ports of the last start: used again if they are free. */
  ports: z.record(z.string(), z.number()),
  /** The sample's Secrets, by name: hashes of their data as a start wrote it. Another hash is a person's change. */
  sampleSecrets: z.record(z.string(), z.string()).default({}),
});

export type SavedState = z.infer<typeof SavedState>;

export type State = Awaited<ReturnType<typeof open>>;

/**
 * Locks the folder for this process. Throws UsageError if another stack runs on it, it has other files, or it cannot be
 * used.
 */
export async function openState(folder: string, reset: boolean) {
  try {
    return await open(folder, reset);
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause)) throw cause;
    const must = 'must be a folder that you can write to';
    throw new UsageError(`--state: Invalid value: "${folder}": ${must}: ${reasonOf(cause)}`, { cause });
  }
}

async function open(folder: string, reset: boolean) {
  makeFolder(folder);
  refuseForeign(folder);
  const release = lock(folder);
  const children = createChildren(join(folder, 'children'));
  await children.endReplays();
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
    path: (...names: ReadonlyArray<string>) => join(folder, ...names),
    rememberPort(name: string, port: number) {
      remembered.ports[name] = port;
      write();
    },
    rememberSampleSecret(name: string, hash: string) {
      remembered.sampleSecrets[name] = hash;
      write();
    },
    /** Leaves the folder to another stack. */
    release,
  };
}

/** Writes a whole file or nothing, readable by this user only. */
export function writeWhole(file: string, text: string): void {
  const fresh = `${file}.new`;
  writeFileSync(fresh, text, { mode: 0o600, flush: true });
  // A file that a kill has left keeps its own mode.
  chmodSync(fresh, 0o600);
  renameSync(fresh, file);
}

/**
 * Creates the folder and its parents. Node's own `recursive` never ends if a file system accepts no folders (/proc).
 */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false }) !== undefined) return;
  makeFolder(dirname(folder));
  mkdirSync(folder);
}

/** Files of a folder without `state.json` that this program has made. */
const OWN_WITHOUT_STATE = /^(lock.*|children|stack\.log|state\.json\.new)$/;
const MAX_NAMED = 5;

/** A folder with other files is never used, and so never emptied by --reset. */
function refuseForeign(folder: string): void {
  const names = readdirSync(folder);
  const foreign = names.filter((name) => !OWN_WITHOUT_STATE.test(name));
  if (names.includes('state.json') || foreign.length === 0) return;
  const more = foreign.length > MAX_NAMED ? ` and ${foreign.length - MAX_NAMED} more` : '';
  const other = `${foreign.slice(0, MAX_NAMED).join(', ')}${more}`;
  throw new UsageError(
    `--state: Invalid value: "${folder}": must be empty or made by this program, but holds other files (${other}). Name another folder.`,
  );
}

/** Milliseconds between two heartbeats for other machines that share the folder. */
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

function empty(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (name !== 'lock') rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function first(): SavedState {
  const secret = () => randomBytes(24).toString('hex');
  return {
    databasePassword: secret(),
    clusterToken: secret(),
    upstreamKey: `sample-${secret()}`,
    ports: {},
    sampleSecrets: {},
  };
}

function read(file: string): SavedState {
  try {
    return SavedState.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (cause) {
    throw new UsageError(`${file} is damaged. Restore it, or start again with --reset, which empties the folder.`, {
      cause,
    });
  }
}
