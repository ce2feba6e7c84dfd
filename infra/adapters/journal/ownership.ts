// Ownership of a journal folder. It ends when another process takes the folder over, or when the journal is discarded
// with all its files.
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '#core/ports/telemetry.ts';
import { lockFolder } from './lock.ts';
import { isSegment } from './segments.ts';

/** Takes the folder for this process. Throws `FolderInUse` while another process has it. */
export function takeFolder(folder: string, log: Log | undefined) {
  const lock = lockFolder(folder);
  let endReason: string | undefined;
  let isDiscarded = false;
  let newOwner: string | undefined;
  const removeAll = (): void => {
    for (const name of readdirSync(folder)) if (isSegment(name)) rmSync(join(folder, name), { force: true });
  };
  /** Whether the folder is still ours. All files of a folder that was taken over belong to the other process. */
  const isOurs = (): boolean => {
    if (newOwner !== undefined) return false;
    newOwner = lock.newOwner();
    if (newOwner === undefined) return true;
    endReason = `${newOwner} has taken over the journal in ${folder}`;
    log?.error(TAKEN_OVER, { folder, by: newOwner });
    return false;
  };
  return {
    isOurs,
    /** The reason why nothing is written any more; undefined: there is none. */
    endReason: (): string | undefined => endReason,
    /** Called every second: shows other machines that the owner is alive. */
    keepAlive(): void {
      if (!isOurs()) return;
      // A compaction may have written another file since the discard, or the disk may have refused the deletion.
      if (isDiscarded) removeAll();
      lock.touch();
    },
    /** Discards the journal. Throws if the disk does not allow it. */
    discard(): void {
      if (!isOurs()) return;
      endReason = `the journal in ${folder} was discarded`;
      isDiscarded = true;
      removeAll();
    },
    release: lock.release,
  };
}

const TAKEN_OVER =
  'another process has taken over the journal: this process no longer writes to it, and its replies wait for PostgreSQL; stop one of them, or give it another folder';
