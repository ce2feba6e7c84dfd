// Does a user's own VirtualKey exist and follow the user? (`autoCreateKey`, DESIGN 3.)
import { userKeyName } from '#core/names.ts';
import { AUTH_API_VERSION, OWNED, OWNED_LABEL, REQUESTED_BY_ANNOTATION } from '#crds/group.ts';
import type { User } from '#crds/user.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { Action, OwnedKeySpec } from '../action.ts';
import { idOf, pathOf } from '../world.ts';
import { about } from './about.ts';
import { isDeleted } from './deletion.ts';
import type { Outlook } from './outlook.ts';
import { sameJson } from './policies.ts';
import { tell } from './tell.ts';

/** The VirtualKey that is called like the user, and whether it is the user's: it has our label and names the user as its owner. */
export function ownedKeyOf(
  user: User,
  { world }: Outlook,
): { readonly key: VirtualKey | undefined; readonly owned: boolean } {
  const { namespace, name, uid } = user.metadata;
  const key = world.keys.get(pathOf({ namespace, name: userKeyName(name) }))?.object;
  const isLabelled = key?.metadata.labels?.[OWNED_LABEL] === OWNED;
  return { key, owned: isLabelled && key.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true };
}

export function planOwnedKey(user: User, outlook: Outlook): Action[] {
  if (outlook.world.failures.has(idOf(user.kind, user.metadata))) return [];
  const standing = outlook.standing(user);
  if (standing.at === 'paused' || standing.at === 'refused') return [];
  const { key, owned } = ownedKeyOf(user, outlook);
  if (!user.spec.autoCreateKey) {
    return key === undefined || !owned || isDeleted(key)
      ? []
      : [deleteKey(user, key, `autoCreateKey is off: VirtualKey "${key.metadata.name}" goes`)];
  }
  const spec = specOf(user);
  if (spec === undefined) return [];
  if (key === undefined) {
    const claimed = standing.at === 'admitted' && outlook.claim(user, standing.instance).state === 'ours';
    return claimed ? [createKey(user, spec)] : [];
  }
  if (!owned || isDeleted(key)) return [];
  const replaced = replacementOf(key, spec);
  if (replaced !== undefined)
    return [
      replaceEvent(user, key, replaced),
      deleteKey(user, key, `its ${replaced} changed: a new key takes its place`),
    ];
  const differing = Object.entries(spec).filter(
    ([field, value]) => !sameJson(value, key.spec[field as keyof typeof key.spec]),
  );
  const cleared = CLEARABLE.filter((field) => spec[field] === undefined && key.spec[field] !== undefined);
  if (differing.length + cleared.length === 0) return [];
  const fields = [...differing.map(([field]) => field), ...cleared];
  const patch = { ...Object.fromEntries(differing), ...Object.fromEntries(cleared.map((field) => [field, null])) };
  return [
    {
      action: 'UpdateKey',
      ...about(user, `its key's ${fields.join(', ')} differ from its own`),
      key: key.metadata.name,
      spec: patch,
    },
  ];
}

export function planOwnedKeyDeletion(user: User, outlook: Outlook): Action[] {
  const { key, owned } = ownedKeyOf(user, outlook);
  return key === undefined || !owned || isDeleted(key)
    ? []
    : [deleteKey(user, key, `VirtualKey "${key.metadata.name}" goes with it`)];
}

/** What a user may leave out, and the key then must not have. */
const CLEARABLE = ['duration', 'rpmLimit', 'tpmLimit', 'maxParallelRequests'] as const;

/** Undefined: the user does not say what a key needs. */
function specOf({ metadata, spec }: User): OwnedKeySpec | undefined {
  const { keyAlias, maxBudget, budgetDuration, duration, rpmLimit, tpmLimit, maxParallelRequests } = spec;
  if (keyAlias === undefined || maxBudget === undefined || budgetDuration === undefined) return undefined;
  return {
    keyAlias,
    models: spec.models,
    maxBudget,
    budgetDuration,
    connectionRef: spec.connectionRef,
    blocked: spec.blocked,
    userRef: { name: metadata.name },
    ...(duration === undefined ? {} : { duration }),
    ...(rpmLimit === undefined ? {} : { rpmLimit }),
    ...(tpmLimit === undefined ? {} : { tpmLimit }),
    ...(maxParallelRequests === undefined ? {} : { maxParallelRequests }),
  };
}

/** Alias and connection of a key never change: an edit of either is a new key. */
function replacementOf({ spec }: VirtualKey, wanted: OwnedKeySpec): string | undefined {
  if (spec.keyAlias !== wanted.keyAlias) return 'keyAlias';
  return sameJson(spec.connectionRef, wanted.connectionRef) ? undefined : 'connectionRef';
}

function createKey(user: User, spec: OwnedKeySpec): Action {
  const { name, uid } = user.metadata;
  const requestedBy = user.metadata.annotations?.[REQUESTED_BY_ANNOTATION];
  return {
    action: 'CreateKey',
    ...about(user, `autoCreateKey is on, and VirtualKey "${userKeyName(name)}" is not there yet`),
    key: userKeyName(name),
    spec,
    owner: { apiVersion: AUTH_API_VERSION, kind: 'User', name, uid, controller: true, blockOwnerDeletion: true },
    ...(requestedBy === undefined ? {} : { requestedBy }),
  };
}

function deleteKey(user: User, key: VirtualKey, why: string): Action {
  return { action: 'DeleteKey', ...about(user, why), key: key.metadata.name, uid: key.metadata.uid };
}

function replaceEvent(user: User, key: VirtualKey, what: string): Action {
  const message = `VirtualKey "${key.metadata.name}" is replaced because ${what} changed: clients need the new value`;
  return tell(user, { type: 'Normal', reason: 'KeyReplaced', message, once: `KeyReplaced/${key.metadata.uid}` });
}
