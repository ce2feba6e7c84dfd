// The status that each object should have, and what of it is not written yet. Status describes what was observed (DESIGN 6, law 2).
import { type ConditionState, toConditions, toTimestamp } from '#core/conditions.ts';
import { toProblem, toText } from '#core/finding.ts';
import { formatMoney } from '#core/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { Condition } from '#crds/fragments.ts';
import type { GatewayInstance, GatewayInstanceStatus } from '#crds/gateway-instance.ts';
import type { Team, TeamStatus } from '#crds/team.ts';
import type { User, UserStatus } from '#crds/user.ts';
import type { VirtualKey, VirtualKeyStatus } from '#crds/virtual-key.ts';
import { type Action, about, event, type StatusPatch } from '../action.ts';
import { type Spend, spendOf } from '../key/budget.ts';
import { expiryOf } from '../key/rotation.ts';
import { displayOf, isOurs, leftoverOf } from '../key/secret-shape.ts';
import {
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type KeyView,
  type Malformed,
  type Member,
  type OwnObject,
  type Path,
  type Problem,
  pathOf,
  present,
} from '../world.ts';
import { toLedgerCondition } from './conditions-instance.ts';
import { SOFT, toModelsCondition, toRotationCondition, toSoftBudgetCondition, whyNot } from './conditions-member.ts';
import type { PlanContext } from './context.ts';
import { instanceBlockedBy, toWaiting } from './deletion.ts';
import { type Guarded, toGuardedMessage } from './guard.ts';
import { optional, sameJson } from './json.ts';
import { ownedKeyOf } from './owned-key.ts';

/** Conditions that are there only while there is something to say. Only a run that sees all members sees what is guarded. */
const GUARDED = 'DeletionsGuarded';
const PAUSED = 'Paused';
const SPEC_VALID = 'SpecValid';
const PASSING = { GatewayInstance: ['LedgerAdopted', PAUSED], VirtualKey: ['Rotation', SOFT], User: [], Team: [] };

/** `inactive`: the keys that do not work. */
export function planInstanceStatus(
  view: InstanceView,
  context: PlanContext,
  { guarded, inactive }: { readonly guarded: ReadonlyArray<Guarded>; readonly inactive: ReadonlySet<Path> },
): Action[] {
  const { object, snapshot, isComplete } = view;
  if (object.spec.paused && !isDeleted(object)) return planPausedStatus(object, context);
  const { conditions, models, workload } = context.evaluate(view);
  const own = guarded.filter(({ instance }) => instance === pathOf(object.metadata));
  const tooMany = own.map(toGuardedMessage);
  const isGuarded: ConditionState = { type: GUARDED, status: 'True', reason: TOO_MANY, message: tooMany.join('; ') };
  const deleting = { reason: 'Deleting', message: toWaiting(object, instanceBlockedBy(view, context.world)) };
  const evaluated = isDeleted(object)
    ? [toReady(deleting)]
    : [...conditions, ...toLedgerCondition(view), ...(isComplete && own.length > 0 ? [isGuarded] : [])];
  const before = object.status;
  // What is served, not what is published: while a rollout is under way that is the one before.
  const hash = snapshot.isPublished && workload.isCurrent ? snapshot.hash : before?.snapshotHash;
  const after: GatewayInstanceStatus = {
    ...toObserved(object, evaluated, context, isComplete ? [...PASSING.GatewayInstance, GUARDED] : undefined),
    ...optional('url', workload.url),
    models,
    ...optional('keys', isComplete ? countKeys(view, context, inactive) : before?.keys),
    ...optional('snapshotHash', hash),
    ...optional('workloadType', workload.type),
  };
  return [...planWrite(object, after, context), ...own.map((one) => toGuardedEvent(object, one))];
}

/** The reason of too many deletions, in the condition and in its event. */
const TOO_MANY = 'TooManyDeletions';

/** The same plan is told once. */
function toGuardedEvent(object: GatewayInstance, guarded: Guarded): Action {
  const { action, count, of } = guarded;
  const once = `${TOO_MANY}/${action}/${count}/${of}`;
  return event(object, { type: 'Warning', reason: TOO_MANY, message: toGuardedMessage(guarded), once });
}

/** Everything else stays as it was seen last; `observedGeneration` too, for nothing later was acted on. */
function planPausedStatus(object: GatewayInstance, context: PlanContext): Action[] {
  const message =
    'spec.paused is true: since then nothing of this instance is acted on but deletion, and what runs goes on; delete a VirtualKey to stop it now';
  const { generation } = object.metadata;
  const evaluated = { type: PAUSED, status: 'True', reason: PAUSED, message } as const;
  const conditions = toConditions([evaluated], object.status?.conditions ?? [], { generation, now: context.now });
  return planWrite(object, { ...object.status, conditions }, context);
}

function countKeys({ object }: InstanceView, { world }: PlanContext, inactive: ReadonlySet<Path>) {
  const path = pathOf(object.metadata);
  const keys = [...world.keys].filter(([, { object: key }]) => instancePathOf(key) === path && !isDeleted(key));
  return { total: keys.length, active: keys.filter(([key]) => !inactive.has(key)).length };
}

export function planScopeStatus(member: User | Team, context: PlanContext): Action[] {
  const access = context.access(member);
  if (access.at === 'paused') return [];
  const claim = context.ownClaim(member);
  const spend = claim && access.instance ? spendOf(member, claim, access.instance, context.now) : undefined;
  const after: UserStatus | TeamStatus = {
    ...toObserved(member, [toReady(whyNot(member, context)), toModelsCondition(member, context)], context),
    ...(access.at === 'allowed' ? toSpendStatus(member, spend) : spendStatusOf(member)),
    ...(member.kind === 'User' ? keyRefs(member, context) : {}),
  };
  return planWrite(member, after, context);
}

type SpendStatus = Pick<VirtualKeyStatus, 'currentSpend' | 'budgetResetDate'>;

/** What a status says of it: when a budget resets that ever does. */
function toSpendStatus({ spec }: Member, spend: Spend | undefined): SpendStatus {
  if (spend === undefined) return {};
  const resets = spec.budgetDuration === undefined ? undefined : toTimestamp(spend.resetsAt);
  return { currentSpend: formatMoney(spend.spent), ...optional('budgetResetDate', resets) };
}

/** While nothing can be known of it, what was said stays. */
const spendStatusOf = ({ status }: Member): SpendStatus => ({
  ...optional('currentSpend', status?.currentSpend),
  ...optional('budgetResetDate', status?.budgetResetDate),
});

function keyRefs(user: User, context: PlanContext): Pick<UserStatus, 'keyRef' | 'keySecretRef'> {
  const { key, isOwned } = ownedKeyOf(user, context);
  const view = key && context.world.keys.get(pathOf(key.metadata));
  if (view === undefined || !isOwned || isDeleted(view.object)) return {};
  const { keySecretRef } = toSecretStatus(view, context.ownClaim(view.object), context);
  return { keyRef: { name: view.object.metadata.name }, ...optional('keySecretRef', keySecretRef) };
}

/** `problem`: why it does not work. */
export function planKeyStatus(view: KeyView, context: PlanContext, problem: Problem | undefined): Action[] {
  const key = view.object;
  const access = context.access(key);
  if (access.at === 'paused') return [];
  const claim = context.ownClaim(key);
  const spend = claim && access.instance ? spendOf(key, claim, access.instance, context.now) : undefined;
  const soft = claim && toSoftBudgetCondition(key, spend);
  const time = access.instance?.time ?? 0;
  const published = view.secret.state === 'unread' ? key.status?.keyID : present(view.secret)?.hash;
  const rotation = claim && toRotationCondition(key, claim, published, time);
  const further = [rotation, soft].filter((evaluated) => evaluated !== undefined);
  const expiry = claim && expiryOf(key, claim);
  // What the claim tells. While it cannot be seen, what was seen of it stays.
  const ofClaim = {
    ...toSpendStatus(key, spend),
    ...optional('expiryDate', expiry === undefined ? undefined : toTimestamp(expiry)),
  };
  const unseen = { ...spendStatusOf(key), ...optional('expiryDate', key.status?.expiryDate) };
  const after: VirtualKeyStatus = {
    ...toObserved(
      key,
      [toReady(problem), toModelsCondition(key, context), ...further],
      context,
      claim ? undefined : [],
    ),
    ...toSecretStatus(view, claim, context),
    ...(access.at === 'allowed' ? ofClaim : unseen),
    isActive: problem === undefined,
    ...optional('lastSyncTime', key.status?.lastSyncTime),
  };
  const before = claim?.values.find(({ hash }) => hash === key.status?.keyID);
  const isRotated = before?.notAfter !== undefined && before.notAfter > time;
  const writes = planWrite(key, after, context, {
    keyValue: modeOf(view, context) === 'Full' ? 'full' : 'redacted',
    worksUntil: isRotated ? toTimestamp(before.notAfter) : undefined,
  });
  return [...writes, ...planSoftBudgetEvent(key, soft)];
}

/** Once in a window; after an edit of `softBudget` once more. */
function planSoftBudgetEvent(key: VirtualKey, evaluated: ConditionState | undefined): Action[] {
  if (evaluated?.status !== 'True') return [];
  const before = key.status?.conditions?.find(({ type }) => type === SOFT);
  if (before?.status === 'True' && before.message === evaluated.message) return [];
  const { message } = evaluated;
  return [event(key, { type: 'Warning', reason: SOFT, message, once: `${SOFT}/${message}` })];
}

/** A value is shown once it works. While nothing can be known of it, what was shown stays. */
function toSecretStatus(
  view: KeyView,
  claim: Claim | undefined,
  context: PlanContext,
): Pick<VirtualKeyStatus, 'keySecretRef' | 'keyValue' | 'keyID'> {
  const { keySecretRef, keyID, keyValue } = view.object.status ?? {};
  const live = claim && hashesOf(claim);
  // Where the one of the new name could not be made, the one of the name before is still the key's.
  const secret = present(view.secret) ?? present(view.previous);
  const show = (value: string) => (modeOf(view, context) === 'Full' ? value : displayOf(value));
  if (secret?.hash !== undefined && live?.includes(secret.hash) && isOurs(secret, view.object, live)) {
    // Not before the one of the name before is gone: once forgotten, it would be left behind.
    const left = leftoverOf(view, secret);
    const value = show(secret.data.get('key') ?? '');
    return { keySecretRef: left?.name ?? secret.name, keyID: secret.hash, keyValue: value };
  }
  if (live !== undefined && view.secret.state !== 'unread') return optional('keyID', keyID);
  const shown = keyValue === undefined ? undefined : show(keyValue);
  return { ...optional('keySecretRef', keySecretRef), ...optional('keyID', keyID), ...optional('keyValue', shown) };
}

function modeOf(view: KeyView, { world }: PlanContext): 'Full' | 'Redacted' {
  return world.instances.get(instancePathOf(view.object))?.object.spec.keyValueInStatus ?? 'Full';
}

/** An object whose spec an older CRD let in: nothing can be done for it but to say so, and to let it go. */
export function planMalformedStatus(malformed: Malformed, context: PlanContext): Action[] {
  const object = { ...malformed, kind: malformed.kind } as Reported;
  const problem = { reason: 'InvalidSpec', message: toText(malformed.violations) };
  // Of all else nothing is known while a spec cannot be read.
  const stale = (object.status?.conditions ?? []).filter(({ type }) => type !== 'Ready' && type.endsWith('Ready'));
  const unknown = stale.map(({ type }): ConditionState => ({ type, status: 'Unknown', ...problem }));
  const observed = toObserved(object, [toReady(problem), ...unknown], context, []);
  const after = { ...object.status, ...observed, ...(object.kind === 'VirtualKey' ? { isActive: false } : {}) };
  return planWrite(object, after, context);
}

type Reported = Pick<OwnObject, 'kind' | 'metadata' | 'status'>;

/**
 * Conditions that keep their transition times, and the generation that was evaluated. `passing`: types that go when they are not
 * evaluated. `SpecValid`: a rule about the spec alone that an older CRD, or a cluster without CEL, did not ask; what breaks one goes on
 * working as far as it can.
 */
function toObserved(
  object: Reported,
  evaluated: ReadonlyArray<ConditionState>,
  { now, world }: PlanContext,
  passing: ReadonlyArray<string> = PASSING[object.kind],
) {
  const { generation } = object.metadata;
  const invalid = toProblem(world.violations.get(idOf(object.kind, object.metadata)) ?? []);
  const all =
    invalid === undefined ? evaluated : [...evaluated, { type: SPEC_VALID, status: 'False', ...invalid } as const];
  const before = (object.status?.conditions ?? []).filter(({ type }) => type !== SPEC_VALID && !passing.includes(type));
  const times = (object.status?.conditions ?? []).filter(({ type }) => all.some((one) => one.type === type));
  return { conditions: toConditions(all, [...times, ...before], { generation, now }), observedGeneration: generation };
}

const toReady = (problem: Problem | undefined): ConditionState =>
  problem === undefined
    ? { type: 'Ready', status: 'True', reason: 'Ready', message: 'works' }
    : { type: 'Ready', status: 'False', ...problem };

interface Shown {
  /** How a key's value is shown. */
  readonly keyValue?: StatusPatch['keyValue'];
  /** Until when the value before a new one works on. */
  readonly worksUntil?: string | undefined;
}

/** Only what changed, with its events. `lastSyncTime` changes only along with something else. */
function planWrite(
  object: Reported,
  after: Readonly<Record<string, unknown>> & object,
  context: PlanContext,
  { keyValue, worksUntil }: Shown = {},
): Action[] {
  const before: Readonly<Record<string, unknown>> = object.status ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => !sameJson(before[name], after[name]));
  if (changed.length === 0) return [];
  const isShown = changed.includes('keyValue') && after.keyValue !== undefined && keyValue !== undefined;
  const plain = changed.filter((name) => name !== 'keyValue' || !isShown);
  const members = {
    ...Object.fromEntries(plain.map((name) => [name, after[name] ?? null])),
    ...(object.kind === 'VirtualKey' ? { lastSyncTime: toTimestamp(context.now) } : {}),
  };
  const patch: StatusPatch = isShown ? { members, keyValue } : { members };
  const why = `its ${changed.join(', ')} changed`;
  return [{ action: 'WriteStatus', ...about(object, why), patch }, ...planEvents(object, after, worksUntil)];
}

interface Seen {
  readonly conditions?: ReadonlyArray<Condition> | undefined;
  readonly keyID?: string | undefined;
  readonly keySecretRef?: string | undefined;
}

/** One event for a new key, one whenever Ready turns or has another reason. Their names make a second run tell nothing more. */
function planEvents(object: Reported, status: object, worksUntil: string | undefined): Action[] {
  const [before, after]: [Seen, Seen] = [object.status ?? {}, status];
  const [was, is] = [before, after].map(({ conditions }) => conditions?.find(({ type }) => type === 'Ready'));
  const events: Action[] = [];
  if (after.keyID !== undefined && after.keyID !== before.keyID) {
    const reason = worksUntil === undefined ? 'KeyCreated' : 'KeyRotated';
    const old = worksUntil === undefined ? 'the one before works no more' : `the one before works until ${worksUntil}`;
    const message =
      before.keyID === undefined
        ? `the key is in Secret "${after.keySecretRef}"`
        : `a new key is in Secret "${after.keySecretRef}": ${old}`;
    events.push(event(object, { type: 'Normal', reason, message, once: `${reason}/${after.keyID}` }));
  }
  if (is !== undefined && (was?.status !== is.status || was.reason !== is.reason)) {
    const once = `${is.reason}/${was?.reason ?? ''}/${was?.lastTransitionTime ?? ''}/${object.metadata.generation}`;
    const type = is.status === 'True' ? 'Normal' : 'Warning';
    events.push(event(object, { type, reason: is.reason, message: inOneLine(is.message), once }));
  }
  return events;
}

/** Lists of events are tables: `- a`, `- b` below each other in a condition is `(1) a (2) b` in a row. */
function inOneLine(message: string): string {
  const lines = message.split('\n');
  if (lines.length === 1) return message;
  return lines.map((line, index) => `(${index + 1}) ${line.replace(/^- /, '')}`).join(' ');
}
