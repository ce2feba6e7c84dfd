import { describeOutbox } from '#core/ports/test/journal.promises.ts';
import { createMemoryOutbox } from '../journal.ts';

describeOutbox('memory', async () => {
  const folder = { records: [] };
  return { open: async () => createMemoryOutbox(folder), kill: async () => undefined };
});
