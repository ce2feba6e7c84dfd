// A call merger: calls that come while a batch of calls is in progress are the next batch. (Not the batches of a ledger.)

/**
 * `work` returns a result, or the promise of a result, for each item in order. If `work` rejects, all calls of the
 * batch reject.
 */
export function createCallMerger<T, R>(
  size: number,
  work: (items: ReadonlyArray<T>) => Promise<ReadonlyArray<R | Promise<R>>>,
): (item: T) => Promise<R> {
  const waiting: Array<{ readonly item: T; readonly result: PromiseWithResolvers<R> }> = [];
  let isRunning = false;

  const run = async () => {
    isRunning = true;
    // Callers of the same turn of the event loop belong to one batch.
    await new Promise((resolve) => setTimeout(resolve));
    while (waiting.length > 0) {
      const batch = waiting.splice(0, size);
      try {
        const results = await work(batch.map(({ item }) => item));
        for (const [place, { result }] of batch.entries()) result.resolve(results[place] as R | Promise<R>);
        await Promise.allSettled(batch.map(({ result }) => result.promise));
      } catch (error) {
        for (const { result } of batch) result.reject(error);
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
