// What is to be done? Pure and total: the same world and the same instant give the same actions.

import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import { FINALIZER } from '#crds/group.ts';
import type { Action } from './action.ts';
import { about } from './plan/about.ts';
import { planLeftovers } from './plan/claims.ts';
import { type Held, holdDeletes, toHeldMessage } from './plan/hold.ts';
import { planInstance } from './plan/instance.ts';
import { planKeyStatus } from './plan/key-status.ts';
import { planKey, planTeam, planUser } from './plan/members.ts';
import { createOutlook, type Outlook } from './plan/outlook.ts';
import { planInstanceStatus, planMalformedStatus, planScopeStatus } from './plan/status.ts';
import type { World } from './world.ts';

export interface Plan {
  /** Of one object in their order; of different objects at once. */
  readonly actions: ReadonlyArray<Action>;
  /** What it would remove and does not, because it is too much. */
  readonly held: ReadonlyArray<Held>;
}

/**
 * Steps while there are any that can be taken; after them what the statuses should say. Empty: everything is as it should be.
 * `isWorthTrying`: a step that fails again and again keeps nobody's status from being written.
 */
export function plan(
  world: World,
  now: Millis,
  hash: Hash,
  isWorthTrying: (action: Action) => boolean = () => true,
): Plan {
  const outlook = createOutlook(world, now, hash);
  const { actions, held } = holdDeletes(planSteps(outlook), world);
  const steps = actions.filter(isWorthTrying);
  if (steps.length > 0) return { actions: steps, held };
  const told = [...planStatuses(outlook, held), ...held.flatMap((one) => tellHeld(one, world))];
  return { actions: told.filter(isWorthTrying), held };
}

function planSteps(outlook: Outlook): Action[] {
  const { world } = outlook;
  return [
    ...[...world.instances.values()].flatMap((view) => planInstance(view, outlook)),
    ...[...world.instances].flatMap(([path, view]) => planLeftovers(path, view, outlook)),
    ...[...world.teams.values()].flatMap((team) => planTeam(team, outlook)),
    ...[...world.users.values()].flatMap((user) => planUser(user, outlook)),
    ...[...world.keys.values()].flatMap((key) => planKey(key, outlook)),
    ...[...world.malformed.values()]
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(FINALIZER))
      .map(
        (object): Action => ({
          action: 'RemoveFinalizer',
          ...about(object, 'it is deleted'),
          letGo: 'what it claimed is found by a sweep',
        }),
      ),
  ];
}

function planStatuses(outlook: Outlook, held: ReadonlyArray<Held>): Action[] {
  const { world } = outlook;
  return [
    ...[...world.instances.values()].flatMap((view) => planInstanceStatus(view, outlook, held)),
    ...[...world.teams.values()].flatMap((team) => planScopeStatus(team, outlook)),
    ...[...world.users.values()].flatMap((user) => planScopeStatus(user, outlook)),
    ...[...world.keys.values()].flatMap((key) => planKeyStatus(key, outlook)),
    ...[...world.malformed.values()].flatMap((object) => planMalformedStatus(object, outlook)),
  ];
}

/** An event of the instance; the same plan is told once. */
function tellHeld(held: Held, world: World): Action[] {
  const { instance, release } = held;
  const object = world.instances.get(instance)?.object;
  if (object === undefined) return [];
  const once = `DeletionHeld/${release}`;
  const told = { type: 'Warning', reason: 'DeletionHeld', message: toHeldMessage(held), once } as const;
  return [{ action: 'RecordEvent', ...about(object, 'people are told DeletionHeld'), ...told }];
}
