// The deletion guard: a plan that would remove more than is plausible waits until the instance's share lets it (DESIGN 6, law 4).
import { DEFAULT_SHARE, parseShare } from '#core/deletion-share.ts';
import { DELETION_SHARE_ANNOTATION } from '#crds/group.ts';
import type { Action } from '../action.ts';
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

/** The actions that may be done, and what is kept back. Removals of objects that a person deleted do not count. */
export function guardDeletions(
  actions: ReadonlyArray<Action>,
  world: World,
): { readonly actions: ReadonlyArray<Action>; readonly guarded: ReadonlyArray<Guarded> } {
  const removals = actions.filter((action) => isRemoval(action, world));
  const groups = Map.groupBy(removals, (action) => `${action.action} ${instanceOf(action, world)}`);
  const tooMany = [...groups.values()].flatMap((group) => {
    const guarded = guardOf(group, world);
    return guarded === undefined ? [] : [{ group, guarded }];
  });
  const waiting = new Set(tooMany.flatMap(({ group }) => group));
  return {
    actions: actions.filter((action) => !waiting.has(action)),
    guarded: tooMany.map(({ guarded }) => guarded),
  };
}

function guardOf(group: ReadonlyArray<Action>, world: World): Guarded | undefined {
  const [first] = group;
  const instance = first && instanceOf(first, world);
  if (first === undefined || instance === undefined) return undefined;
  const action = first.action === 'RetireScope' ? 'RetireScope' : 'DeleteKey';
  const view = world.instances.get(instance);
  const of = action === 'RetireScope' ? (view?.claims.size ?? 0) : countKeys(instance, world);
  const share = parseShare(view?.object.metadata.annotations?.[DELETION_SHARE_ANNOTATION] ?? '') ?? DEFAULT_SHARE;
  if (group.length <= Math.max(ALWAYS, (of * share) / 100)) return undefined;
  return { instance, action, count: group.length, of };
}

/** For the condition of the instance and for its event. */
export function toGuardedMessage({ action, count, of }: Guarded): string {
  const what = action === 'RetireScope' ? 'claims whose objects are gone' : 'keys of users';
  return (
    `a run would remove ${count} of ${of} ${what}, which is more than is plausible: nothing was removed; if it is meant, ` +
    `annotate the instance with ${DELETION_SHARE_ANNOTATION}=${Math.ceil((count * 100) / of)}%, until they are removed`
  );
}

function isRemoval(action: Action, world: World): boolean {
  if (action.action !== 'DeleteKey' && action.action !== 'RetireScope') return false;
  const object = objectIn(world, action.kind, pathOf(action));
  return object === undefined || !isDeleted(object);
}

function instanceOf(action: Action, world: World): Path | undefined {
  if (action.action === 'RetireScope') return action.instance;
  const user = world.users.get(pathOf(action));
  return user === undefined ? undefined : instancePathOf(user);
}

function countKeys(instance: Path, world: World): number {
  return [...world.keys.values()].filter(({ object }) => instancePathOf(object) === instance).length;
}
