// A journal without a disk, for tests and for platforms on which nothing outlives a process.
import type { Journal, JournalRecord } from '#core/ports/journal.ts';

/** The folder of a journal in memory: the next journal on the same folder finds the records of the previous one. */
export interface MemoryFolder {
  records: JournalRecord[];
}

export function createMemoryJournal(folder: MemoryFolder = { records: [] }): Journal {
  let isDiscarded = false;
  return {
    async append(record) {
      if (isDiscarded) throw new Error('the journal was discarded');
      folder.records.push(record);
    },
    async replay() {
      return [...folder.records];
    },
    drop(ids) {
      const dropped = new Set(ids);
      folder.records = folder.records.filter((record) => !dropped.has('row' in record ? record.row.id : record.id));
    },
    discard() {
      isDiscarded = true;
      folder.records = [];
    },
    async close() {},
  };
}
