// The plan: what is to be done. Pure and total: the same world and the same instant give the same actions.
import type { Millis } from '#core/ports/money.ts';
import { type Action, identify } from './action.ts';
import { whyNot } from './plan/conditions-member.ts';
import { createPlanContext, type PlanContext } from './plan/context.ts';
import { removeFinalizer } from './plan/deletion.ts';
import { type Guarded, guardDeletions } from './plan/guard.ts';
import { planInstance } from './plan/instance.ts';
import { planKey } from './plan/key.ts';
import { planOrphanedClaims, planScopeOwner } from './plan/member.ts';
import { planOwnedKey } from './plan/owned-key.ts';
import { planInstanceStatus, planMalformedStatus, planMemberStatus } from './plan/status.ts';
import { hasFinalizer, isDeleted, type Path, type World } from './world.ts';

export interface Plan {
  /** Of one object in their order; of different objects concurrently. */
  readonly actions: ReadonlyArray<Action>;
  /** Deletions that wait, for they are too many. */
  readonly guarded: ReadonlyArray<Guarded>;
}

/** Steps while there are any that can be taken; after them the statuses. Empty: everything is as it should be. */
export function plan(world: World, now: Millis): Plan {
  const context = createPlanContext(world, now);
  const { actions, guarded } = guardDeletions(planSteps(context), world);
  const steps = world.roundsLeft > 1 ? actions.filter((action) => isWorthTrying(action, world)) : [];
  if (steps.length > 0) return { actions: steps, guarded };
  return { actions: planReports(context, guarded).filter((action) => isWorthTrying(action, world)), guarded };
}

/** So often in one run, when another run was faster. */
const MAX_ATTEMPTS = 3;

/** A step that fails again and again keeps no status from being written. */
function isWorthTrying(action: Action, { attempts }: World): boolean {
  const isOnce = action.action === 'RecordEvent' || action.action === 'ApplyWorkload';
  return (attempts.get(identify(action)) ?? 0) < (isOnce ? 1 : MAX_ATTEMPTS);
}

function planSteps(context: PlanContext): ReadonlyArray<Action> {
  const { instances, users, teams, keys, malformed } = context.world;
  return [
    ...[...instances.values()].flatMap((view) => planInstance(view, context)),
    ...[...instances].flatMap(([path, view]) => planOrphanedClaims(path, view, context)),
    ...[...teams.values()].flatMap((team) => planScopeOwner(team, context)),
    ...[...users.values()].flatMap((user) => {
      const steps = [planScopeOwner(user, context), planOwnedKey(user, context)];
      // A user that goes takes its key along.
      return (isDeleted(user) ? steps.toReversed() : steps).flat();
    }),
    ...[...keys.values()].flatMap((view) => (view.isDeferred ? [] : planKey(view, context))),
    ...[...malformed.values()]
      .filter((object) => isDeleted(object) && hasFinalizer(object))
      .map((object) => removeFinalizer(object, 'it is deleted', 'what it claimed is found by a sweep')),
  ];
}

function planReports(context: PlanContext, guarded: ReadonlyArray<Guarded>): ReadonlyArray<Action> {
  const { instances, users, teams, keys, malformed } = context.world;
  const inactive = new Set<Path>();
  const ofKeys = [...keys].flatMap(([path, view]) => {
    const problem = whyNot(view.object, context, view);
    if (problem !== undefined) inactive.add(path);
    return view.isDeferred ? [] : planMemberStatus(view.object, context, problem, view);
  });
  return [
    ...[...instances.values()].flatMap((view) => planInstanceStatus(view, context, { guarded, inactive })),
    ...[...teams.values(), ...users.values()].flatMap((one) => planMemberStatus(one, context, whyNot(one, context))),
    ...ofKeys,
    ...[...malformed.values()].flatMap((object) => planMalformedStatus(object, context)),
  ];
}
