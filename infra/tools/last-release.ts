// The last release: the newest tag `vX.Y.Z` that this commit descends from, and its files.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 2 ** 26 });

/** LAST_RELEASE names another commit, to try a comparison. Undefined: there is no tag yet, or no git. */
export function lastRelease(): string | undefined {
  const { LAST_RELEASE: given } = process.env;
  if (given) return given;
  try {
    return git('describe', '--tags', '--abbrev=0', '--match=v[0-9]*').trim();
  } catch {
    return undefined;
  }
}

export const fileOf = (release: string, path: string): string => git('show', `${release}:${path}`);
