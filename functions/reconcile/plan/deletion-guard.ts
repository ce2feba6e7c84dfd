// The deletion guard: what would remove more than is plausible waits until the instance's share lets it (DESIGN 6, law
// 4).
import { DEFAULT_SHARE, parseShare } from '#core/conditions/deletion-share.ts';
import { DELETION_SHARE_ANNOTATION } from '#crds/names/group.ts';
import type { Action, ActionOf, DeletionGuard } from '../action.ts';
import { claimKey, isDeleted, objectIn, pathOf, retainedSecret, type World } from '../world.ts';
import type { PlanContext } from './context.ts';

/** Never too many. */
const ALWAYS = 10;

type Removal = ActionOf<DeletionGuard['action']>;

export interface GuardedActions {
  readonly actions: ReadonlyArray<Action>;
  /** Deletions that wait, for they are too many. */
  readonly guarded: ReadonlyArray<DeletionGuard>;
}

/** Removals of one kind in one namespace. */
interface Group {
  readonly namespace: string;
  readonly removals: ReadonlyArray<Removal>;
  /** Those that were not asked for yet may be gone as well: in batches nothing would ever be too many. */
  readonly count: number;
  readonly of: number;
}

/** Tenants share an instance: one who loses too much of its own keeps no removal of the others waiting. */
export function guardDeletions(actions: ReadonlyArray<Action>, context: PlanContext): GuardedActions {
  const removals = actions.filter((action) => isRemoval(action, context.world));
  const waiting = new Set<Action>();
  const guarded = [...Map.groupBy(removals, ({ action, instance }) => `${action} ${instance}`).values()].flatMap(
    (of): DeletionGuard[] => {
      const [{ action, instance } = { action: 'RetireScope', instance: '' } as const] = of;
      const { object } = context.world.instances.get(instance) ?? {};
      const share = parseShare(object?.metadata.annotations?.[DELETION_SHARE_ANNOTATION] ?? '') ?? DEFAULT_SHARE;
      const groups = groupsOf(of, context);
      const tooMany = findTooMany(groups, share, context);
      for (const group of tooMany) for (const removal of group.removals) waiting.add(removal);
      return tooMany.length === 0 ? [] : [toGuard({ action, instance }, tooMany, groups.length)];
    },
  );
  return { actions: actions.filter((action) => !waiting.has(action)), guarded };
}

/** Removals of an object that a person deleted do not count. */
function isRemoval(action: Action, world: World): action is Removal {
  if (action.action !== 'DeleteKey' && action.action !== 'RetireScope') return false;
  const object = objectIn(world, action.kind, pathOf(action));
  return object === undefined || !isDeleted(object);
}

/**
 * All namespaces of an instance, with what would be removed there; also those that have nothing of it yet, because their
 * objects have just come to name it.
 */
function groupsOf(removals: ReadonlyArray<Removal>, { world, keysOf }: PlanContext): ReadonlyArray<Group> {
  const [{ action, instance } = { action: 'RetireScope', instance: '' }] = removals;
  const view = world.instances.get(instance);
  const isRetire = action === 'RetireScope';
  const there = isRetire
    ? [...(view?.claims.values() ?? [])].map(({ holder }) => holder.namespace)
    : keysOf(instance).map(({ metadata }) => metadata.namespace);
  const own = Map.groupBy(removals, ({ namespace }) => namespace);
  const present = Map.groupBy(there, (namespace) => namespace);
  return [...new Set([...present.keys(), ...own.keys()])].map((namespace) => {
    const removed = own.get(namespace) ?? [];
    const unsearched = isRetire ? (view?.unsearchedClaims.get(namespace) ?? 0) : 0;
    const count = removed.length + unsearched;
    return { namespace, removals: removed, count, of: Math.max(count, present.get(namespace)?.length ?? 0) };
  });
}

/**
 * Namespaces that lose too much of their own; and all others, if those together do. A key whose retained Secret is gone
 * counts in its namespace only: a person there deleted it.
 */
function findTooMany(groups: ReadonlyArray<Group>, share: number, context: PlanContext): ReadonlyArray<Group> {
  const isTooMany = ({ count, of }: Pick<Group, 'count' | 'of'>) => count > Math.max(ALWAYS, (of * share) / 100);
  const { true: large = [], false: others = [] } = Object.groupBy(groups, (group) => `${isTooMany(group)}` as const);
  // Claims that were not searched yet are not removed now.
  const alone = large.filter(({ removals }) => removals.length > 0);
  const unasked = others.map((group) => {
    const removals = group.removals.filter((removal) => !isRevoked(removal, context));
    return { ...group, removals, count: group.count - group.removals.length + removals.length };
  });
  const together = { count: sum(unasked, 'count'), of: sum(unasked, 'of') };
  return isTooMany(together) ? [...alone, ...unasked.filter(({ removals }) => removals.length > 0)] : alone;
}

function isRevoked(removal: Removal, { world }: PlanContext): boolean {
  if (removal.action !== 'RetireScope') return false;
  const claim = world.instances.get(removal.instance)?.claims.get(claimKey(removal.scope, removal.alias));
  return claim !== undefined && retainedSecret(claim) !== undefined;
}

const sum = (groups: ReadonlyArray<Group>, of: 'count' | 'of') => groups.reduce((all, group) => all + group[of], 0);

/** Namespaces that a message names. */
const MAX_NAMED = 3;

function toGuard(
  { action, instance }: Pick<DeletionGuard, 'action' | 'instance'>,
  tooMany: ReadonlyArray<Group>,
  namespaces: number,
): DeletionGuard {
  const [count, of] = [sum(tooMany, 'count'), sum(tooMany, 'of')];
  const share = Math.max(...tooMany.map((group) => Math.ceil((group.count * 100) / group.of)));
  const names = tooMany.slice(0, MAX_NAMED).map(({ namespace }) => namespace);
  const more = tooMany.length > MAX_NAMED ? ` and ${tooMany.length - MAX_NAMED} more` : '';
  const where = tooMany.length < namespaces ? ` in namespace ${names.join(', ')}${more}` : '';
  const what = action === 'RetireScope' ? 'claims whose objects are gone' : 'keys of users';
  const message =
    `a run would remove ${count} of ${of} ${what}${where}, which is more than is plausible: nothing was removed; if it is meant, ` +
    `annotate the instance with ${DELETION_SHARE_ANNOTATION}=${share}%, until they are removed`;
  return { instance, action, count, of, message };
}
