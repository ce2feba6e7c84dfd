// The journal of a gateway's process: the one in its folder, or none where the disk cannot be used.

import { createJournal } from '#adapters/journal/journal.ts';
import { FolderInUse } from '#adapters/journal/lock.ts';
import type { Journal } from '#core/ports/journal.ts';
import type { Log, Metrics } from '#core/ports/telemetry.ts';

interface Options {
  readonly folder: string;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Other processes use the store too: it outlives this one. */
  readonly isShared: boolean;
}

/**
 * Throws `FolderInUse` while another process has the folder, and what the disk says where nothing but the disk keeps
 * the money.
 */
export function openJournal({ isShared, ...options }: Options): Journal {
  try {
    const files = createJournal(options);
    // A store in memory dies with the process and knows nothing of what these files lack: they are better than nothing.
    return isShared ? files : { ...files, discard: () => undefined };
  } catch (cause) {
    if (!isShared || cause instanceof FolderInUse) throw cause;
    return withoutDisk(options.folder, cause);
  }
}

/**
 * Takes nothing, like a disk that refuses every write: the ledger continues without one. An earlier process's files are
 * left to the next start.
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
