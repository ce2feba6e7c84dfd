// The plan: what is to be done. Pure and total: the same world and the same instant give the same actions.

import { DEFAULT_SHARE, parseShare } from '#core/conditions/deletion-share.ts';
import type { Millis } from '#core/ports/money.ts';
import { DELETION_SHARE_ANNOTATION } from '#crds/names/group.ts';
import { type Action, type ActionOf, type DeletionGuard, identify, isForced } from './action.ts';
import { whyNot } from './plan/conditions-member.ts';
import { createPlanContext, type PlanContext } from './plan/context.ts';
import { removeFinalizer } from './plan/deletion.ts';
import { planInstance } from './plan/instance.ts';
import { planKey } from './plan/key.ts';
import { planOrphanedClaims, planScopeOwner } from './plan/member.ts';
import { planOwnedKey } from './plan/owned-key.ts';
import { planInstanceStatus, planMalformedStatus, planMemberStatus } from './plan/status.ts';
import { hasFinalizer, isDeleted, objectIn, type Path, pathOf, type World } from './world.ts';

export interface Plan {
  /** Actions of one object go in order, those of different objects concurrently. */
  readonly actions: ReadonlyArray<Action>;
  /** Deletions that wait, for they are too many. */
  readonly guarded: ReadonlyArray<DeletionGuard>;
}

/** Steps while there are any that can be taken; after them the statuses. Empty: everything is as it should be. */
export function plan(world: World, now: Millis): Plan {
  const context = createPlanContext(world, now);
  const { actions, guarded } = guardDeletions(planSteps(context), context);
  const steps = actions.filter((action) => isWorthTrying(action, world) && mayBegin(action, world));
  if (steps.length > 0) return { actions: steps, guarded };
  return { actions: planReports(context, guarded).filter((action) => isWorthTrying(action, world)), guarded };
}

/** Attempts of an action in one run, when another run was faster. */
const MAX_ATTEMPTS = 3;

/** The store of pushed snapshots may answer what it had a minute ago. */
const ONCE: ReadonlySet<string> = new Set(['RecordEvent', 'ApplyWorkload', 'PushSnapshot']);

/** A step that fails again and again keeps no status from being written. */
function isWorthTrying(action: Action, { attempts }: World): boolean {
  return (attempts.get(identify(action)) ?? 0) < (ONCE.has(action.action) ? 1 : MAX_ATTEMPTS);
}

const mayBegin = (action: Action, { roundsLeft, isLate }: World): boolean =>
  roundsLeft > 1 && (!isLate || isForced(action));

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
      .map((object) => removeFinalizer(object, 'it is deleted', 'what it claimed is found by a resync')),
  ];
}

function planReports(context: PlanContext, guarded: ReadonlyArray<DeletionGuard>): ReadonlyArray<Action> {
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

/** Never too many. */
const ALWAYS = 10;

/**
 * The deletion guard: what would remove more than is plausible waits until the instance's share lets it (DESIGN 6, law
 * 4).
 */
function guardDeletions(actions: ReadonlyArray<Action>, { world, keysOf }: PlanContext): Plan {
  const removals = actions.filter((action) => isRemoval(action, world));
  const guarded = [...Map.groupBy(removals, ({ action, instance }) => `${action} ${instance}`).values()].flatMap(
    (group): DeletionGuard[] => {
      const [{ action, instance } = { action: 'RetireScope', instance: '' } as const] = group;
      const view = world.instances.get(instance);
      const isRetire = action === 'RetireScope';
      const of = isRetire ? (view?.claims.size ?? 0) : keysOf(instance).length;
      const share = parseShare(view?.object.metadata.annotations?.[DELETION_SHARE_ANNOTATION] ?? '') ?? DEFAULT_SHARE;
      // Those that were not asked for yet may be gone as well: in batches nothing would ever be too many.
      const count = group.length + (isRetire ? (view?.unsearchedClaims ?? 0) : 0);
      if (count <= Math.max(ALWAYS, (of * share) / 100)) return [];
      const what = isRetire ? 'claims whose objects are gone' : 'keys of users';
      const message =
        `a run would remove ${count} of ${of} ${what}, which is more than is plausible: nothing was removed; if it is meant, ` +
        `annotate the instance with ${DELETION_SHARE_ANNOTATION}=${Math.ceil((count * 100) / of)}%, until they are removed`;
      return [{ instance, action, count, of, message }];
    },
  );
  const waiting = new Set(guarded.map(({ action, instance }) => `${action} ${instance}`));
  const isGuarded = (action: Action) => isRemoval(action, world) && waiting.has(`${action.action} ${action.instance}`);
  return { actions: actions.filter((action) => !isGuarded(action)), guarded };
}

/** Removals of an object that a person deleted do not count. */
function isRemoval(action: Action, world: World): action is ActionOf<DeletionGuard['action']> {
  if (action.action !== 'DeleteKey' && action.action !== 'RetireScope') return false;
  const object = objectIn(world, action.kind, pathOf(action));
  return object === undefined || !isDeleted(object);
}
