// An outbox without a disk, for tests and for platforms where nothing outlives a process.
import type { Outbox, OutboxRecord } from '#core/ports/journal.ts';

/** The counterpart of the real outbox's folder: the next outbox with the same one finds what the earlier one left. */
export interface MemoryFolder {
  records: OutboxRecord[];
}

export function createMemoryOutbox(folder: MemoryFolder = { records: [] }): Outbox {
  let isDiscarded = false;
  return {
    async append(record) {
      if (isDiscarded) throw new Error('the outbox was discarded');
      folder.records.push(record);
    },
    async recover() {
      return [...folder.records];
    },
    done(ids) {
      const cut = new Set(ids);
      folder.records = folder.records.filter((record) => !cut.has('entry' in record ? record.entry.id : record.id));
    },
    discard() {
      isDiscarded = true;
      folder.records = [];
    },
    async close() {},
  };
}
