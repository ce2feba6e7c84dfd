// The context of planning: what a plan reads more than once.

import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import { createDidYouMean } from '#core/rules/nearest-name.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { type InstanceView, instancePathOf, type OwnClaim, type Path, type ScopeObject, type World } from '../world.ts';
import { accessOf, claimOf } from './access.ts';
import { createChargedScopes } from './charged-scopes.ts';
import { createClaimants } from './claimants.ts';
import { evaluateInstance, type InstanceConditions } from './conditions-instance.ts';

export type PlanContext = ReturnType<typeof createPlanContext>;

export function createPlanContext(world: World, now: Millis, hash: Hash) {
  const didYouMean = createDidYouMean();
  const evaluated = new Map<InstanceView, InstanceConditions>();
  const evaluate = (view: InstanceView): InstanceConditions => {
    const conditions = evaluated.get(view) ?? evaluateInstance(view, world, didYouMean);
    evaluated.set(view, conditions);
    return conditions;
  };
  const access = (scopeObject: ScopeObject) => accessOf(scopeObject, world, evaluate);
  const ownClaim = (scopeObject: ScopeObject): OwnClaim | undefined => {
    const found = access(scopeObject);
    if (found.state !== 'allowed') return undefined;
    const { instance } = found;
    const { state, claim } = claimOf(scopeObject, instance);
    return state === 'ours' ? { instance, claim } : undefined;
  };
  const chargedScopes = createChargedScopes(world, access);
  return {
    world,
    now,
    hash,
    evaluate,
    access,
    ownClaim,
    chargedScopes,
    ...createClaimants(world, access),
    ...createKeysOf(world),
  };
}

function createKeysOf({ keys }: World) {
  let byInstance: ReadonlyMap<Path, ReadonlyArray<VirtualKey>> | undefined;
  const group = () =>
    Map.groupBy(
      [...keys.values()].map(({ object }) => object),
      instancePathOf,
    );
  return {
    /** The loaded VirtualKeys of this instance. */
    keysOf: (instance: Path): ReadonlyArray<VirtualKey> => {
      byInstance ??= group();
      return byInstance.get(instance) ?? [];
    },
  };
}
