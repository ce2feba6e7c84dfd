// The journal of a gateway process: the one in its folder, or none if the disk cannot be used.

import { createJournal } from '#adapters/journal/journal.ts';
import { FolderInUse } from '#adapters/journal/lock.ts';
import type { Journal } from '#core/ports/journal.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';

interface Options {
  readonly folder: string;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Whether other processes use the store too, so that it outlives this process. */
  readonly isShared: boolean;
}

/**
 * Opens the journal. Throws `FolderInUse` while another process has the folder, and the disk's error if only the disk
 * keeps the charges.
 */
export function openJournal({ isShared, ...options }: Options): Journal {
  try {
    const files = createJournal(options);
    // A store in memory dies with the process, so even an incomplete journal is better than none.
    return isShared ? files : { ...files, discard: () => undefined };
  } catch (cause) {
    if (!isShared || cause instanceof FolderInUse) throw cause;
    return withoutDisk(options.folder, cause);
  }
}

/**
 * A journal that accepts nothing, like a disk that refuses every write: the ledger continues without one. Files of an
 * earlier process are left to the next start.
 */
function withoutDisk(folder: string, cause: unknown): Journal {
  return {
    append: () => Promise.reject(new Error(`opening the journal in ${folder}`, { cause })),
    replay: async () => [],
    drop: () => undefined,
    discard: () => undefined,
    close: async () => undefined,
  };
}
