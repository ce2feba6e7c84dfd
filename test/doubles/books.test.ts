import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { describeBooks } from '#core/ports/test/ledger-rows.promises.ts';
import { createMemoryBooks } from './books.ts';
import { createMemoryRegistry } from './registry.ts';

describeBooks('memory', async () => {
  const clock = { now: () => 1_800_000_000_000 };
  const books = createMemoryBooks();
  const book = async (_: string, entries: ReadonlyArray<LedgerRow>) => ({ rejected: books.insert(entries) });
  return { books, book, registry: createMemoryRegistry({ clock, ...books }) };
});
