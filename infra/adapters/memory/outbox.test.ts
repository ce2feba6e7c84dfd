import { describeOutbox } from '#core/ports/outbox.promises.ts';
import { createMemoryOutbox } from './outbox.ts';

describeOutbox('memory', async () => {
  const folder = { records: [] };
  return { open: async () => createMemoryOutbox(folder), kill: async () => undefined };
});
