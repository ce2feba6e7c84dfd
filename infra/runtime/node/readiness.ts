// Readiness of the admission webhook and the reconciler: what is missing in the cluster, until nothing has been missing.

import { reasonOf } from '#core/failure/error-text.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Cluster } from '#core/ports/cluster.ts';
import { resources } from '#crds/names/resources.ts';

/** Milliseconds for which a result is kept, so that requests to the port do not load the API server. */
const MAX_AGE = 1_000;

/**
 * Lines that name what is missing; none: ready. A function that was ready once stays ready: a moment without the API
 * server removes no Pod from its Service.
 */
export function createReadiness(cluster: Pick<Cluster, 'serves'>, clock: Clock): () => Promise<ReadonlyArray<string>> {
  let last: Promise<ReadonlyArray<string>> | undefined;
  let at = Number.NEGATIVE_INFINITY;
  let isReady = false;
  return async () => {
    if (isReady) return [];
    if (last === undefined || clock.now() - at >= MAX_AGE) {
      at = clock.now();
      last = findMissing(cluster);
    }
    const missing = await last;
    isReady ||= missing.length === 0;
    return missing;
  };
}

async function findMissing(cluster: Pick<Cluster, 'serves'>): Promise<ReadonlyArray<string>> {
  try {
    const served = await Promise.all(resources.map((resource) => cluster.serves(resource)));
    return resources
      .filter((_, index) => served[index] !== true)
      .map(
        ({ kind, apiVersion }) =>
          `the API server serves no ${kind} of ${apiVersion}: apply infra/platforms/kubernetes/crds.yaml of this version`,
      );
  } catch (error) {
    return [`the API server does not answer: ${reasonOf(error)}`];
  }
}
