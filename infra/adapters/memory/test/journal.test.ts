import { describeJournal } from '#core/ports/test/journal.promises.ts';
import { createMemoryJournal } from '../journal.ts';

describeJournal('memory', async () => {
  const folder = { records: [] };
  return { open: async () => createMemoryJournal(folder), kill: async () => undefined };
});
