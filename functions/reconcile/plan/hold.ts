// Does a plan want to delete more than it plausibly should? Then it is held and reported (DESIGN 6, law 4).
import { DEFAULT_SHARE, parseReleases, parseShare } from '#core/deletion-share.ts';
import { fingerprint } from '#core/fingerprint.ts';
import { DELETION_SHARE_ANNOTATION, RELEASE_DELETIONS_ANNOTATION } from '#crds/group.ts';
import type { Action } from '../action.ts';
import { type InstanceView, instancePathOf, objectIn, type Path, pathOf, type World } from '../world.ts';
import { about } from './about.ts';
import { mayStillArrive } from './ledger.ts';

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
  const removals = actions.filter((action) => isRemoval(action, world));
  const groups = Map.groupBy(removals, (action) => `${action.action} ${instanceOf(action, world)}`);
  const screened = [...groups.values()].map((all) => screen(all, world));
  const waiting = new Set(screened.flatMap(({ waits }) => waits));
  const pending = new Set(removals.map(nameOf));
  return {
    actions: [
      ...actions.filter((action) => !waiting.has(action)),
      ...screened.flatMap(({ record }) => record),
      ...[...world.instances.values()].flatMap((view) => planForgets(view, pending, world)),
    ],
    held: screened.flatMap(({ held }) => held),
  };
}

interface Verdict {
  /** Not now. */
  readonly waits: ReadonlyArray<Action>;
  readonly held: ReadonlyArray<Held>;
  readonly record: ReadonlyArray<Action>;
}

/**
 * Of one kind, on one instance. What was released goes ahead whatever came of the run that began with it; only the others
 * can be too many. A plan that a person names is remembered before anything of it is done.
 */
function screen(all: ReadonlyArray<Action>, world: World): Verdict {
  const none = { waits: [], held: [], record: [] };
  const [first] = all;
  const instance = first === undefined ? undefined : instanceOf(first, world);
  if (first === undefined || instance === undefined) return none;
  const view = world.instances.get(instance);
  const annotations = view?.object.metadata.annotations;
  const named = parseReleases(annotations?.[RELEASE_DELETIONS_ANNOTATION]);
  const released = [...(view?.released ?? [])].flatMap(([plan, ids]) => (named.has(plan) ? [ids] : []));
  const waits = all.filter((action) => !released.some((ids) => ids.has(nameOf(action))));
  const isClaim = first.action === 'RetireClaim';
  const of = isClaim ? (view?.claims.size ?? 0) : countKeys(instance, world);
  const share = parseShare(annotations?.[DELETION_SHARE_ANNOTATION] ?? '') ?? DEFAULT_SHARE;
  if (waits.length <= Math.max(ALWAYS, (of * share) / 100)) return none;
  const ids = waits.map(nameOf);
  const held: Held = {
    instance,
    action: isClaim ? 'RetireClaim' : 'DeleteKey',
    count: waits.length,
    of,
    release: fingerprint(ids),
  };
  if (view === undefined || !named.has(held.release) || !isWritable(view)) return { waits, held: [held], record: [] };
  const why = `its annotation lets ${waits.length} removals of ${whatOf(held)} go ahead, until they are done`;
  const record = { action: 'RecordRelease', ...about(view.object, why), instance, plan: held.release, ids } as const;
  return { waits, held: [], record: [record] };
}

/** Done, as a run sees that sees all; or taken back by whoever released it. */
function planForgets(view: InstanceView, pending: ReadonlySet<string>, world: World): Action[] {
  const { object, complete, released } = view;
  if (released.size === 0 || !isWritable(view) || object.metadata.deletionTimestamp !== undefined) return [];
  const named = parseReleases(object.metadata.annotations?.[RELEASE_DELETIONS_ANNOTATION]);
  // Where something else keeps a removal from being planned, nothing says that it is done.
  const isWhole = complete && !object.spec.paused && !mayStillArrive(view) && world.failures.size === 0;
  return [...released].flatMap(([plan, ids]): Action[] => {
    const isDone = isWhole && pending.isDisjointFrom(ids);
    if (named.has(plan) && !isDone) return [];
    const why = isDone
      ? 'all removals that were let go ahead are done'
      : 'its annotation no longer names these removals';
    return [{ action: 'ForgetRelease', ...about(object, why), instance: pathOf(object.metadata), plan }];
  });
}

const isWritable = ({ database }: InstanceView): boolean => database.ok && database.opened;

const nameOf = (action: Action): string =>
  action.action === 'RetireClaim' ? action.scopeId : action.action === 'DeleteKey' ? action.uid : '';

const whatOf = ({ action }: Held): string =>
  action === 'RetireClaim' ? 'claims whose objects are gone' : 'keys of users';

/** In words, for the condition of the instance and for its event. */
export function toHeldMessage(held: Held): string {
  const { count, of, release } = held;
  return (
    `a run would remove ${count} of ${of} ${whatOf(held)}, which is more than is plausible: nothing was removed; if it is meant, ` +
    `annotate the instance with ${RELEASE_DELETIONS_ANNOTATION}=${release}`
  );
}

function isRemoval(action: Action, world: World): boolean {
  if (action.action === 'DeleteKey') return world.users.get(pathOf(action))?.metadata.deletionTimestamp === undefined;
  if (action.action !== 'RetireClaim') return false;
  return objectIn(world, action.kind, pathOf(action))?.metadata.deletionTimestamp === undefined;
}

function instanceOf(action: Action, world: World): Path | undefined {
  if (action.action === 'RetireClaim') return action.instance;
  const user = world.users.get(pathOf(action));
  return user === undefined ? undefined : instancePathOf(user);
}

function countKeys(instance: Path, world: World): number {
  return [...world.keys.values()].filter(({ object }) => instancePathOf(object) === instance).length;
}
