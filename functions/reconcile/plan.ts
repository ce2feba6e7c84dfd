// What is to be done? Pure and total: the same world and the same instant give the same actions.
import type { Millis } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import { FINALIZER } from '#crds/group.ts';
import type { Action } from './action.ts';
import { type Due, EVERYTHING, type Keys } from './due.ts';
import { about } from './plan/about.ts';
import { planLeftovers } from './plan/claims.ts';
import { type Guarded, guardDeletions, toGuardedMessage } from './plan/guard.ts';
import { planInstance } from './plan/instance.ts';
import { whyNotKey } from './plan/judge-member.ts';
import { planKeyStatus } from './plan/key-status.ts';
import { planKey, planTeam, planUser } from './plan/members.ts';
import { createOutlook, type Outlook } from './plan/outlook.ts';
import { planInstanceStatus, planMalformedStatus, planScopeStatus, TOO_MANY_DELETIONS } from './plan/status.ts';
import { tell } from './plan/tell.ts';
import type { KeyView, Path, World } from './world.ts';

export interface Plan {
  /** Of one object in their order; of different objects at once. */
  readonly actions: ReadonlyArray<Action>;
  /** What it would remove and does not, because it is too much. */
  readonly guarded: ReadonlyArray<Guarded>;
  /** What a plan of the same world would have to look at: all other keys had nothing to do. */
  readonly due: Due;
}

/**
 * Steps while there are any that can be taken; after them what the statuses should say. Empty: everything is as it should be.
 * `isWorthTrying`: a step that fails again and again keeps nobody's status from being written. `due`: the keys to look at.
 */
export function plan(
  world: World,
  now: Millis,
  hash: Hash,
  isWorthTrying: (action: Action) => boolean = () => true,
  due: Due = EVERYTHING,
): Plan {
  const outlook = createOutlook(world, now, hash);
  const planned = planSteps(outlook, due);
  const { actions, guarded } = guardDeletions(planned.actions, world);
  const steps = actions.filter(isWorthTrying);
  if (steps.length > 0) return { actions: steps, guarded, due: { ...due, steps: planned.busy } };
  const told = planStatuses(outlook, guarded, due);
  const events = guarded.flatMap((one) => tellGuarded(one, world));
  const left = { steps: planned.busy, statuses: told.busy, inactive: told.inactive };
  return { actions: [...told.actions, ...events].filter(isWorthTrying), guarded, due: left };
}

interface Planned {
  readonly actions: ReadonlyArray<Action>;
  /** Keys with something among them, and keys that wait for what is done about others. */
  readonly busy: Set<Path>;
}

function planSteps(outlook: Outlook, due: Due): Planned {
  const { world } = outlook;
  const keys = planKeys(outlook, due.steps, (view) => (view.later === true ? [] : planKey(view, outlook)));
  const actions = [
    ...[...world.instances.values()].flatMap((view) => planInstance(view, outlook)),
    ...[...world.instances].flatMap(([path, view]) => planLeftovers(path, view, outlook)),
    ...[...world.teams.values()].flatMap((team) => planTeam(team, outlook)),
    ...[...world.users.values()].flatMap((user) => planUser(user, outlook)),
    ...keys.actions,
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
  return { actions, busy: keys.busy };
}

function planStatuses(
  outlook: Outlook,
  guarded: ReadonlyArray<Guarded>,
  due: Due,
): Planned & { readonly inactive: ReadonlySet<Path> } {
  const { world } = outlook;
  const inactive = new Set(due.statuses === 'all' ? [] : due.inactive);
  const keys = planKeys(outlook, due.statuses, (view, path) => {
    const problem = whyNotKey(view, outlook);
    if (problem === undefined) inactive.delete(path);
    else inactive.add(path);
    return view.later === true ? [] : planKeyStatus(view, outlook, problem);
  });
  const actions = [
    ...[...world.instances.values()].flatMap((view) => planInstanceStatus(view, outlook, { guarded, inactive })),
    ...[...world.teams.values()].flatMap((team) => planScopeStatus(team, outlook)),
    ...[...world.users.values()].flatMap((user) => planScopeStatus(user, outlook)),
    ...keys.actions,
    ...[...world.malformed.values()].flatMap((object) => planMalformedStatus(object, outlook)),
  ];
  return { actions, busy: keys.busy, inactive };
}

function planKeys(outlook: Outlook, due: Keys, planOne: (view: KeyView, path: Path) => ReadonlyArray<Action>): Planned {
  const { keys } = outlook.world;
  const actions: Action[] = [];
  const busy = new Set<Path>();
  for (const path of due === 'all' ? keys.keys() : due) {
    const view = keys.get(path);
    if (view === undefined) continue;
    const own = planOne(view, path);
    for (const action of own) actions.push(action);
    if (own.length > 0 || waits(view, outlook)) busy.add(path);
  }
  return { actions, busy };
}

/** Whether it has not got its alias: that changes with what others do. */
function waits({ object }: KeyView, outlook: Outlook): boolean {
  const standing = outlook.standing(object);
  return standing.instance !== undefined && outlook.claim(object, standing.instance).state !== 'ours';
}

/** An event of the instance; the same plan is told once. */
function tellGuarded(guarded: Guarded, world: World): Action[] {
  const { instance, action, count, of } = guarded;
  const object = world.instances.get(instance)?.object;
  if (object === undefined) return [];
  const once = `${TOO_MANY_DELETIONS}/${action}/${count}/${of}`;
  return [tell(object, { type: 'Warning', reason: TOO_MANY_DELETIONS, message: toGuardedMessage(guarded), once })];
}
