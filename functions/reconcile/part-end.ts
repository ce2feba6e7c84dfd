// The end of a part of a run, with what the report of the run needs.

import { reasonOf } from '#core/failure/error-text.ts';
import { ClusterError } from '#core/ports/cluster.ts';
import type { Action, DeletionGuard, Outcome, Result } from './action.ts';
import type { ObserveContext } from './observe/context.ts';
import type { Part } from './observe/parts.ts';
import type { InstanceView, Path, World } from './world.ts';

export interface PartEnd {
  readonly world: World;
  readonly results: ReadonlyArray<{
    readonly action: Pick<Action, 'action'>;
    readonly outcome: Pick<Outcome, 'ended'>;
  }>;
  readonly guarded: ReadonlyArray<DeletionGuard>;
}

/** The end of a part, with everything that it observed and did. */
export interface ConvergedPart extends PartEnd {
  readonly results: ReadonlyArray<Result>;
}

/** Leaves out what is large: snapshots, claims, sums, and the written objects. */
export function toPartEnd({ world, results, guarded }: ConvergedPart): PartEnd {
  const none = { claims: new Map(), sums: new Map(), parts: new Map() };
  const instances = [...world.instances].map(([path, view]): [Path, InstanceView] => [
    path,
    { ...view, ...none, snapshot: { ...view.snapshot, text: '' } },
  ]);
  return {
    world: { ...world, instances: new Map(instances) },
    results: results.map(({ action: { action }, outcome: { ended } }) => ({ action: { action }, outcome: { ended } })),
    guarded,
  };
}

/**
 * A part that cannot continue does not stop the others: its instances count as not observed. Throws if the API server
 * cannot be read.
 */
export function toFailedPartEnd({ deps }: ObserveContext, part: Part, error: unknown): PartEnd {
  if (error instanceof ClusterError) throw error;
  const why = reasonOf(error);
  const { world } = part;
  const instances = [...world.listed.keys()];
  deps.log.error('a part of a run failed', { instances, why });
  for (const path of instances) world.unobserved.set(path, why);
  return {
    world: { ...world, instances: new Map() },
    results: [],
    guarded: [],
  };
}
