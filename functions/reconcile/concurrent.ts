// Work on many things at the same time, and the longest time that something may take.
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

/** Maps in order with at most `width` calls under way. Rejects with the first rejection. */
export async function mapConcurrent<T, R>(
  items: Iterable<T>,
  visit: (item: T) => Promise<R>,
  width = 32,
): Promise<ReadonlyArray<R>> {
  const waiting = [...items].entries();
  const results: R[] = [];
  const worker = async () => {
    for (const [index, item] of waiting) results[index] = await visit(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}

/** The answer of `work`, or an error when the time is over. */
export async function withTimeout<T>(timer: Timer, limit: Millis, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const cancel = timer(limit, () => reject(new Error(`no answer within ${limit / 1000} s`)));
  work.catch(() => undefined);
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}
