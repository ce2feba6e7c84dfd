// A limiter by count: a bounded number of works run at the same time.
import pLimit from 'p-limit';

/** Runs a work as soon as fewer than the maximum are running; works begin in the order in which they came. */
export type Limiter = <T>(work: () => Promise<T>) => Promise<T>;

export const createLimiter = (max: number): Limiter => pLimit(max);

/** Maps in order with at most `width` calls running. Rejects with the first rejection; the other calls continue. */
export const mapConcurrent = <T, R>(
  items: Iterable<T>,
  call: (item: T) => Promise<R>,
  width = 32,
): Promise<ReadonlyArray<R>> => pLimit(width).map(items, call);
