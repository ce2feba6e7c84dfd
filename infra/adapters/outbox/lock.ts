// Whose folder is this? One process at a time: two writing the same outbox would book each other's holds.
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { startOf } from '../processes.ts';

/** A running process has the folder. The message says which, and what to do. */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';
}

export interface Lock {
  /** Says to other machines that the owner lives. */
  touch(): void;
  release(): void;
}

interface Owner {
  readonly pid: number;
  readonly host: string;
  /** Tells a process from a later one with the same pid, as every restarted container has it. */
  readonly start: string;
  readonly nonce: string;
}

/** The owner on another machine (a shared volume) touches its lock every second. */
const SILENT_FOR = 15_000;

/** Takes the folder for this process; throws `FolderInUse` while its owner lives. The lock of a dead owner is taken over. */
export function lockFolder(folder: string): Lock {
  const path = join(folder, 'lock');
  const me: Owner = {
    pid: process.pid,
    host: hostname(),
    start: startOf(process.pid) ?? '',
    nonce: crypto.randomUUID(),
  };
  if (!place(path, me)) {
    const owner = readOwner(path);
    if (owner !== undefined && lives(owner, path)) throw inUse(folder, owner);
    if (!takeOver(path, me)) throw inUse(folder, readOwner(path));
  }
  return {
    touch: () => utimesSync(path, new Date(), new Date()),
    release: () => {
      if (readOwner(path)?.nonce === me.nonce) rmSync(path, { force: true });
    },
  };
}

/** Creates the lock with its content in one step, or not at all. */
function place(path: string, me: Owner): boolean {
  const draft = `${path}.${me.nonce}`;
  writeFileSync(draft, JSON.stringify(me));
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw new Error(`locking ${path}`, { cause: error });
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Puts our lock in the place of a dead owner's, in one step. Of many starters one at a time may look and act: who has `next`. */
function takeOver(path: string, me: Owner): boolean {
  const next = `${path}.next`;
  const other = readOwner(next);
  if (other !== undefined && !lives(other, next)) rmSync(next, { force: true });
  if (!place(next, me)) return false;
  const owner = readOwner(path);
  if (owner !== undefined && lives(owner, path)) {
    rmSync(next, { force: true });
    return false;
  }
  renameSync(next, path);
  return readOwner(path)?.nonce === me.nonce;
}

function lives(owner: Owner, path: string): boolean {
  if (owner.host !== hostname()) return Date.now() - statSync(path).mtimeMs < SILENT_FOR;
  const start = startOf(owner.pid);
  if (start === undefined) return false;
  return start === '' || owner.start === '' || start === owner.start;
}

/** Undefined: no lock, or one that a crash left half written (then nobody owns it). */
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
  const who = owner === undefined ? 'another process' : `process ${owner.pid} on ${owner.host}`;
  return new FolderInUse(`${who} keeps its outbox in ${folder}: stop it, or give this process another folder`);
}
