// Limiters of concurrent tasks, by count.
import pLimit from 'p-limit';

/** Runs a task as soon as fewer than the maximum run. Tasks begin in the order of the calls. */
export type Limiter = <T>(task: () => Promise<T>) => Promise<T>;

export const createLimiter = (max: number): Limiter => pLimit(max);

/** Maps in order, with at most `width` concurrent calls. Rejects with the first rejection; the other calls continue. */
export const mapConcurrent = <T, R>(
  items: Iterable<T>,
  call: (item: T) => Promise<R>,
  width = 32,
): Promise<ReadonlyArray<R>> => pLimit(width).map(items, call);
