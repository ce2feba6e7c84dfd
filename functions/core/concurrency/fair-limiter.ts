// A limiter by count whose owners get fair shares. `p-limit` has one queue, in which an owner with many works would
// keep the others waiting.

/** The part of the places, and of the waiting works, that one owner may have. */
const SHARE = 1 / 4;

/**
 * Does works for their owners, with at most `places` under way. A free place goes to the owner with the fewest, and by
 * turns. `isFull`: `maxWaiting` works wait, or a share of them for this owner.
 */
export function createFairLimiter(places: number, maxWaiting = Number.POSITIVE_INFINITY) {
  const underWay = new Map<string, number>();
  const waiting = new Map<string, Array<() => void>>();
  let [free, waits] = [places, 0];
  const placesOf = (owner: string): number => underWay.get(owner) ?? 0;
  const change = (owner: string, by: 1 | -1): void => {
    free -= by;
    const count = placesOf(owner) + by;
    if (count === 0) underWay.delete(owner);
    else underWay.set(owner, count);
  };
  const startNext = (): void => {
    if (free === 0) return;
    let next: string | undefined;
    for (const owner of waiting.keys()) {
      const count = placesOf(owner);
      if (count < places * SHARE && (next === undefined || count < placesOf(next))) next = owner;
      if (count === 0) break;
    }
    if (next === undefined) return;
    const own = waiting.get(next) ?? [];
    const start = own.shift();
    waiting.delete(next);
    if (own.length > 0) waiting.set(next, own);
    waits -= 1;
    change(next, 1);
    start?.();
  };
  const isFull = (owner: string): boolean =>
    waits >= maxWaiting || (waiting.get(owner)?.length ?? 0) >= maxWaiting * SHARE;
  const run = async <T>(owner: string, work: () => Promise<T>): Promise<T> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const own = waiting.get(owner) ?? [];
    own.push(resolve);
    waiting.set(owner, own);
    waits += 1;
    startNext();
    await promise;
    try {
      return await work();
    } finally {
      change(owner, -1);
      startNext();
    }
  };
  return { isFull, run };
}
