// The plan: what must be done. Pure and total: the same world and the same instant give the same actions.

import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import { type Action, identify, isForced } from './action.ts';
import { notReadyCause } from './plan/conditions-scope-object.ts';
import { createPlanContext, type PlanContext } from './plan/context.ts';
import { removeFinalizer } from './plan/deletion.ts';
import { type GuardedActions, guardDeletions } from './plan/deletion-guard.ts';
import { planInstance } from './plan/instance.ts';
import { planKey } from './plan/key.ts';
import { planNamespaceRows } from './plan/namespaces.ts';
import { planOwnedKey } from './plan/owned-key.ts';
import { planBlocks, planOrphanedClaims, planScopeOwner, planUnplannedKeys } from './plan/scope-object.ts';
import { planBlockedStatus, planInstanceStatus, planMalformedStatus, planScopeObjectStatus } from './plan/status.ts';
import { hasFinalizer, idOf, isDeleted, type Path, type ScopeObject, type World } from './world.ts';

/** Actions of one object are done in order, those of different objects concurrently. */
export interface Plan extends GuardedActions {
  readonly deferred: World['deferred'];
}

/** Steps while any are possible; after them the statuses. Empty: everything is as it should be. */
export function plan(world: World, now: Millis, hash: Hash): Plan {
  const context = createPlanContext(world, now, hash);
  const { actions, guarded } = guardDeletions(planSteps(context), context);
  const { true: steps = [], false: late = [] } = Object.groupBy(
    actions.filter((action) => isWorthTrying(action, world)),
    (action) => `${mayBegin(action, world)}` as const,
  );
  const deferred = findDeferred([...late, ...actions.filter((action) => isOvertaken(action, world))], context);
  if (steps.length > 0) return { actions: steps, guarded, deferred };
  const reports = planReports(context, { guarded, deferred });
  return { actions: reports.filter((action) => isWorthTrying(action, world)), guarded, deferred };
}

/** A VirtualKey also depends on the policies of its User and Teams. */
function findDeferred(late: ReadonlyArray<Action>, { world, chargedScopes }: PlanContext): World['deferred'] {
  if (late.length === 0) return world.deferred;
  const scopeObjects = late.filter(({ kind }) => kind !== 'GatewayInstance');
  const deferred = new Set([...world.deferred, ...scopeObjects.map((action) => idOf(action.kind, action))]);
  const isDeferred = isIn(deferred);
  for (const { object } of world.keys.values()) {
    const { charged, isWaiting } = chargedScopes(object);
    if (isWaiting || charged.some((scope) => isDeferred(scope.object)))
      deferred.add(idOf(object.kind, object.metadata));
  }
  return deferred;
}

const isIn =
  (ids: World['deferred']) =>
  ({ kind, metadata }: ScopeObject): boolean =>
    ids.has(idOf(kind, metadata));

/** Attempts of an action in one run, after another run was faster. */
const MAX_ATTEMPTS = 3;

/** Actions that are tried once in a run. The store of pushed snapshots may answer with its state of a minute ago. */
const ONCE: ReadonlySet<string> = new Set(['RecordEvent', 'ApplyWorkload', 'PushSnapshot']);

/** A step that fails again and again must not keep a status from being written. */
function isWorthTrying(action: Action, { attempts }: World): boolean {
  return (attempts.get(identify(action)) ?? 0) < (ONCE.has(action.action) ? 1 : MAX_ATTEMPTS);
}

/** Whether other runs wrote another policy each time. Then no status is written: this policy is not in force. */
const isOvertaken = (action: Action, world: World): boolean =>
  action.action === 'PutScope' &&
  !(action.isNew || isWorthTrying(action, world) || world.failures.has(idOf(action.kind, action)));

const mayBegin = (action: Action, { roundsLeft, isLate }: World): boolean =>
  roundsLeft > 1 && (!isLate || isForced(action));

function planSteps(context: PlanContext): ReadonlyArray<Action> {
  const { instances, users, teams, keys, malformed, deferred } = context.world;
  const isDeferred = isIn(deferred);
  return [
    ...[...instances.values()].flatMap((view) => planInstance(view, context)),
    ...[...instances].flatMap(([path, view]) => planNamespaceRows(path, view, context)),
    ...[...instances].flatMap(([path, view]) => planOrphanedClaims(path, view, context)),
    ...[...instances].flatMap(([path, view]) => planUnplannedKeys(path, view, context)),
    ...[...instances].flatMap(([path, view]) => planBlocks(path, view, context)),
    ...[...teams.values()].flatMap((team) => planScopeOwner(team, context)),
    ...[...users.values()].flatMap((user) => {
      const steps = [planScopeOwner(user, context), planOwnedKey(user, context)];
      // The VirtualKey of a deleted User is deleted before the User is released.
      return (isDeleted(user) ? steps.toReversed() : steps).flat();
    }),
    ...[...keys.values()].flatMap((view) => (isDeferred(view.object) ? [] : planKey(view, context))),
    ...[...malformed.values()]
      .filter((object) => isDeleted(object) && hasFinalizer(object))
      .map((object) => removeFinalizer(object, 'it is deleted', 'a resync finds its claim')),
  ];
}

function planReports(
  context: PlanContext,
  { guarded, deferred }: Pick<Plan, 'guarded' | 'deferred'>,
): ReadonlyArray<Action> {
  const { instances, users, teams, keys, malformed } = context.world;
  const isDeferred = isIn(deferred);
  // While it is not known whether its namespace is allowed, a scope object keeps its status, except for a block.
  const isLeft = (scopeObject: ScopeObject) =>
    isDeferred(scopeObject) || context.access(scopeObject).state === 'unknown';
  const inactive = new Set<Path>();
  const ofKeys = [...keys].flatMap(([path, view]) => {
    const { object } = view;
    if (isLeft(object)) {
      const block = planBlockedStatus(object, context);
      if (block.length > 0 || object.status?.isActive !== true) inactive.add(path);
      return block;
    }
    const problem = notReadyCause(object, context, view);
    if (problem !== undefined) inactive.add(path);
    return planScopeObjectStatus(object, context, problem, view);
  });
  const ofOwners = [...teams.values(), ...users.values()].flatMap((one) =>
    isLeft(one) ? planBlockedStatus(one, context) : planScopeObjectStatus(one, context, notReadyCause(one, context)),
  );
  return [
    ...[...instances.values()].flatMap((view) => planInstanceStatus(view, context, { guarded, inactive })),
    ...ofOwners,
    ...ofKeys,
    ...[...malformed.values()].flatMap((object) => planMalformedStatus(object, context)),
  ];
}
