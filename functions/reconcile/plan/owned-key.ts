// A User's own VirtualKey (`autoCreateKey`): it is created, and follows edits of the User (DESIGN 3).

import type { User } from '#crds/kinds/user.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { OWNED_LABEL, OWNED_LABEL_VALUE, REQUESTED_BY_ANNOTATION } from '#crds/names/group.ts';
import { controllerOf, isOwnedBy } from '#crds/names/object-meta.ts';
import { type Action, about, event, type OwnedKeySpec } from '../action.ts';
import { sameJson } from '../json.ts';
import { rateLimitsOf } from '../key/budget.ts';
import { idOf, instancePathOf, isDeleted, pathOf } from '../world.ts';
import type { PlanContext } from './context.ts';

/**
 * The VirtualKey with the User's name, and whether it belongs to the User: then it has an owner reference to the User.
 */
export function ownedKeyOf({ metadata }: User, { world }: PlanContext) {
  const path = pathOf(metadata);
  const key = (world.keys.get(path) ?? world.referred.keys.get(path))?.object;
  return { key, isOwned: key !== undefined && isOwnedBy(key.metadata, metadata.uid) };
}

export function planOwnedKey(user: User, context: PlanContext): Action[] {
  if (context.world.failures.has(idOf(user.kind, user.metadata))) return [];
  const { key, isOwned } = ownedKeyOf(user, context);
  const owned = key !== undefined && isOwned && !isDeleted(key) ? key : undefined;
  if (isDeleted(user)) return owned === undefined ? [] : [deleteKey(user, owned, 'is deleted with it')];
  const { state } = context.access(user);
  if (state === 'paused' || state === 'unknown' || state === 'notAllowed') return [];
  if (!user.spec.autoCreateKey)
    return owned === undefined ? [] : [deleteKey(user, owned, 'is deleted: autoCreateKey is off')];
  const spec = specOf(user);
  if (spec === undefined) return [];
  if (key === undefined) return context.ownClaim(user) === undefined ? [] : [createKey(user, spec)];
  if (owned !== undefined) return planUpdate(user, owned, spec);
  return isRestored(user, key) ? [adoptKey(user, key)] : [];
}

/**
 * Whether the VirtualKey is the User's own from a backup, by what a restore keeps: our label, and the fields that
 * distinguish it. The owner reference is lost, or has the uid that the User had.
 */
function isRestored({ metadata: { name }, spec }: User, key: VirtualKey): boolean {
  const { labels, ownerReferences = [] } = key.metadata;
  const isOfAnother = ownerReferences.some((one) => one.controller && (one.kind !== 'User' || one.name !== name));
  const isSame = key.spec.keyAlias === spec.keyAlias && sameJson(key.spec.connectionRef, spec.connectionRef);
  const isLabelled = labels?.[OWNED_LABEL] === OWNED_LABEL_VALUE;
  return !isDeleted(key) && isLabelled && !isOfAnother && isSame && key.spec.userRef?.name === name;
}

/** Alias and connection of a VirtualKey are immutable, so an edit of either means a new VirtualKey. */
function planUpdate(user: User, key: VirtualKey, spec: OwnedKeySpec): Action[] {
  const field = (['keyAlias', 'connectionRef'] as const).find((one) => !sameJson(spec[one], key.spec[one]));
  if (field !== undefined) {
    const { name, uid } = key.metadata;
    const message = `VirtualKey "${name}" is replaced because ${field} changed: clients need the new value`;
    const replaced = { reason: 'KeyReplaced', message, once: `KeyReplaced/${uid}` } as const;
    return [
      event(user, replaced),
      deleteKey(user, key, `is deleted: its ${field} changed, and a new VirtualKey replaces it`),
    ];
  }
  const differing = Object.entries(spec).filter(
    ([name, value]) => !sameJson(value, key.spec[name as keyof typeof key.spec]),
  );
  if (differing.length === 0) return [];
  // Fields that the User does not set must be absent from the VirtualKey.
  const patch = Object.fromEntries(differing.map(([field, value]) => [field, value ?? null]));
  const why = `${Object.keys(patch).join(', ')} of its VirtualKey differ from its own`;
  return [{ action: 'UpdateKey', ...about(user, why), key: key.metadata.name, spec: patch }];
}

/** Undefined: the User lacks a field that a VirtualKey needs. */
function specOf(user: User): OwnedKeySpec | undefined {
  const { metadata, spec } = user;
  const { keyAlias, maxBudget, budgetDuration, budgetWindow, budgetTimeZone } = spec;
  const { models, connectionRef, blocked, duration } = spec;
  if (keyAlias === undefined || maxBudget === undefined || budgetDuration === undefined) return undefined;
  return {
    keyAlias,
    models,
    maxBudget,
    budgetDuration,
    budgetWindow,
    budgetTimeZone,
    connectionRef,
    blocked,
    userRef: { name: metadata.name },
    duration,
    ...rateLimitsOf(user),
  };
}

function adoptKey(user: User, { metadata: { name: key, uid } }: VirtualKey): Action {
  const why = `VirtualKey "${key}" was restored without its owner`;
  return { action: 'AdoptKey', key, uid, owner: controllerOf(user), ...about(user, why) };
}

function createKey(user: User, spec: OwnedKeySpec): Action {
  const { name: key, annotations } = user.metadata;
  return {
    action: 'CreateKey',
    key,
    spec,
    owner: controllerOf(user),
    ...about(user, `autoCreateKey is on, and VirtualKey "${key}" does not exist yet`),
    requestedBy: annotations?.[REQUESTED_BY_ANNOTATION],
  };
}

function deleteKey(user: User, { metadata: { name, uid } }: VirtualKey, why: string): Action {
  const instance = instancePathOf(user);
  return { action: 'DeleteKey', ...about(user, `VirtualKey "${name}" ${why}`), instance, key: name, uid };
}
