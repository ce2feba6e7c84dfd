// The life of a key, in its order: finalizer → scope row (alias, policy, value: won or lost) → Secret → status and
// event.
// A value is recorded before it is published, so a published one always works. Of two concurrent runs one writes the
// Secret, and the other takes its value back.

import { askedFor, overlapOf } from '#core/keys/rotation.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { type Action, type ActionOf, about, aboutClaim, type ScopeValue, type SecretShape } from '../action.ts';
import { endedOf, isOverlapping, othersOf, publishedOf, whyRotate } from '../key/rotation.ts';
import { driftOf, isLabelled, isOurs, replayOf, secretNameOf, shapeOf } from '../key/secret-shape.ts';
import {
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type KeyView,
  type PresentSecret,
  pathOf,
  present,
  userAt,
  type World,
} from '../world.ts';
import { claimOf } from './access.ts';
import { isOpen } from './conditions-instance.ts';
import type { PlanContext } from './context.ts';
import { deleteSecret, planKeyDeletion } from './deletion.ts';
import { NOT_ADMITTED, planFinalizer, planScope } from './member.ts';

/** The steps that can be taken now, in order. The status is planned when there are none. */
export function planKey(view: KeyView, context: PlanContext): Action[] {
  const key = view.object;
  if (isDeleted(key)) return planKeyDeletion(view, context);
  if (context.world.failures.has(idOf(key.kind, key.metadata))) return [];
  const access = context.access(key);
  if (access.at === 'notAllowed') return suspendValues(view, access.instance);
  if (access.at !== 'allowed') return [];
  const { instance } = access;
  if (!isOpen(instance)) return planFinalizer(key);
  const { value, why, steps } = planSecret(view, instance, context);
  // A key that goes with its user is not blocked for it first: it may be one that is retained.
  const scope = isLeaving(key, context)
    ? []
    : planScope(key, instance, context, { view, ...(value && { value, why }) });
  // The steps after the row wait for it: for the alias, or for a user or team that pays.
  const isRecorded = value === undefined || scope.some(({ action }) => action === 'PutScope');
  return [...planFinalizer(key), ...scope, ...(isRecorded ? steps : [])];
}

const isLeaving = ({ metadata }: VirtualKey, { world }: PlanContext): boolean =>
  metadata.ownerReferences?.some(({ kind, name, uid }) => {
    const user = kind === 'User' ? userAt(world, pathOf({ namespace: metadata.namespace, name })) : undefined;
    return user?.metadata.uid === uid && isDeleted(user);
  }) === true;

/**
 * A key of a namespace that is not admitted any more does not work: its values are retired, its claim and its Secret
 * stay.
 */
function suspendValues({ object }: KeyView, instance: InstanceView | undefined): Action[] {
  const { state, claim } = instance === undefined ? { state: 'open' } : claimOf(object, instance);
  if (state !== 'ours' || claim === undefined) return [];
  return retire(object, claim, hashesOf(claim), NOT_ADMITTED);
}

/** `value`: to be recorded before the steps. */
interface SecretPlan {
  readonly value?: ScopeValue;
  readonly why?: string;
  readonly steps: ReadonlyArray<Action>;
}

/** The facts about a key's value. */
interface Case {
  readonly view: KeyView;
  readonly key: VirtualKey;
  /** Without values while the key has none. */
  readonly claim: ClaimState;
  /** Values that live without end: one in the overlap of a rotation is not among them. */
  readonly live: ReadonlyArray<string>;
  readonly ended: World['ended'];
  /** The database's clock. */
  readonly time: Millis;
  readonly shape: SecretShape;
  put(value: ActionOf<'PutSecret'>['value'], why: string): Action;
}

type ClaimState = Pick<Claim, 'scopeId' | 'anchor' | 'values'>;

const NOTHING: ClaimState = { scopeId: '', anchor: 0, values: [] };

function planSecret(view: KeyView, instance: InstanceView, context: PlanContext): SecretPlan {
  const { object: key, secret } = view;
  const { state, claim = NOTHING } = claimOf(key, instance);
  if (state === 'taken' || state === 'orphaned') return { steps: [] };
  const { url } = context.evaluate(instance).workload;
  const { secretPrefixes: prefixes } = context.world.platform;
  const shape = shapeOf(key, { name: secretNameOf(key, context.hash), url, prefixes, present: present(secret) });
  const isNew = secret.state === 'absent';
  const put: Case['put'] = (value, why) => ({
    action: 'PutSecret',
    ...about(key, why),
    instance: instancePathOf(key),
    shape,
    value,
    isNew,
  });
  const { time } = instance;
  const live = claim.values.flatMap(({ hash, notAfter }) => (notAfter === undefined ? [hash] : []));
  const one: Case = { view, key, claim, live, ended: context.world.ended, time, shape, put };
  const over = retire(key, claim, endedOf(claim, time), 'the overlap of a rotation is over, or too many overlap');
  const { steps, ...plan } = isNew ? planAbsent(one) : planPresent(one, present(secret));
  return { ...plan, steps: [...over, ...steps] };
}

/** Renamed: the value moves along. Lost: clients have lost the old value too, a new one is made. */
function planAbsent(one: Case): SecretPlan {
  const { view, key, live, put } = one;
  const previous = present(view.previous);
  const isMoved = previous?.hash !== undefined && isOurs(previous, key, live);
  if (isMoved && live.includes(previous.hash))
    return { steps: [put('previous', `its Secret is now called "${one.shape.name}"`)] };
  if (isMoved && isRestorable(one, previous.hash)) return { value: restored(one, previous.hash), steps: [] };
  const isLost = live.length > 0 || key.status?.keyID !== undefined;
  const why = isLost
    ? `Secret "${one.shape.name}" is lost: a new key takes its place`
    : `it has no key yet: one is made in Secret "${one.shape.name}"`;
  return { value: newValue(key), why, steps: [...retireLost(one, 'its Secret is lost'), put('new', why)] };
}

/**
 * In this order: the first that fits says what is to be done. Nothing for a Secret that was not read, or is not ours.
 */
function planPresent(one: Case, secret: PresentSecret | undefined): SecretPlan {
  const { view, key, live, claim, time, put } = one;
  if (secret === undefined || !isOurs(secret, key, hashesOf(claim))) return { steps: [] };
  const { hash = '', name } = secret;
  // Only what has our label may be deleted later.
  if (!isLabelled(secret)) return { steps: [put('same', `Secret "${name}" lost our label`)] };
  if (live.includes(hash)) return planWorking(one, secret);
  const isOld = isOverlapping(claim, hash, time);
  // The Secret holds the value that the key had: its row was lost, or its values were suspended.
  if (hash !== '' && !isOld && isRestorable(one, hash))
    return {
      value: { ...newValue(key), ...restored(one, hash) },
      why: `the value in Secret "${name}" is to work`,
      steps: [],
    };
  // Another run may just have published the value that the Secret holds.
  const unlessLive = secret.hash;
  // The Secret was edited, and the status still has the true value.
  if (view.statusHash !== undefined && live.includes(view.statusHash)) {
    const why = `the key in Secret "${name}" was edited: the true one is put back`;
    return { value: { hash: view.statusHash, unlessLive }, why, steps: [put('status', why)] };
  }
  // The Secret was put back to a value that a rotation had replaced, which works for a while: another takes its place
  // in time.
  if (isOld) {
    const why = `the value in Secret "${name}" was replaced and works no longer soon`;
    return { value: newValue(key), why, steps: [put('new', why)] };
  }
  const why = `the key in Secret "${name}" was edited and the true one is lost: a new key takes its place`;
  return { value: { ...newValue(key), unlessLive }, why, steps: [...retireLost(one, why), put('new', why)] };
}

/**
 * The Secret holds a value that works: the others end, a new one comes when it is due, and what differs is repaired.
 */
function planWorking({ key, view, claim, time, shape, put }: Case, secret: PresentSecret): SecretPlan {
  const { hash = '', name } = secret;
  const others = othersOf(claim, hash, key.status?.keyID, time);
  const overlap = overlapOf(key.spec.rotation);
  const whyOver = `a new value has taken its place: the previous one works on for ${overlap / 1000} seconds`;
  const before = replayOf(view, secret);
  const left: Action[] = [
    ...retire(key, claim, others.replaced, whyOver, overlap),
    ...retire(key, claim, others.lost, 'nobody was ever given it'),
    ...(before === undefined ? [] : [deleteSecret(key, before, `Secret "${before.name}" is called "${name}" now`)]),
  ];
  const value = claim.values.find((one) => one.hash === hash);
  const due = value && whyRotate(key, value, claim, time);
  // The end of the old value follows the new Secret: nothing else would show a next run that this value was published.
  const ended = retire(key, claim, [hash], whyOver, overlap);
  if (due !== undefined) return { value: newValue(key), why: due, steps: [...left, put('new', due), ...ended] };
  const drift = driftOf(secret, shape);
  return { steps: drift === '' ? left : [...left, put('same', `the ${drift} of Secret "${name}" differ`)] };
}

/**
 * This is the value that the key had, as far as that is known, and the claim has none, or only those before it: a
 * backup of the database was restored. A forged Secret is no such value: only reconcile may write the status.
 */
function isRestorable({ live, ended, claim, key }: Case, hash: string): boolean {
  const keyID = key.status?.keyID;
  if (live.length === 0) return keyID === undefined || keyID === hash;
  return keyID === hash && !hashesOf(claim).includes(hash) && !ended.has(hash);
}

/** Of a claim with values, one that was ended there is not restored: a backup of the cluster shows it again. */
const restored = ({ live }: Case, hash: string): ScopeValue => ({
  hash,
  unlessEnded: live.length === 0 ? undefined : hash,
});

const newValue = ({ metadata }: VirtualKey): ScopeValue => ({ rotation: askedFor(metadata.annotations) });

const retireLost = ({ key, claim, time }: Case, why: string): Action[] =>
  retire(key, claim, publishedOf(claim, key.status?.keyID, time), why);

function retire(
  key: VirtualKey,
  { scopeId }: ClaimState,
  hashes: ReadonlyArray<string>,
  why: string,
  overlap?: Millis,
): Action[] {
  return hashes.length === 0 ? [] : [{ action: 'RetireValues', ...aboutClaim(key, why), scopeId, hashes, overlap }];
}
