// What does every part of observing need?
import type { Millis } from '#core/ports/money.ts';
import type { ReconcileDeps } from '../deps.ts';
import type { Scope } from '../scope.ts';
import type { Memory } from './links.ts';

export interface Look {
  readonly deps: ReconcileDeps;
  readonly memory: Memory;
  readonly now: Millis;
  /** Whether it looks everywhere: then at databases too that were away a moment ago. */
  readonly sweeps: boolean;
  /** False on a dry run: then nothing is booked on the way. */
  readonly acts: boolean;
  /** What this run has found out of the cluster. */
  readonly discovered: { knative?: Promise<boolean | { readonly why: string }> };
}

/** `acts`: not a dry run. */
export function lookAt(scope: Scope, how: Pick<Look, 'deps' | 'memory' | 'acts'>): Look {
  return { ...how, now: how.deps.clock.now(), sweeps: scope.look === 'everywhere', discovered: {} };
}
