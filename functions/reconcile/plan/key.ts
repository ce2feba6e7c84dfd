// The life of a VirtualKey in its order: finalizer → row of its scope (alias, policy, hash of the value) → Secret →
// status and event. A value is in the database before it is in a Secret, so a published value always works. Of two
// concurrent runs that create a value, one writes the Secret, and the other ends its own value.

import { overlapOf, requestedRotation } from '#core/keys/rotation.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { type Action, type ActionOf, about, aboutClaim, type ScopeValue, type SecretShape } from '../action.ts';
import { isOverlapping, lostSecretValues, removableValues, unpublishedValues, whyRotate } from '../key/rotation.ts';
import {
  driftOf,
  holdersOf,
  isLabelled,
  isOurs,
  replacedSecretOf,
  secretNameOf,
  shapeOf,
} from '../key/secret-shape.ts';
import {
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type KeyView,
  type PresentSecret,
  presentSecret,
  type World,
} from '../world.ts';
import { claimOf } from './access.ts';
import { hasLedger } from './conditions-instance.ts';
import type { PlanContext } from './context.ts';
import { deleteSecret, planKeyDeletion } from './deletion.ts';
import { NAMESPACE_NOT_ALLOWED, planFinalizer, planScope } from './scope-object.ts';

/** The steps that are possible now, in order. The status is planned when there are none. */
export function planKey(view: KeyView, context: PlanContext): Action[] {
  const key = view.object;
  if (isDeleted(key)) return planKeyDeletion(view, context);
  if (context.world.failures.has(idOf(key.kind, key.metadata))) return [];
  const access = context.access(key);
  if (access.state === 'notAllowed') return planEndOfAllValues(view, access.instance);
  if (access.state !== 'allowed') return [];
  const { instance } = access;
  if (!hasLedger(instance)) return planFinalizer(key);
  const { value, why, steps } = planSecret(view, instance, context);
  const scope = planScope(key, instance, context, { view, ...(value && { value, why }) });
  // The Secret waits for the row. The row may wait for the alias, or for a User or Team that is charged.
  const isRecorded = value === undefined || scope.some(({ action }) => action === 'PutScope');
  return [...planFinalizer(key), ...scope, ...(isRecorded ? steps : [])];
}

/**
 * A VirtualKey of a namespace that the instance no longer allows does not work: its values are retired. Its claim and
 * its Secret stay.
 */
function planEndOfAllValues({ object }: KeyView, instance: InstanceView | undefined): Action[] {
  const { state, claim } = instance === undefined ? { state: 'free' } : claimOf(object, instance);
  if (state !== 'ours' || claim === undefined) return [];
  return planEndOfValues(object, claim, hashesOf(claim), NAMESPACE_NOT_ALLOWED);
}

/** `value`: recorded before the steps. */
interface SecretPlan {
  readonly value?: ScopeValue;
  readonly why?: string;
  readonly steps: ReadonlyArray<Action>;
}

/** The facts about a VirtualKey's value. */
interface ValueCase {
  readonly view: KeyView;
  readonly key: VirtualKey;
  /** Without values if the VirtualKey has none yet. */
  readonly claim: ClaimValues;
  /** Working values without an end: a value in the overlap of a rotation is not among them. */
  readonly live: ReadonlyArray<string>;
  readonly ended: World['endedValues'];
  /** The database's clock. */
  readonly databaseNow: Millis;
  readonly shape: SecretShape;
  put(value: ActionOf<'PutSecret'>['value'], why: string): Action;
}

type ClaimValues = Pick<Claim, 'scopeId' | 'anchor' | 'values'>;

const NO_VALUES: ClaimValues = { scopeId: '', anchor: 0, values: [] };

function planSecret(view: KeyView, instance: InstanceView, context: PlanContext): SecretPlan {
  const { object: key, secret } = view;
  const { state, claim = NO_VALUES } = claimOf(key, instance);
  if (state === 'taken' || state === 'orphaned') return { steps: [] };
  const { address } = context.evaluate(instance);
  const { secretPrefixes: prefixes } = context.world.platform;
  const shape = shapeOf(key, {
    name: secretNameOf(key, context.hash),
    address,
    prefixes,
    present: presentSecret(secret),
    previous: presentSecret(view.previous),
  });
  const isNew = secret.state === 'absent';
  const put: ValueCase['put'] = (value, why) => ({
    action: 'PutSecret',
    ...about(key, why),
    instance: instancePathOf(key),
    shape,
    value,
    isNew,
  });
  const { databaseNow } = instance;
  const live = claim.values.flatMap(({ hash, notAfter }) => (notAfter === undefined ? [hash] : []));
  const valueCase: ValueCase = { view, key, claim, live, ended: context.world.endedValues, databaseNow, shape, put };
  const whyRemoved = 'the overlap of a rotation is over, or too many overlap';
  const removals = planEndOfValues(key, claim, removableValues(claim, databaseNow), whyRemoved);
  // A new value waits until the Secret is gone.
  if (secret.state === 'deleting')
    return { steps: [...removals, ...endLostValues(valueCase, 'its Secret is in deletion')] };
  const { steps, ...plan } = isNew ? planAbsentSecret(valueCase) : planPresentSecret(valueCase, presentSecret(secret));
  return { ...plan, steps: [...removals, ...steps] };
}

/** After a rename, the value moves to the new Secret. A lost Secret means a lost value, so a new one is created. */
function planAbsentSecret(valueCase: ValueCase): SecretPlan {
  const { view, key, live, put } = valueCase;
  const previous = presentSecret(view.previous);
  const isMoved = previous?.hash !== undefined && isOurs(previous, key, live);
  if (isMoved && live.includes(previous.hash))
    return { steps: [put('previous', `its Secret is now called "${valueCase.shape.name}"`)] };
  if (isMoved && isRestorable(valueCase, previous.hash)) return { value: restored(previous.hash), steps: [] };
  const isLost = live.length > 0 || key.status?.keyID !== undefined;
  const why = isLost
    ? `Secret "${valueCase.shape.name}" is lost: a new key value replaces it`
    : `it has no key value yet: one is created in Secret "${valueCase.shape.name}"`;
  return { value: newValue(key), why, steps: [...endLostValues(valueCase, 'its Secret is lost'), put('new', why)] };
}

/**
 * The first case that applies decides, in this order. Nothing is done with a Secret that was not read, or that is not
 * ours.
 */
function planPresentSecret(valueCase: ValueCase, secret: PresentSecret | undefined): SecretPlan {
  const { view, key, live, ended, claim, databaseNow, put } = valueCase;
  if (secret === undefined) return { steps: [] };
  const { hash = '', name } = secret;
  if (!isOurs(secret, key, hashesOf(claim)))
    return isRestoredWith(valueCase, secret)
      ? { value: { ...newValue(key), ...restored(hash) }, why: `Secret "${name}" was restored with it`, steps: [] }
      : { steps: [] };
  // Only a Secret with our label may be deleted later.
  if (!isLabelled(secret)) return { steps: [put('same', `Secret "${name}" no longer has the operator's label`)] };
  if (live.includes(hash)) return planWorkingValue(valueCase, secret);
  const isOld = isOverlapping(claim, hash, databaseNow);
  // The Secret holds the value that the VirtualKey had: its row was lost, or its values were retired.
  if (hash !== '' && !isOld && isRestorable(valueCase, hash))
    return {
      value: { ...newValue(key), ...restored(hash) },
      why: `its claim lacks the value in Secret "${name}", which is recorded again`,
      steps: [],
    };
  // Another run may just have published the value in the Secret.
  const unlessLive = secret.hash;
  // The Secret was edited, and the status still has the correct value.
  if (view.statusHash !== undefined && live.includes(view.statusHash)) {
    const why = `the key value in Secret "${name}" was edited: the correct value is restored`;
    return { value: { hash: view.statusHash, unlessLive }, why, steps: [put('status', why)] };
  }
  // The Secret was changed back to a value that a rotation had replaced, or the rotation could not write the Secret.
  if (isOld || (live.length === 0 && ended.has(hash))) {
    const why = `a rotation has ended the value in Secret "${name}", or it ends soon`;
    return { value: newValue(key), why, steps: [put('new', why)] };
  }
  const why = `the key value in Secret "${name}" was edited and the correct value is lost: a new value replaces it`;
  return { value: { ...newValue(key), unlessLive }, why, steps: [...endLostValues(valueCase, why), put('new', why)] };
}

/**
 * The Secret holds a working value: other values end, a new one is created when a rotation is due, and differences of
 * the Secret are repaired.
 */
function planWorkingValue({ key, view, claim, databaseNow, shape, put }: ValueCase, secret: PresentSecret): SecretPlan {
  const { hash = '', name } = secret;
  const others = unpublishedValues(claim, hash, key.status?.keyID, databaseNow);
  const overlap = overlapOf(key.spec.rotation);
  const whyReplaced = `a new value has replaced the previous one, which works for another ${overlap / 1000} seconds`;
  const replaced = replacedSecretOf(view, secret);
  const left: Action[] = [
    ...planEndOfValues(key, claim, others.replaced, whyReplaced, overlap),
    ...planEndOfValues(key, claim, others.lost, 'it was never published'),
    ...(replaced ? [deleteSecret(key, replaced, `Secret "${replaced.name}" is called "${name}" now`)] : []),
  ];
  const value = claim.values.find((one) => one.hash === hash);
  const due = value && whyRotate(key, value, claim, databaseNow);
  // The end of the old value is written after the new Secret: nothing else would show the next run that the new value
  // was published.
  const ended = planEndOfValues(key, claim, [hash], whyReplaced, overlap);
  if (due !== undefined) return { value: newValue(key), why: due, steps: [...left, put('new', due), ...ended] };
  const drift = driftOf(secret, shape);
  return { steps: drift === '' ? left : [...left, put('same', `the ${drift} of Secret "${name}" differ`)] };
}

/**
 * Whether the Secret was restored from a backup together with the VirtualKey, which has another uid than before: no value
 * was ever known of this object, and the Secret names an earlier one. A value that another VirtualKey has is refused when
 * it is written. Whoever may write the Secret could also give it the uid of this VirtualKey.
 */
function isRestoredWith(valueCase: ValueCase, secret: PresentSecret): boolean {
  const { key, claim } = valueCase;
  const isNewObject = key.status?.keyID === undefined && claim.values.length === 0;
  const { hash } = secret;
  return (
    isNewObject &&
    isLabelled(secret) &&
    holdersOf(secret).length > 0 &&
    hash !== undefined &&
    isRestorable(valueCase, hash)
  );
}

/**
 * Whether this is the last known value of the VirtualKey, and its claim has no values or only earlier ones: a backup of
 * the database was restored, or its values were retired. A forged Secret has no such value, because only the reconciler
 * may write the status. A value that was ended is not restored.
 */
function isRestorable({ live, ended, claim, key }: ValueCase, hash: string): boolean {
  const keyID = key.status?.keyID;
  if (ended.has(hash)) return false;
  if (live.length === 0) return keyID === undefined || keyID === hash;
  return keyID === hash && !hashesOf(claim).includes(hash);
}

const restored = (hash: string): ScopeValue => ({ hash, unlessEnded: hash });

const newValue = ({ metadata }: VirtualKey): ScopeValue => ({ rotation: requestedRotation(metadata.annotations) });

const endLostValues = ({ key, claim, databaseNow }: ValueCase, why: string): Action[] =>
  planEndOfValues(key, claim, lostSecretValues(claim, key.status?.keyID, databaseNow), why);

function planEndOfValues(
  key: VirtualKey,
  { scopeId }: ClaimValues,
  hashes: ReadonlyArray<string>,
  why: string,
  overlap?: Millis,
): Action[] {
  return hashes.length === 0 ? [] : [{ action: 'EndValues', ...aboutClaim(key, why), scopeId, hashes, overlap }];
}
