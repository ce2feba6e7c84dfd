// A call merger: calls that come while a group of calls is in progress are the next group.

/**
 * `work` returns a result, or the promise of a result, for each item in order. If `work` rejects, all calls of its
 * group reject.
 */
export function createCallMerger<T, R>(
  size: number,
  work: (items: ReadonlyArray<T>) => Promise<ReadonlyArray<R | Promise<R>>>,
): (item: T) => Promise<R> {
  const waiting: Array<{ readonly item: T; readonly result: PromiseWithResolvers<R> }> = [];
  let isRunning = false;

  const run = async () => {
    isRunning = true;
    // Callers of the same turn of the event loop belong to one group.
    await new Promise((resolve) => setTimeout(resolve));
    while (waiting.length > 0) {
      const group = waiting.splice(0, size);
      try {
        const results = await work(group.map(({ item }) => item));
        for (const [index, { result }] of group.entries()) result.resolve(results[index] as R | Promise<R>);
        await Promise.allSettled(group.map(({ result }) => result.promise));
      } catch (error) {
        for (const { result } of group) result.reject(error);
      }
    }
    isRunning = false;
  };

  return (item) => {
    const result = Promise.withResolvers<R>();
    waiting.push({ item, result });
    if (!isRunning) void run();
    return result.promise;
  };
}
