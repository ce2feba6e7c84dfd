// Can the state live here? One sentence where it cannot: which folder, what is wrong with it, what to do.
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { UsageError } from '../options.ts';

/** Makes the folder, and those above it, one by one: Node's own `recursive` never ends where a file system takes no folders (/proc). */
export function makeFolder(folder: string): void {
  const missing: string[] = [];
  let above = folder;
  while (statSync(above, { throwIfNoEntry: false }) === undefined) {
    missing.unshift(above);
    above = dirname(above);
  }
  if (!statSync(above).isDirectory()) throw new UsageError(`--state: ${above} is a file, not a folder. ${ANOTHER}`);
  for (const one of missing) mkdirSync(one);
  accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
}

/** What an operation on the folder has failed with, in words. */
export function unusable(folder: string, error: unknown): Error {
  const { code, path } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  if (code === undefined || error instanceof UsageError) return error as Error;
  const why = WORDS[code] ?? code;
  const at = path === undefined || path === folder ? '' : ` (at ${path})`;
  return new UsageError(`--state: ${folder} cannot be used: ${why}${at}. ${ANOTHER}`, { cause: error });
}

const ANOTHER = 'Name a folder that you may write to with --state DIR.';

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'you may not write there',
  EPERM: 'you may not write there',
  EROFS: 'its file system is read-only',
  ENOENT: 'nothing can be made there',
  ENOTDIR: 'a part of it is a file, not a folder',
  ENOSPC: 'its disk is full',
  EDQUOT: 'your share of its disk is used up',
  ENAMETOOLONG: 'its name is too long',
  ELOOP: 'its links lead in a circle',
};
