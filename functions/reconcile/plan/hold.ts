// Does a plan want to delete more than it plausibly should? Then it is held and reported (DESIGN 6, law 4).
import { DEFAULT_SHARE, parseReleases, parseShare } from '#core/deletion-share.ts';
import { fingerprint } from '#core/fingerprint.ts';
import { DELETION_SHARE_ANNOTATION, RELEASE_DELETIONS_ANNOTATION } from '#crds/group.ts';
import type { Action } from '../action.ts';
import { instancePathOf, type Path, type World } from '../world.ts';

/** Never too many. */
const ALWAYS = 10;

export interface Held {
  readonly instance: Path;
  readonly action: 'RetireClaim' | 'DeleteKey';
  readonly count: number;
  readonly of: number;
  /** Names exactly this plan: in an annotation of the instance it lets it go ahead, and no other. */
  readonly release: string;
}

export interface Screened {
  readonly actions: ReadonlyArray<Action>;
  readonly held: ReadonlyArray<Held>;
}

/** Objects that a person deleted do not count: only what the plan by itself wants to remove. */
export function holdDeletes(actions: ReadonlyArray<Action>, world: World): Screened {
  const removals = Map.groupBy(
    actions.filter((action) => isRemoval(action, world)),
    (action) => `${action.action} ${instanceOf(action, world)}`,
  );
  const held = [...removals.values()].flatMap((all): Array<Held & { readonly all: ReadonlyArray<Action> }> => {
    const [first] = all;
    const instance = first === undefined ? undefined : instanceOf(first, world);
    if (first === undefined || instance === undefined) return [];
    const isClaim = first.action === 'RetireClaim';
    const of = isClaim ? (world.instances.get(instance)?.claims.size ?? 0) : countKeys(instance, world);
    const annotations = world.instances.get(instance)?.object.metadata.annotations;
    const share = parseShare(annotations?.[DELETION_SHARE_ANNOTATION] ?? '') ?? DEFAULT_SHARE;
    if (all.length <= Math.max(ALWAYS, (of * share) / 100)) return [];
    const release = fingerprint(all.map(nameOf));
    if (parseReleases(annotations?.[RELEASE_DELETIONS_ANNOTATION]).has(release)) return [];
    return [{ instance, action: isClaim ? 'RetireClaim' : 'DeleteKey', count: all.length, of, release, all }];
  });
  const dropped = new Set(held.flatMap(({ all }) => all));
  return {
    actions: actions.filter((action) => !dropped.has(action)),
    held: held.map(({ all: _all, ...rest }) => rest),
  };
}

const nameOf = (action: Action): string =>
  action.action === 'RetireClaim' ? action.scopeId : action.action === 'DeleteKey' ? action.uid : '';

/** In words, for the condition of the instance and for its event. */
export function toHeldMessage({ action, count, of, release }: Held): string {
  const what = action === 'RetireClaim' ? 'claims whose objects are gone' : 'keys of users';
  return (
    `a run would remove ${count} of ${of} ${what}, which is more than is plausible: nothing was removed; if it is meant, ` +
    `annotate the instance with ${RELEASE_DELETIONS_ANNOTATION}=${release}`
  );
}

function isRemoval(action: Action, world: World): boolean {
  if (action.action === 'DeleteKey')
    return world.users.get(`${action.namespace}/${action.name}`)?.metadata.deletionTimestamp === undefined;
  if (action.action !== 'RetireClaim') return false;
  const at = `${action.namespace}/${action.name}`;
  const object =
    action.kind === 'VirtualKey'
      ? world.keys.get(at)?.object
      : action.kind === 'User'
        ? world.users.get(at)
        : world.teams.get(at);
  return object?.metadata.deletionTimestamp === undefined;
}

function instanceOf(action: Action, world: World): Path | undefined {
  if (action.action === 'RetireClaim') return action.instance;
  const user = world.users.get(`${action.namespace}/${action.name}`);
  return user === undefined ? undefined : instancePathOf(user);
}

function countKeys(instance: Path, world: World): number {
  return [...world.keys.values()].filter(({ object }) => instancePathOf(object) === instance).length;
}
