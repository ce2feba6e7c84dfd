// The context in which actions are done, and their outcomes.
import type { Reason } from '#core/conditions/reasons.ts';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { KubeObject, WriteResult } from '#core/ports/cluster.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { type KindName, kindOf } from '#crds/kinds/kinds.ts';
import type { Action, ActionName, ActionOf, Outcome } from '../action.ts';
import type { DatabaseLink } from '../memory.ts';
import type { Observation, ObserveContext } from '../observe/context.ts';
import type { PartTimeLimits } from '../observe/share.ts';
import { idOf, type MalformedObject, type OwnObject, objectIn, pathOf } from '../world.ts';

/** The world as it was when the actions were planned. */
export interface ActContext extends Pick<ObserveContext, 'deps' | 'memory' | 'now' | 'roundRobin'>, Observation {
  readonly timeLimits: PartTimeLimits;
  /** New values of VirtualKeys and their scopes, by path, from the write of the row until that of the Secret. */
  readonly newValues: Map<string, { readonly value: string; readonly scopeId: ScopeId }>;
}

/** Handlers by the name of the action that each carries out. */
export type Handlers = {
  readonly [Name in ActionName]?: (action: ActionOf<Name>, context: ActContext) => Promise<Outcome>;
};

export const doneOutcome = (object?: KubeObject): Outcome => ({
  ended: 'done',
  ...(object === undefined ? {} : { object }),
});
export const conflictOutcome: Outcome = { ended: 'conflict' };
export const failedOutcome = (message: string, reason: Reason = 'ReconcileFailed'): Outcome => ({
  ended: 'failed',
  problem: { reason, message },
});

export function toOutcome(written: WriteResult<unknown>): Outcome {
  if (written.ok) return doneOutcome();
  const { refusal, message } = written;
  if (refusal === 'terminating') return { ended: 'skipped', problem: { reason: 'ReconcileFailed', message } };
  return refusal === 'conflict' || refusal === 'gone' || refusal === 'exists'
    ? conflictOutcome
    : failedOutcome(message);
}

/** The outcome of a removal: an object that is already gone is removed. */
export const toRemoved = (written: WriteResult<unknown>): Outcome =>
  !written.ok && written.refusal === 'gone' ? doneOutcome() : toOutcome(written);

/** The database of the action's instance. */
export function linkOf(action: Action, { links }: ActContext): DatabaseLink {
  const link = links.get('instance' in action ? action.instance : pathOf(action));
  if (link === undefined) throw new DatabaseUnreachable('the database of the instance cannot be reached');
  return link;
}

export interface ObjectReference extends Pick<Action, 'namespace' | 'name'> {
  readonly kind: KindName;
}

/** The object of an action, as it was observed; undefined for a namespace. */
export const objectOf = (
  at: Pick<Action, 'kind' | 'namespace' | 'name'>,
  { world }: ActContext,
): OwnObject | MalformedObject | undefined =>
  objectIn(world, at.kind, pathOf(at)) ?? world.malformed.get(idOf(at.kind, at));

/**
 * Whether the object is as it was when the action was planned: a slow run never undoes what a faster one did, and no
 * deleted object comes back as a row.
 */
export async function isAsPlanned(at: ObjectReference, context: ActContext): Promise<boolean> {
  const planned = objectOf(at, context)?.metadata;
  const found = await context.deps.cluster.get(kindOf[at.kind], at.namespace, at.name);
  const now = found?.metadata;
  return (
    now?.uid === planned?.uid &&
    now?.generation === planned?.generation &&
    now?.deletionTimestamp === planned?.deletionTimestamp
  );
}
