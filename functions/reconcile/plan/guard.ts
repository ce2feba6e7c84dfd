// The deletion guard: a plan that would remove more than is plausible waits until the instance's share lets it (DESIGN 6, law 4).
import { DEFAULT_SHARE, parseShare } from '#core/deletion-share.ts';
import { DELETION_SHARE_ANNOTATION } from '#crds/group.ts';
import type { Action, ActionOf } from '../action.ts';
import { instancePathOf, isDeleted, objectIn, type Path, pathOf, type World } from '../world.ts';

/** Never too many. */
const ALWAYS = 10;

/** Removals of one kind on one instance that are not done. */
export interface Guarded {
  readonly instance: Path;
  readonly action: 'RetireScope' | 'DeleteKey';
  readonly count: number;
  readonly of: number;
}

/** The actions that may be done, and what is kept back. */
export function guardDeletions(
  actions: ReadonlyArray<Action>,
  world: World,
): { readonly actions: ReadonlyArray<Action>; readonly guarded: ReadonlyArray<Guarded> } {
  const removals = actions.filter((action) => isRemoval(action, world));
  const guarded = [...Map.groupBy(removals, ({ action, instance }) => `${action} ${instance}`).values()].flatMap(
    (group): Guarded[] => {
      const [{ action, instance } = { action: 'RetireScope', instance: '' } as const] = group;
      const view = world.instances.get(instance);
      const of = action === 'RetireScope' ? (view?.claims.size ?? 0) : countKeys(instance, world);
      const share = parseShare(view?.object.metadata.annotations?.[DELETION_SHARE_ANNOTATION] ?? '') ?? DEFAULT_SHARE;
      const isPlausible = group.length <= Math.max(ALWAYS, (of * share) / 100);
      return isPlausible ? [] : [{ instance, action, count: group.length, of }];
    },
  );
  const isGuarded = (action: Action) =>
    isRemoval(action, world) && guarded.some((one) => one.action === action.action && one.instance === action.instance);
  return { actions: actions.filter((action) => !isGuarded(action)), guarded };
}

/** What a person deleted does not count. */
function isRemoval(action: Action, world: World): action is ActionOf<Guarded['action']> {
  if (action.action !== 'DeleteKey' && action.action !== 'RetireScope') return false;
  const object = objectIn(world, action.kind, pathOf(action));
  return object === undefined || !isDeleted(object);
}

function countKeys(instance: Path, world: World): number {
  return [...world.keys.values()].filter(({ object }) => instancePathOf(object) === instance).length;
}

/** For the condition of the instance and for its event. */
export function toGuardedMessage({ action, count, of }: Guarded): string {
  const what = action === 'RetireScope' ? 'claims whose objects are gone' : 'keys of users';
  return (
    `a run would remove ${count} of ${of} ${what}, which is more than is plausible: nothing was removed; if it is meant, ` +
    `annotate the instance with ${DELETION_SHARE_ANNOTATION}=${Math.ceil((count * 100) / of)}%, until they are removed`
  );
}
