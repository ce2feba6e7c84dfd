// The lock of a journal folder: one process at a time, since two would book each other's reservations.
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { startOf } from '../process/running-processes.ts';

/** The folder belongs to a running process. The message names the process and the next step. */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';
}

export interface Lock {
  /** Returns the process that has taken the folder over, for example during a pause of this one; undefined: none. */
  newOwner(): string | undefined;
  /** Shows other machines that the owner is alive. */
  touch(): void;
  release(): void;
}

interface Owner {
  readonly pid: number;
  readonly host: string;
  /** The start time, which distinguishes a process from a later one with the same pid (as in a restarted container). */
  readonly start: string;
  readonly nonce: string;
}

/** An owner on another machine (a shared volume) touches its lock every second; after this time it counts as dead. */
const DEAD_AFTER = 15_000;

/**
 * Takes the folder for this process; throws `FolderInUse` while its owner lives. The lock of a dead owner is taken
 * over.
 */
export function lockFolder(folder: string): Lock {
  const path = join(folder, 'lock');
  const me: Owner = {
    pid: process.pid,
    host: hostname(),
    start: startOf(process.pid) ?? '',
    nonce: crypto.randomUUID(),
  };
  if (!writeLock(path, me)) {
    const owner = readOwner(path);
    if (owner !== undefined && isAlive(owner, path)) throw inUse(folder, owner);
    if (!takeOver(path, me)) throw inUse(folder, readOwner(path));
  }
  return {
    newOwner() {
      const owner = readOwner(path);
      return owner === undefined || owner.nonce === me.nonce ? undefined : nameOf(owner);
    },
    touch: () => utimesSync(path, new Date(), new Date()),
    release: () => {
      if (readOwner(path)?.nonce === me.nonce) rmSync(path, { force: true });
    },
  };
}

/** Creates the lock with its content in one step, or not at all. */
function writeLock(path: string, me: Owner): boolean {
  const draft = `${path}.${me.nonce}`;
  try {
    writeFileSync(draft, JSON.stringify(me));
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw new Error(`locking ${path}`, { cause: error });
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Replaces a dead owner's lock in one step. Of many concurrent starts, only the one that has created `next` may do so.
 */
function takeOver(path: string, me: Owner): boolean {
  const next = `${path}.next`;
  const other = readOwner(next);
  if (other !== undefined && !isAlive(other, next)) rmSync(next, { force: true });
  if (!writeLock(next, me)) return false;
  const owner = readOwner(path);
  if (owner !== undefined && isAlive(owner, path)) {
    rmSync(next, { force: true });
    return false;
  }
  renameSync(next, path);
  return readOwner(path)?.nonce === me.nonce;
}

function isAlive(owner: Owner, path: string): boolean {
  if (owner.host !== hostname()) return Date.now() - statSync(path).mtimeMs < DEAD_AFTER;
  const start = startOf(owner.pid);
  if (start === undefined) return false;
  return start === '' || owner.start === '' || start === owner.start;
}

/** The owner; undefined if there is no lock, or a crash left it half written. */
function readOwner(path: string): Owner | undefined {
  try {
    const { pid, host, start, nonce }: Partial<Owner> = JSON.parse(readFileSync(path, 'utf8'));
    if (pid === undefined || host === undefined || start === undefined || nonce === undefined) return undefined;
    return { pid, host, start, nonce };
  } catch {
    return undefined;
  }
}

function inUse(folder: string, owner: Owner | undefined): FolderInUse {
  return new FolderInUse(
    `${nameOf(owner)} keeps its journal in ${folder}: stop it, or give this process another folder`,
  );
}

const nameOf = (owner: Owner | undefined): string =>
  owner === undefined ? 'another process' : `process ${owner.pid} on ${owner.host}`;
