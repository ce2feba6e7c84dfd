// The context of observing: the platform, the listed objects, and the time of the run.
import { reasonOf } from '#core/failure/error-text.ts';
import type { ReconcileDependencies } from '../deps.ts';
import { PROCESS_LIMITS } from '../limits.ts';
import type { DatabaseLink, Memory } from '../memory.ts';
import { countByNamespace, createRoundRobin } from '../round-robin.ts';
import type { RunTarget } from '../run-target.ts';
import { WORKLOAD_OBJECTS } from '../workload/workload-objects.ts';
import type { Path, WorldBuilder } from '../world.ts';
import { loadObjects } from './objects.ts';
import { withOwnReads } from './own-reads.ts';
import { createSharedReads } from './shared-reads.ts';

export interface Observation {
  readonly world: WorldBuilder;
  readonly links: Map<Path, DatabaseLink>;
}

export type ObserveContext = Awaited<ReturnType<typeof createObserveContext>>;

/**
 * Lists the objects of a run's target. Rejects if the API server cannot be read: then nothing is planned. `isDry`:
 * nothing may be written, not even ledger rows.
 */
export async function createObserveContext(
  given: ReconcileDependencies,
  memory: Memory,
  target: RunTarget,
  isDry: boolean,
) {
  const deps = { ...given, cluster: withOwnReads(given.cluster, target) };
  const now = deps.clock.now();
  const knative = deps.cluster.serves(WORKLOAD_OBJECTS.KnativeService).catch(reasonOf);
  const { limits = PROCESS_LIMITS } = deps;
  const { gatewayImage, gatewayPullSecrets = [], secretPrefixes = [], version, manyProcesses } = deps.platform;
  const platform = { gatewayImage, gatewayPullSecrets, secretPrefixes, version, manyProcesses, knative: false };
  const all = await loadObjects({ cluster: deps.cluster, platform }, target, limits.objectBytes);
  all.platform = { ...platform, knative: await knative };
  const moves = all.complete === 'all' && !isDry;
  const roundRobin = createRoundRobin(memory.cursors, { hash: deps.hash, now, moves });
  const instanceCounts = countByNamespace(all.listed.values());
  const readSecret = createSharedReads(deps.cluster);
  return { deps, memory, now, isDry, all, limits, roundRobin, instanceCounts, readSecret };
}
