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

/** Starts works in the order of their arrival, with at most `width` under way; answers what each answers. */
export function createQueue(width: number): <T>(work: () => Promise<T>) => Promise<T> {
  let underWay = 0;
  const waiting: Array<() => void> = [];
  return async (work) => {
    if (underWay === width) await new Promise<void>((resolve) => waiting.push(resolve));
    else underWay += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // The place passes on to it.
      if (next === undefined) underWay -= 1;
      else next();
    }
  };
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
