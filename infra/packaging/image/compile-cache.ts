// Node.js's compile cache of the bundles: a start reads compiled functions instead of compiling them (docs/internals/bench.md).
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CACHE_FOLDER, USER } from './config.ts';

/**
 * Without it, each cache would be different because of the hash seed of strings. V8 does not compare this flag when it
 * reads a cache.
 */
const SEED = '--random-seed=1';

/** Milliseconds: a program that does not end without its environment must get required variables. */
const TIMEOUT = 60_000;

/**
 * Fills the cache of `dist/node` below the folder, and returns the Node.js that can use it: this one. Node.js names the
 * cache after its version, the processor's architecture and features, and the user. Any other process runs without the
 * cache.
 */
export function writeCompileCache(app: string, entries: ReadonlyArray<string>): string {
  const cache = join(app, CACHE_FOLDER);
  mkdirSync(cache);
  const bundles = join(app, 'dist/node');
  const chunks = readdirSync(bundles).filter((name) => !entries.includes(name));
  const address = (name: string) => JSON.stringify(pathToFileURL(join(bundles, name)).href);
  // Without an environment an entry loads its modules, lists what is missing, and ends.
  for (const entry of entries) compile(cache, [join(bundles, entry)], 1);
  compile(cache, ['--input-type=module', '--eval', chunks.map((name) => `import ${address(name)};`).join('')], 0);
  for (const name of readdirSync(cache)) readable(join(cache, name), join(cache, name.replace(/-\d+$/, `-${USER}`)));
  return `${process.version} ${process.arch}`;
}

function compile(cache: string, args: ReadonlyArray<string>, expected: number): void {
  const env = { NODE_COMPILE_CACHE: cache, NODE_COMPILE_CACHE_PORTABLE: '1' };
  const options = { env, encoding: 'utf8', timeout: TIMEOUT } as const;
  const { status, stderr } = spawnSync(process.execPath, [SEED, ...args], options);
  if (status !== expected) throw new Error(`node ${args[0]} ended with ${status}: ${stderr}`);
}

/** Renames the folder of this user to that of the image's user. */
function readable(from: string, to: string): void {
  renameSync(from, to);
  chmodSync(to, 0o755);
  for (const name of readdirSync(to)) chmodSync(join(to, name), 0o644);
}
