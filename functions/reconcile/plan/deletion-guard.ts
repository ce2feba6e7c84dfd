// The deletion guard: removals beyond a plausible share wait until the instance's annotation allows them (DESIGN 6, law
// 4).
import { DEFAULT_SHARE, parseShare } from '#core/conditions/deletion-share.ts';
import { DELETION_SHARE_ANNOTATION } from '#crds/names/group.ts';
import type { Action, ActionOf, DeletionGuard } from '../action.ts';
import { claimKey, type InstanceView, isDeleted, objectIn, pathOf, retainedSecret, type World } from '../world.ts';
import type { PlanContext } from './context.ts';

/** The number of removals that is never too many. */
const MAX_UNGUARDED = 10;
/**
 * Secrets of retained keys are counted together if at least this number of namespaces lose some: a tenant has fewer.
 */
const MIN_NAMESPACES = 3;

type Removal = ActionOf<DeletionGuard['action']>;

export interface GuardedActions {
  readonly actions: ReadonlyArray<Action>;
  /** Deletions that wait because they are too many. */
  readonly guarded: ReadonlyArray<DeletionGuard>;
}

/** Removals of one kind that are counted together: those of one namespace, or those of all namespaces with few. */
interface Group {
  readonly namespace?: string;
  readonly removals: ReadonlyArray<Removal>;
  /** The number of removals, and of all objects of which they are removed. */
  readonly count: number;
  readonly total: number;
}

interface NamespaceGroup extends Group {
  /** Removals of retained VirtualKeys whose Secret is gone. */
  readonly revoked: ReadonlyArray<Removal>;
  readonly others: ReadonlyArray<Removal>;
}

/** Tenants share an instance: one that loses too many of its own objects does not delay the removals of others. */
export function guardDeletions(actions: ReadonlyArray<Action>, context: PlanContext): GuardedActions {
  const removals = actions.filter((action) => isRemoval(action, context.world));
  const waiting = new Set<Action>();
  const guarded = [...Map.groupBy(removals, ({ action, instance }) => `${action} ${instance}`).values()].flatMap(
    (together): DeletionGuard[] => {
      const [{ action, instance } = { action: 'RetireScope', instance: '' } as const] = together;
      const { object } = context.world.instances.get(instance) ?? {};
      const share = parseShare(object?.metadata.annotations?.[DELETION_SHARE_ANNOTATION] ?? '') ?? DEFAULT_SHARE;
      const groups = groupsOf(together, context);
      const tooMany = findTooMany(groups, share);
      for (const group of tooMany) for (const removal of group.removals) waiting.add(removal);
      return tooMany.length === 0 ? [] : [toGuard({ action, instance }, tooMany, groups.length)];
    },
  );
  return { actions: actions.filter((action) => !waiting.has(action)), guarded };
}

/** Removals of an object that a person deleted are not counted. */
function isRemoval(action: Action, world: World): action is Removal {
  if (action.action !== 'DeleteKey' && action.action !== 'RetireScope') return false;
  const object = objectIn(world, action.kind, pathOf(action));
  return object === undefined || !isDeleted(object);
}

/**
 * All namespaces of an instance with their planned removals, also namespaces without any, whose objects have just begun
 * to name the instance.
 */
function groupsOf(removals: ReadonlyArray<Removal>, { world, keysOf }: PlanContext): ReadonlyArray<NamespaceGroup> {
  const [{ action, instance } = { action: 'RetireScope', instance: '' }] = removals;
  const view = world.instances.get(instance);
  const isRetire = action === 'RetireScope';
  const namespaces = isRetire
    ? [...(view?.claims.values() ?? [])].flatMap(({ kind, holder }) => (kind === 'namespace' ? [] : holder.namespace))
    : keysOf(instance).map(({ metadata }) => metadata.namespace);
  const removalsByNamespace = Map.groupBy(removals, ({ namespace }) => namespace);
  const sizes = Map.groupBy(namespaces, (namespace) => namespace);
  return [...new Set([...sizes.keys(), ...removalsByNamespace.keys()])].map((namespace) => {
    const removed = removalsByNamespace.get(namespace) ?? [];
    const { true: revoked = [], false: others = [] } = Object.groupBy(
      removed,
      (removal) => `${isRevoked(removal, view)}` as const,
    );
    // Claims that were not searched yet may be orphaned too, so they count: otherwise no batch would ever be too large.
    const count = removed.length + (isRetire ? (view?.unsearchedClaims.get(namespace) ?? 0) : 0);
    const total = Math.max(count, sizes.get(namespace)?.length ?? 0);
    return { namespace, removals: removed, revoked, others, count, total };
  });
}

function isRevoked(removal: Removal, view: InstanceView | undefined): boolean {
  if (removal.action !== 'RetireScope') return false;
  const claim = view?.claims.get(claimKey(removal.claimKind, removal.alias));
  return claim !== undefined && retainedSecret(claim) !== undefined;
}

/**
 * Namespaces that lose too many of their own objects; and all others, if those together lose too many. Retained
 * VirtualKeys whose Secret is gone are counted separately: a person deletes that Secret to end the value, which must
 * not wait for the removals of others.
 */
function findTooMany(groups: ReadonlyArray<NamespaceGroup>, share: number): ReadonlyArray<Group> {
  const isTooMany = ({ count, total }: Group) => count > Math.max(MAX_UNGUARDED, (total * share) / 100);
  const { true: large = [], false: few = [] } = Object.groupBy(groups, (group) => `${isTooMany(group)}` as const);
  const [revoked, others] = [few.flatMap((group) => group.revoked), few.flatMap((group) => group.others)];
  const [count, total] = [sum(few, 'count'), sum(few, 'total')];
  const separate: ReadonlyArray<Group> = [
    { removals: others, count: count - revoked.length, total: total - revoked.length },
    { removals: revoked, count: revoked.length, total: total - others.length },
  ];
  // A tenant has few namespaces: if many lose Secrets of retained keys, nobody has deleted these one by one.
  const isInManyNamespaces = few.filter((group) => group.revoked.length > 0).length >= MIN_NAMESPACES;
  const isPlausible = (group: Group) => !isTooMany(group) || (group.removals === revoked && !isInManyNamespaces);
  const together = separate.some(isPlausible)
    ? separate.filter((group) => !isPlausible(group))
    : [{ removals: [...others, ...revoked], count, total }];
  // Claims that were not searched yet are not removed now.
  return [...large, ...together].filter(({ removals }) => removals.length > 0);
}

const sum = (groups: ReadonlyArray<Group>, figure: 'count' | 'total') =>
  groups.reduce((all, group) => all + group[figure], 0);

/** The maximum number of namespaces that a message names. */
const MAX_NAMED = 3;

function toGuard(
  { action, instance }: Pick<DeletionGuard, 'action' | 'instance'>,
  tooMany: ReadonlyArray<Group>,
  namespaces: number,
): DeletionGuard {
  const [count, total] = [sum(tooMany, 'count'), sum(tooMany, 'total')];
  const share = Math.max(...tooMany.map((group) => Math.ceil((group.count * 100) / group.total)));
  const names = tooMany.flatMap(({ namespace }) => namespace ?? []);
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  const isPart = names.length === tooMany.length && names.length < namespaces;
  const where = isPart ? ` in namespace ${names.slice(0, MAX_NAMED).join(', ')}${more}` : '';
  const [what, why] =
    action === 'RetireScope' ? ['database rows', ', because their objects are gone'] : ['VirtualKeys of Users', ''];
  const message =
    `a run would remove ${count} of ${total} ${what}${where}${why}, which is more than is plausible: nothing was removed; if this is intended, ` +
    `annotate the instance with ${DELETION_SHARE_ANNOTATION}=${share}%, until they are removed`;
  return { instance, action, count, total, message };
}
