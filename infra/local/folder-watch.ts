// Is the state folder still the one that was opened?
import { statSync } from 'node:fs';
import { join } from 'node:path';

const LOOK_EVERY = 1_000;

export interface FolderWatch {
  /** Resolves when the folder was removed, emptied or replaced by another one; else never. */
  readonly gone: Promise<void>;
  stop(): void;
}

/** Looks once a second: a watch of the file system misses a folder that goes with the one above it. */
export function watchFolder(folder: string, every = LOOK_EVERY): FolderWatch {
  const opened = identityOf(folder);
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    if ((identityOf(folder) ?? opened) !== opened) resolve();
  }, every);
  timer.unref();
  return { gone, stop: () => clearInterval(timer) };
}

/** `none` where it is missing, or the file in it that every start writes first; undefined when it cannot be looked at just now. */
function identityOf(folder: string): string | undefined {
  try {
    const found = statSync(folder, { throwIfNoEntry: false });
    const written = statSync(join(folder, 'state.json'), { throwIfNoEntry: false });
    return found === undefined || written === undefined ? 'none' : `${found.dev} ${found.ino}`;
  } catch {
    return undefined;
  }
}
