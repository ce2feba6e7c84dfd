import { describeAccountBooks } from '#core/ports/test/ledger-database.promises.ts';
import { createMemoryAccountBooks } from './account-books.ts';
import { createMemoryEpochs } from './epochs.ts';
import { createMemoryRegistry } from './registry.ts';
import { createManualTime } from './time.ts';

describeAccountBooks('memory', async () => {
  const { clock } = createManualTime();
  const epochs = createMemoryEpochs({ clock });
  const accounts = createMemoryAccountBooks({ epochs });
  return { books: accounts, epochs, registry: createMemoryRegistry({ clock, ...accounts.books }) };
});
