// The causes in a VirtualKey, User or Team itself for which it is blocked. Only this table has them. Each has its
// effect also while the object is deferred, not loaded, or deleted with `Retain`.
import type { OwnBlockingReason } from '#core/conditions/reasons.ts';
import type { Problem, ScopeObject } from '../world.ts';

/** The message if the object has the cause. */
type FindOwnBlocker = (scopeObject: Pick<ScopeObject, 'metadata' | 'spec'>) => string | undefined;

export const OWN_BLOCKERS: Readonly<Record<OwnBlockingReason, FindOwnBlocker>> = {
  Blocked: ({ spec }) => (spec.blocked ? 'spec.blocked is true' : undefined),
};

const OWN_REASONS = Object.keys(OWN_BLOCKERS) as ReadonlyArray<OwnBlockingReason>;

export const ownBlockersOf = (scopeObject: ScopeObject): ReadonlyArray<Problem<OwnBlockingReason>> =>
  OWN_REASONS.flatMap((reason) => {
    const message = OWN_BLOCKERS[reason](scopeObject);
    return message === undefined ? [] : [{ reason, message }];
  });

export const isOwnBlocked = (scopeObject: ScopeObject): boolean => ownBlockersOf(scopeObject).length > 0;

/** Members of `World.blocked` for those of the objects that are blocked. */
export const blocksOf = (scopeObjects: ReadonlyArray<ScopeObject>): ReadonlyArray<readonly [string, number]> =>
  scopeObjects.filter(isOwnBlocked).map(({ metadata: { uid, generation } }) => [uid, generation]);
