import { randomBytes } from 'node:crypto';
import { describeBooks } from '#core/ports/books.promises.ts';
import { createIds } from '../../infra/adapters/ids.ts';
import { createMemoryBooks } from './books.ts';
import { createMemoryRegistry } from './registry.ts';

describeBooks('memory', async () => {
  const clock = { now: () => 1_800_000_000_000 };
  const books = createMemoryBooks();
  const ids = createIds({ clock, random: randomBytes });
  return { books, registry: createMemoryRegistry({ clock, ids, ...books }) };
});
