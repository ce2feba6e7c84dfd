// Files that the kubelet mounts: a snapshot, and folders of Secrets, read again when they change.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Credentials } from '#core/ports/upstream.ts';

/** The time after which a mounted file is read again. The kubelet itself takes about a minute to change it. */
const LOOK_AGAIN_AFTER = 1_000;

/** One file per key of a Secret: `folder/secret/key`. Names that would leave the folder have no value. */
export function createMountedCredentials(folder: string, now: () => number): Credentials {
  const seen = new Map<string, { readonly value: string | undefined; readonly at: number }>();
  return {
    read: (secret, secretKey) => {
      const name = `${secret}/${secretKey}`;
      const known = seen.get(name);
      if (known !== undefined && now() - known.at < LOOK_AGAIN_AFTER) return known.value;
      if (!isName(secret) || !isName(secretKey)) return undefined;
      const value = readIfThere(join(folder, secret, secretKey));
      seen.set(name, { value, at: now() });
      return value;
    },
  };
}

/** The parsed value of a mounted file; the previous value while the file is missing or `parse` refuses it. */
export function createMountedFile<T>(path: string, now: () => number, parse: (text: string) => T | undefined) {
  let value: T | undefined;
  let modified = -1;
  let at = Number.NEGATIVE_INFINITY;
  return {
    current: (): T | undefined => {
      if (now() - at < LOOK_AGAIN_AFTER) return value;
      at = now();
      const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
      if (changed === undefined || changed === modified) return value;
      modified = changed;
      value = parse(readIfThere(path) ?? '') ?? value;
      return value;
    },
  };
}

const isName = (name: string) => /^[-._A-Za-z0-9]+$/.test(name) && !/^\.\.?$/.test(name);

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
