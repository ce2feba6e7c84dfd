// Deletion: what is cleaned up before an object is released, and when it is released without that. Deletion never hangs
// (DESIGN 6, law 3).
import { toTimestamp } from '#core/conditions/conditions.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { RETAINED_LABEL } from '#crds/names/group.ts';
import { type Action, about, aboutClaim, event, type SecretShape } from '../action.ts';
import { isLabelled, isOurs, KEY_UID_ANNOTATION, retainedShape } from '../key/secret-shape.ts';
import {
  aliasOf,
  hasFinalizer,
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type KeyView,
  type Member,
  type OwnObject,
  observedHolder,
  type PresentSecret,
  presentSecret,
  retainedSecret,
  type World,
} from '../world.ts';
import { claimOf } from './access.ts';
import type { PlanContext } from './context.ts';

/** The time for which the database is tried. The first run after it removes the finalizer. */
const FINALIZE_TIMEOUT: Millis = 20_000;

/** A time far in the future is not from the API server: server-side apply created the object with it. */
function isTimedOut({ metadata }: Pick<OwnObject, 'metadata'>, now: Millis): boolean {
  const { deletionTimestamp } = metadata;
  return deletionTimestamp !== undefined && Math.abs(now - Date.parse(deletionTimestamp)) >= FINALIZE_TIMEOUT;
}

/** Why a deleted instance cannot be cleaned up yet; undefined if nothing prevents it. */
export function instanceBlockedBy({ object, database }: InstanceView, { failures }: World): string | undefined {
  return failures.get(idOf(object.kind, object.metadata))?.message ?? (database.ok ? undefined : database.message);
}

export function memberBlockedBy(member: Member, context: PlanContext): string | undefined {
  const { failures, unobserved } = context.world;
  const { instance } = context.access(member);
  if (instance === undefined) return unobserved.get(instancePathOf(member));
  const failure = failures.get(idOf(member.kind, member.metadata));
  return failure?.message ?? (instance.database.ok ? undefined : instance.database.message);
}

/** The message about a deleted object: what it waits for, until when, and what happens then. */
export function deletionMessage({ metadata }: Pick<OwnObject, 'metadata'>, why: string | undefined): string {
  const { deletionTimestamp } = metadata;
  if (why === undefined || deletionTimestamp === undefined || !hasFinalizer({ metadata }))
    return 'deletion is in progress';
  const until = toTimestamp(Date.parse(deletionTimestamp) + FINALIZE_TIMEOUT);
  return `deletion waits for the database: ${why}. After ${until} the finalizer is removed anyway`;
}

/** VirtualKeys stop working with their instance: closing it retires all their claims. */
export function planInstanceDeletion(view: InstanceView, { now, world }: PlanContext): Action[] {
  const { object } = view;
  if (!hasFinalizer(object)) return [];
  const blocked = instanceBlockedBy(view, world);
  if (blocked !== undefined)
    return isTimedOut(object, now)
      ? [removeFinalizer(object, TIMED_OUT, `VirtualKeys in its database still work: ${blocked}`)]
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
  if (!hasFinalizer(key)) return [...planAbandonment(key, context), ...planBlock(key, context)];
  // A Secret that could not be read would otherwise stay for ever.
  if (view.secret.state === 'unread' && !isTimedOut(key, context.now)) return [];
  const { instance } = context.access(key);
  const { state, claim } = instance === undefined ? { state: 'open' } : claimOf(key, instance);
  const ownClaim = state === 'ours' ? claim : undefined;
  const proven = ownClaim === undefined ? [] : hashesOf(ownClaim);
  const ours = [view.secret, view.previous].map((one) => {
    const secret = presentSecret(one);
    return secret !== undefined && isLabelled(secret) && isOurs(secret, key, proven) ? secret : undefined;
  });
  const [secret] = ours;
  const isKept = key.spec.deletionPolicy === 'Retain' && secret?.hash !== undefined && proven.includes(secret.hash);
  if (isKept && ownClaim !== undefined && instance?.database.ok === true && !isDeleted(instance.object)) {
    const { address } = context.evaluate(instance);
    const { secretPrefixes: prefixes } = context.world.platform;
    const shape = retainedShape(key, { name: secret.name, address, prefixes, present: secret });
    return planRetention(key, secret, ownClaim, shape);
  }
  const retirement = planRetirement(key, context);
  if (retirement.length === 0) return [];
  const deletes = ours.flatMap((one) =>
    one === undefined ? [] : [deleteSecret(key, one, `it is deleted, and Secret "${one.name}" with it`)],
  );
  return [...retirement.slice(0, -1), ...deletes, ...retirement.slice(-1)];
}

export const deleteSecret = (key: VirtualKey, { name: secret, uid }: PresentSecret, why: string): Action => ({
  action: 'DeleteSecret',
  ...about(key, why),
  secret,
  uid,
});

/** Marks claim and Secret as retained before the object is released. */
function planRetention(key: VirtualKey, secret: PresentSecret, claim: Claim, shape: SecretShape): Action[] {
  const { policy } = claim;
  if (policy === undefined) return [];
  const on = aboutClaim(key, 'deletionPolicy is Retain: the key value works until a VirtualKey adopts it');
  const isReleased =
    secret.owners.length === 0 &&
    secret.labels[RETAINED_LABEL] === 'true' &&
    secret.annotations[KEY_UID_ANNOTATION] === key.metadata.uid;
  const { scopeId, anchor } = claim;
  // A policy that is blocked because a User or Team is missing does not charge it: nothing unblocks it but an adoption.
  const blocked = key.spec.blocked || policy.blocked === true;
  const retained = { scopeId, anchor, blocked, retained: secret.name };
  const isRemembered = policy.retained === secret.name && policy.blocked === blocked;
  const write = { policy: retained, generation: key.metadata.generation, isNew: false };
  const steps: Action[] = [
    ...(isReleased ? [] : [{ action: 'PutSecret', ...on, shape, value: 'same', isNew: false } as const]),
    ...(isRemembered ? [] : [{ action: 'PutScope', ...on, ...write } as const]),
  ];
  if (steps.length > 0) return steps;
  const message =
    `its deletionPolicy is Retain: the key value continues working until a VirtualKey with the alias ${JSON.stringify(on.alias)} adopts it; ` +
    `the value is in Secret "${secret.name}": delete the Secret to end the value`;
  const notice = event(key, { reason: 'KeyRetained', message, once: 'KeyRetained' });
  return [notice, removeFinalizer(key)];
}

/**
 * Retires the claim of a member, then removes its finalizer. VirtualKeys that refer to a deleted User or Team report
 * it. Empty: the database must be tried again.
 */
export function planRetirement(member: Member, context: PlanContext): Action[] {
  const { instance } = context.access(member);
  const blocked = memberBlockedBy(member, context);
  if (blocked !== undefined) {
    const left = `its claim stays in the database${instance === undefined ? '' : ' until a resync finds it'}: ${blocked}`;
    return isTimedOut(member, context.now) ? [removeFinalizer(member, TIMED_OUT, left)] : [];
  }
  const { kind, alias, key } = aliasOf(member);
  const claim = instance?.claims.get(key);
  if (claim?.holder.uid !== member.metadata.uid) return [removeFinalizer(member)];
  const on = aboutClaim(member, `it is deleted: the ${kind} alias "${alias}" is free again`);
  return [
    { action: 'RetireScope', ...on, scopeId: claim.scopeId, observed: observedHolder(claim) },
    removeFinalizer(member),
  ];
}

/**
 * Retires the claim of a deleted member that has no finalizer of the operator, as if the member were gone. A retained
 * claim stays.
 */
export function planAbandonment(member: Member, context: PlanContext): Action[] {
  const claim = context.access(member).instance?.claims.get(aliasOf(member).key);
  if (claim !== undefined && retainedSecret(claim) !== undefined) return [];
  return planRetirement(member, context).filter(({ action }) => action === 'RetireScope');
}

/** Blocks a retained key whose object a finalizer of another program keeps. */
function planBlock(key: VirtualKey, context: PlanContext): Action[] {
  const claim = context.ownClaim(key)?.claim;
  const retained = claim && retainedSecret(claim);
  const isDone = !key.spec.blocked || claim?.policy?.blocked === true;
  if (claim === undefined || retained === undefined || isDone || memberBlockedBy(key, context) !== undefined) return [];
  const { scopeId, anchor } = claim;
  const write = { policy: { scopeId, anchor, blocked: true, retained }, generation: key.metadata.generation };
  return [{ action: 'PutScope', ...aboutClaim(key, 'spec.blocked is true'), ...write, isNew: false }];
}

const TIMED_OUT = 'cleaning up was tried for 20 seconds';

/** `left`: what cannot be cleaned up. */
export const removeFinalizer = (
  object: Pick<OwnObject, 'kind' | 'metadata'>,
  why = 'nothing is left to clean up',
  left?: string,
): Action => ({ action: 'RemoveFinalizer', ...about(object, why), left });
