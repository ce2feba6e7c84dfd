// Reads of the cluster for reviews: each namespace has a share of them, and a review whose signal has aborted reads
// nothing more.
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import type { Cluster } from '#core/ports/cluster.ts';

/** The methods of the cluster that reviews call. */
export type ClusterReads = Pick<Cluster, 'get' | 'listPages' | 'may'>;

/** Concurrent calls, a quarter of them for one namespace: its objects may have a megabyte each. */
const PLACES = 16;

/** Returns the reads for a review of an object in `namespace`. Reads that begin after the signal has aborted reject. */
export function createReads(cluster: ClusterReads) {
  const limiter = createFairLimiter(PLACES);
  return (namespace: string, signal: AbortSignal): ClusterReads => {
    const read = <T>(ask: () => Promise<T>): Promise<T> =>
      limiter.run(namespace, async () => {
        signal.throwIfAborted();
        return ask();
      });
    return {
      get: (...call) => read(() => cluster.get(...call)),
      listPages: (...call) => read(() => cluster.listPages(...call)),
      may: (...call) => read(() => cluster.may(...call)),
    };
  };
}
