// A limiter of concurrent tasks in which each owner gets a fair share. `p-limit` has one queue, in which an owner with
// many tasks would delay the others.

/** The maximum share of the slots, and of the waiting tasks, for one owner; and the share of the slots for newcomers. */
const SHARE = 1 / 4;

interface FairLimits {
  /** The maximum number of running tasks of one owner. Default: its share of the slots. */
  readonly maxOwn?: number;
  /**
   * Whether the last quarter of the slots is for owners without a running task: then a few owners whose tasks hang do
   * not have all slots.
   */
  readonly hasSlotsForNewcomers?: boolean;
}

/**
 * Runs tasks of owners, at most `slots` concurrently and `maxOwn` of one owner. A free slot goes to the owner with the
 * fewest running tasks; equal owners take turns. `isFull`: `maxWaiting` tasks wait, or this owner has its share of them.
 */
export function createFairLimiter(
  slots: number,
  maxWaiting = Number.POSITIVE_INFINITY,
  { maxOwn = Math.ceil(slots * SHARE), hasSlotsForNewcomers = false }: FairLimits = {},
) {
  const slotsOfAll = hasSlotsForNewcomers ? slots * (1 - SHARE) : slots;
  const running = new Map<string, number>();
  const waiting = new Map<string, Array<() => void>>();
  let [runningCount, waitingCount] = [0, 0];
  const runningOf = (owner: string): number => running.get(owner) ?? 0;
  const change = (owner: string, by: 1 | -1): void => {
    runningCount += by;
    const count = runningOf(owner) + by;
    if (count === 0) running.delete(owner);
    else running.set(owner, count);
  };
  const startNext = (): void => {
    if (runningCount >= slots) return;
    const max = runningCount >= slotsOfAll ? 1 : maxOwn;
    let next: string | undefined;
    for (const owner of waiting.keys()) {
      const count = runningOf(owner);
      if (count < max && (next === undefined || count < runningOf(next))) next = owner;
      if (count === 0) break;
    }
    if (next === undefined) return;
    const queue = waiting.get(next) ?? [];
    const start = queue.shift();
    waiting.delete(next);
    if (queue.length > 0) waiting.set(next, queue);
    waitingCount -= 1;
    change(next, 1);
    start?.();
  };
  const isFull = (owner: string): boolean =>
    waitingCount >= maxWaiting || (waiting.get(owner)?.length ?? 0) >= maxWaiting * SHARE;
  const run = async <T>(owner: string, task: () => Promise<T>): Promise<T> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = waiting.get(owner) ?? [];
    queue.push(resolve);
    waiting.set(owner, queue);
    waitingCount += 1;
    startNext();
    await promise;
    try {
      return await task();
    } finally {
      change(owner, -1);
      startNext();
    }
  };
  return { isFull, run };
}
