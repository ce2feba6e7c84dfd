// Deletion: what is cleaned up before an object is released, and when it is released without that. Deletion never hangs
// (DESIGN 6, law 3).
import { toTimestamp } from '#core/conditions/conditions.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { type Action, about, aboutClaim, event } from '../action.ts';
import { isOwnBlocked, ownBlockersOf } from '../key/own-blockers.ts';
import { hasMarks, isFoundByClaim, isLabelled, isOurs, retainedMarks, secretNameOf } from '../key/secret-shape.ts';
import {
  aliasOf,
  hasFinalizer,
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  type KeyView,
  type OwnObject,
  observedHolder,
  type PresentSecret,
  type Problem,
  pathOf,
  presentSecret,
  retainedSecret,
  type ScopeObject,
  type World,
} from '../world.ts';
import { claimOf, NO_CLAIM } from './access.ts';
import type { PlanContext } from './context.ts';

/** The time for which the database is tried. The first run after it removes the finalizer. */
const FINALIZE_TIMEOUT: Millis = 20_000;

/** A time far in the future is not from the API server: server-side apply created the object with it. */
function isTimedOut({ metadata }: Pick<OwnObject, 'metadata'>, now: Millis): boolean {
  const { deletionTimestamp } = metadata;
  return deletionTimestamp !== undefined && Math.abs(now - Date.parse(deletionTimestamp)) >= FINALIZE_TIMEOUT;
}

/**
 * Why nothing can be cleaned up in the database of an instance; undefined if nothing prevents it. A database without
 * the instance shows only that its rows may be elsewhere.
 */
function databaseObstacle({ database }: InstanceView): string | undefined {
  if (!database.ok) return database.message;
  if (database.isRecorded) return undefined;
  return `${database.message} does not have this instance: if it is the wrong database, correct the Secret of databaseSecretRef`;
}

/** Why a deleted instance cannot be cleaned up yet; undefined if nothing prevents it. */
export function instanceObstacle(view: InstanceView, { failures }: World): string | undefined {
  const { kind, metadata } = view.object;
  return failures.get(idOf(kind, metadata))?.message ?? databaseObstacle(view);
}

export function scopeObjectObstacle(scopeObject: ScopeObject, context: PlanContext): string | undefined {
  const { failures, unobserved } = context.world;
  const { instance } = context.access(scopeObject);
  if (instance === undefined) return unobserved.get(instancePathOf(scopeObject));
  return failures.get(idOf(scopeObject.kind, scopeObject.metadata))?.message ?? databaseObstacle(instance);
}

/** The message about a deleted object: what it waits for, until when, and what happens then. */
export function deletionMessage({ metadata }: Pick<OwnObject, 'metadata'>, why: string | undefined): string {
  const { deletionTimestamp } = metadata;
  if (why === undefined || deletionTimestamp === undefined || !hasFinalizer({ metadata }))
    return 'deletion is in progress';
  const until = toTimestamp(Date.parse(deletionTimestamp) + FINALIZE_TIMEOUT);
  return `deletion waits for the database: ${why}. After ${until} the finalizer is removed anyway`;
}

export function scopeObjectDeletionMessage(scopeObject: ScopeObject, context: PlanContext): string {
  const full = tooManyRetained(scopeObject, context.world);
  if (full !== undefined) return full.message;
  if (scopeObject.kind === 'VirtualKey' && isRetaining(scopeObject) && hasFinalizer(scopeObject)) {
    const secret = context.world.keys.get(pathOf(scopeObject.metadata))?.secret;
    // Without the Secret it is not known what must be kept.
    if (secret?.state === 'unread')
      return (
        `deletion waits until Secret "${secretNameOf(scopeObject, context.hash)}" can be read, because spec.deletionPolicy is Retain: ` +
        'the log of the reconciler has the cause. To end the key value instead, set spec.deletionPolicy to Delete'
      );
  }
  return deletionMessage(scopeObject, scopeObjectObstacle(scopeObject, context));
}

/** VirtualKeys stop working with their instance: closing it retires all their claims. */
export function planInstanceDeletion(view: InstanceView, { now, world }: PlanContext): Action[] {
  const { object } = view;
  if (!hasFinalizer(object)) return [];
  const obstacle = instanceObstacle(view, world);
  if (obstacle !== undefined)
    return isTimedOut(object, now)
      ? [removeFinalizer(object, TIMED_OUT, `VirtualKeys in its database still work: ${obstacle}`)]
      : [];
  const why = 'it is deleted: none of its VirtualKeys works any longer';
  return [{ action: 'CloseInstance', ...about(object, why) }, removeFinalizer(object)];
}

/**
 * `Delete`: claim, value and Secret are removed. `Retain`: claim and Secret stay, and the value works until a
 * VirtualKey adopts them.
 */
export function planKeyDeletion(view: KeyView, context: PlanContext): Action[] {
  const key = view.object;
  const retention = isRetaining(key) ? planRetention(view, context) : undefined;
  if (!hasFinalizer(key)) return [...(retention ?? planAbandonment(key, context)), ...planBlock(key, context)];
  if (retention !== undefined) return [...retention];
  // A Secret that could not be read would otherwise stay for ever.
  if (view.secret.state === 'unread' && !isTimedOut(key, context.now)) return [];
  const retirement = planRetirement(key, context);
  if (retirement.length === 0) return [];
  const { instance } = context.access(key);
  const { state, claim } = instance === undefined ? NO_CLAIM : claimOf(key, instance);
  const proven = state === 'ours' ? hashesOf(claim) : [];
  const deletes = [view.secret, view.previous].flatMap((one) => {
    const secret = presentSecret(one);
    if (secret === undefined || !isLabelled(secret) || !isOurs(secret, key, proven)) return [];
    return [deleteSecret(key, secret, `it is deleted, and Secret "${secret.name}" with it`)];
  });
  return [...retirement.slice(0, -1), ...deletes, ...retirement.slice(-1)];
}

const isRetaining = ({ spec }: VirtualKey): boolean => spec.deletionPolicy === 'Retain';

/** Why the key of a VirtualKey in deletion cannot be retained now: the deletion waits, and the value works. */
function tooManyRetained({ kind, metadata }: Pick<ScopeObject, 'kind' | 'metadata'>, { failures }: World) {
  const failure = failures.get(idOf(kind, metadata));
  return failure?.reason === 'TooManyRetained' ? failure : undefined;
}

const isReported = ({ status }: VirtualKey, { message }: Problem): boolean =>
  status?.conditions?.some((condition) => condition.message === message) === true;

export const deleteSecret = (key: VirtualKey, { name: secret, uid }: PresentSecret, why: string): Action => ({
  action: 'DeleteSecret',
  ...about(key, why),
  secret,
  uid,
});

/** The parts that a retention keeps. `claim`: absent if it is not known, or gone with its instance. */
interface Retainable {
  readonly secret: PresentSecret;
  readonly claim: (Claim & Required<Pick<Claim, 'policy'>>) | undefined;
}

/** Undefined: the VirtualKey has no working value, or its Secret does not hold it. */
function findRetainable(
  { object: key, secret: view, previous }: KeyView,
  { access }: PlanContext,
): Retainable | undefined {
  const { instance } = access(key);
  const { state, claim } = instance === undefined ? NO_CLAIM : claimOf(key, instance);
  // After a rename, the previous Secret holds the value until the new one exists.
  const secret = presentSecret(view.state === 'absent' ? previous : view);
  if (secret === undefined || !isLabelled(secret)) return undefined;
  // Without the claim, the status has the value that was published last.
  if (state === 'free')
    return isOurs(secret, key, [key.status?.keyID ?? '']) ? { secret, claim: undefined } : undefined;
  const { policy } = claim;
  const isProven = secret.hash !== undefined && hashesOf(claim).includes(secret.hash);
  return state === 'ours' && policy !== undefined && isProven ? { secret, claim: { ...claim, policy } } : undefined;
}

/**
 * Marks Secret and claim as retained before the object is released. If the claim cannot be marked within the time
 * limit, a mark on the Secret is enough: a resync then finds both (`planOrphanedClaims`). Without any mark the object
 * waits. Undefined: there is nothing to retain.
 */
function planRetention(view: KeyView, context: PlanContext): ReadonlyArray<Action> | undefined {
  const key = view.object;
  if (view.secret.state === 'unread') return [];
  const retainable = findRetainable(view, context);
  if (retainable === undefined) return undefined;
  const { secret, claim } = retainable;
  const on = aboutClaim(key, 'deletionPolicy is Retain: its key value is kept for a VirtualKey that adopts it');
  const marks = retainedMarks(key, secret);
  const isMarked = hasMarks(secret, marks);
  // A policy that is blocked because a User or Team is missing does not charge it: nothing unblocks it but an adoption.
  const blocked = isOwnBlocked(key) || claim?.policy.blocked === true;
  const isRemembered = claim?.policy.retained === secret.name && claim.policy.blocked === blocked;
  const retained = claim && { scopeId: claim.scopeId, anchor: claim.anchor, blocked, retained: secret.name };
  const write = retained && { policy: retained, generation: key.metadata.generation, isNew: false };
  // A retained claim whose Secret is not found as this VirtualKey's would be retired, so the Secret comes first.
  const mayPut = write !== undefined && !isRemembered && isFoundByClaim(secret, key);
  const puts: Action[] = mayPut ? [{ action: 'PutScope', ...on, ...write }] : [];
  // Without its finalizer the object counts as gone, and its Secret decides.
  if (!hasFinalizer(key)) return isMarked ? puts : undefined;
  const full = tooManyRetained(key, context.world);
  if (full !== undefined) return isReported(key, full) ? [] : [event(key, { ...full, once: full.reason })];
  // The claim comes first if it can: a claim that a namespace may not retain ends if a person removes the finalizer.
  const steps: Action[] = [
    ...puts,
    ...(isMarked ? [] : [{ action: 'RetainSecret', ...on, secret: secret.name, marks } as const]),
  ];
  const obstacle = scopeObjectObstacle(key, context);
  if (obstacle === undefined)
    return steps.length > 0 ? steps : [...(claim ? [retainedEvent(key, secret)] : []), removeFinalizer(key)];
  if (!isTimedOut(key, context.now) || !(isMarked || (isRemembered && isFoundByClaim(secret, key)))) return steps;
  const notCleanedUp = `its row stays in the database until a resync marks the key as retained: ${obstacle}`;
  return [retainedEvent(key, secret), removeFinalizer(key, TIMED_OUT, notCleanedUp)];
}

function retainedEvent(key: VirtualKey, secret: PresentSecret): Action {
  const { alias } = aliasOf(key);
  const message =
    `spec.deletionPolicy is Retain: the key value continues to work, and a VirtualKey with the alias ${JSON.stringify(alias)} can adopt it; ` +
    `the value is in Secret "${secret.name}": delete the Secret to end the value`;
  return event(key, { reason: 'KeyRetained', message, once: 'KeyRetained' });
}

/**
 * Retires the claim of a scope object, then removes its finalizer. VirtualKeys that refer to a deleted User or Team
 * report it. Empty: the database must be tried again.
 */
export function planRetirement(scopeObject: ScopeObject, context: PlanContext): Action[] {
  const { instance } = context.access(scopeObject);
  const obstacle = scopeObjectObstacle(scopeObject, context);
  if (obstacle !== undefined) {
    const notCleanedUp = `its row stays in the database${instance === undefined ? '' : ' until a resync finds it'}: ${obstacle}`;
    return isTimedOut(scopeObject, context.now) ? [removeFinalizer(scopeObject, TIMED_OUT, notCleanedUp)] : [];
  }
  const { kind, alias, key } = aliasOf(scopeObject);
  const claim = instance?.claims.get(key);
  if (claim?.holder.uid !== scopeObject.metadata.uid) return [removeFinalizer(scopeObject)];
  const on = aboutClaim(scopeObject, `it is deleted: the ${kind} alias "${alias}" is free again`);
  return [
    { action: 'RetireScope', ...on, scopeId: claim.scopeId, observed: observedHolder(claim) },
    removeFinalizer(scopeObject),
  ];
}

/**
 * Retires the claim of a deleted scope object that has no finalizer of the operator, as if the scope object were gone.
 * A retained claim stays.
 */
export function planAbandonment(scopeObject: ScopeObject, context: PlanContext): Action[] {
  const claim = context.access(scopeObject).instance?.claims.get(aliasOf(scopeObject).key);
  if (claim !== undefined && retainedSecret(claim) !== undefined) return [];
  return planRetirement(scopeObject, context).filter(({ action }) => action === 'RetireScope');
}

/** Blocks a retained key whose object a finalizer of another program keeps. */
function planBlock(key: VirtualKey, context: PlanContext): Action[] {
  const claim = context.ownClaim(key)?.claim;
  const retained = claim && retainedSecret(claim);
  const [blocker] = ownBlockersOf(key);
  const isDone = blocker === undefined || claim?.policy?.blocked === true;
  if (claim === undefined || retained === undefined || isDone || scopeObjectObstacle(key, context) !== undefined)
    return [];
  const { scopeId, anchor } = claim;
  const write = { policy: { scopeId, anchor, blocked: true, retained }, generation: key.metadata.generation };
  return [{ action: 'PutScope', ...aboutClaim(key, blocker.message), ...write, isNew: false }];
}

const TIMED_OUT = 'cleaning up was tried for 20 seconds';

/** `notCleanedUp`: what cannot be cleaned up. */
export const removeFinalizer = (
  object: Pick<OwnObject, 'kind' | 'metadata'>,
  why = 'nothing is left to clean up',
  notCleanedUp?: string,
): Action => ({ action: 'RemoveFinalizer', ...about(object, why), notCleanedUp });
