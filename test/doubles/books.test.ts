import { describeBooks } from '#core/ports/books.promises.ts';
import { createMemoryBooks } from './books.ts';
import { createMemoryRegistry } from './registry.ts';

describeBooks('memory', async () => {
  const clock = { now: () => 1_800_000_000_000 };
  const books = createMemoryBooks();
  return { books, registry: createMemoryRegistry({ clock, ...books }) };
});
