// Reads of the cluster for reviews: each namespace has a share of them, and a review that was given up reads no more.
import { createFairLimiter } from '#core/concurrency/fair-limiter.ts';
import type { Cluster } from '#core/ports/cluster.ts';

/** The calls of a review. */
export type ClusterReads = Pick<Cluster, 'get' | 'listPages' | 'may'>;

/** Calls at the same time: a quarter of them for one namespace, whose objects may have a megabyte each. */
const PLACES = 16;

/** Answers the reads for a review of an object in `namespace`. Reads that begin after the signal has aborted reject. */
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
