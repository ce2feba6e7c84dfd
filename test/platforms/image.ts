// The image's base for tests: the Node.js that runs them, its libraries, and the machine's certificate authorities.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

/** Why no base can be made here. */
export const whyNoBase: string | undefined =
  process.platform === 'linux' ? undefined : 'the base of the image needs Linux, whose Node.js it takes';

/** Writes the root file system. */
export function writeBase(folder: string): void {
  const copy = (from: string, to: string) => {
    mkdirSync(join(folder, to, '..'), { recursive: true });
    copyFileSync(from, join(folder, to));
  };
  copy(process.execPath, '/usr/local/bin/node');
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' });
  for (const [path] of libraries.matchAll(/\/\S+/g)) copy(path, path);
  if (existsSync(AUTHORITIES)) copy(AUTHORITIES, AUTHORITIES);
  mkdirSync(join(folder, 'tmp'));
}
