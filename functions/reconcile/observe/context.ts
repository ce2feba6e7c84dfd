// The context of observing: the platform, the scope, the instant.
import type { Millis } from '#core/ports/money.ts';
import { reasonOf } from '#core/reason.ts';
import type { ReconcileDeps } from '../deps.ts';
import type { Link, Memory } from '../memory.ts';
import type { Scope } from '../scope.ts';
import { PARTS } from '../workload/parts.ts';
import type { Path, World } from '../world.ts';

/** `Draft`: the world while it is observed. */
export interface Observed {
  readonly world: Draft;
  readonly links: Map<Path, Link>;
}

type Mutable<T> = T extends ReadonlyMap<infer K, infer V> ? Map<K, V> : T;
export type Draft = { -readonly [Name in keyof World]: Mutable<World[Name]> };

export interface ObserveContext {
  readonly deps: ReconcileDeps;
  readonly memory: Memory;
  readonly now: Millis;
  /** Whether the run looks everywhere. */
  readonly isSweep: boolean;
  /** Whether nothing may be written, not even bookings. */
  readonly isDry: boolean;
  /** Whether the cluster serves Knative; a text says why that could not be found out. Asked once in a run. */
  offersKnative(): Promise<boolean | string>;
}

export function createObserveContext(
  deps: ReconcileDeps,
  memory: Memory,
  scope: Scope,
  isDry: boolean,
): ObserveContext {
  let knative: Promise<boolean | string> | undefined;
  const offersKnative = () => {
    knative ??= deps.cluster.serves(PARTS.KnativeService).catch(reasonOf);
    return knative;
  };
  return { deps, memory, now: deps.clock.now(), isSweep: scope.look === 'everywhere', isDry, offersKnative };
}
