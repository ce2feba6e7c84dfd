// The status that each object should have, and the difference from what is written. Status describes what was observed
// (DESIGN 6, law 2).
import { type ConditionState, toConditions, toTimestamp } from '#core/conditions/conditions.ts';
import { CONDITION_TYPES, REASONS, type Reason, toOtherReason } from '#core/conditions/reasons.ts';
import { formatMoney } from '#core/money/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { toProblem, toText } from '#core/rules/finding.ts';
import { templateHarmless } from '#core/rules/secret-template.ts';
import type { GatewayInstance, GatewayInstanceStatus } from '#crds/kinds/gateway-instance.ts';
import type { Condition } from '#crds/kinds/shared-fields.ts';
import type { User, UserStatus } from '#crds/kinds/user.ts';
import type { VirtualKey, VirtualKeyStatus } from '#crds/kinds/virtual-key.ts';
import type { Violation } from '#crds/validation/violation.ts';
import { type Action, about, type DeletionGuard, event, type StatusPatch } from '../action.ts';
import { differingMembers } from '../json.ts';
import { type Spend, spendOf, type WindowSpend, windowSpends } from '../key/budget.ts';
import { expiryOf } from '../key/rotation.ts';
import { displayOf, isOurs, replacedSecretOf } from '../key/secret-shape.ts';
import {
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type KeyView,
  type MalformedObject,
  type OwnClaim,
  type Path,
  type Problem,
  pathOf,
  presentSecret,
  type ScopeObject,
} from '../world.ts';
import { claimOf } from './access.ts';
import { planSoftBudgetEvent, planThresholdEvent, planWindowEvent } from './budget-events.ts';
import { toLedgerCondition } from './conditions-instance.ts';
import {
  ownCausesOf,
  SOFT_BUDGET_REACHED,
  toModelsCondition,
  toRotationCondition,
  toSoftBudgetCondition,
} from './conditions-scope-object.ts';
import type { PlanContext } from './context.ts';
import { deletionMessage, instanceObstacle } from './deletion.ts';
import { POLICY_MET, planPolicyEvent, policyInForce, toPolicyCondition } from './key-policy.ts';
import { namespaceSpends, planNamespaceEvents, toNamespaceStatus } from './namespace-status.ts';
import { namespaceClaim } from './namespaces.ts';
import { ownedKeyOf } from './owned-key.ts';

/** Conditions that exist only while they have something to report. */
const GUARDED = 'DeletionsGuarded';
const PAUSED = 'Paused';
const SPEC_VALID = 'SpecValid';
/** Only with `spec.httpRoute` or `spec.ingress`. */
const ROUTE_READY = 'RouteReady';
const CLAIM_TYPES = ['Rotation', SOFT_BUDGET_REACHED, POLICY_MET];
const TEMPORARY_TYPES: ReadonlyArray<string> = [
  GUARDED,
  PAUSED,
  SPEC_VALID,
  ROUTE_READY,
  'LedgerAdopted',
  ...CLAIM_TYPES,
];

/** The reason of too many deletions, for the condition and its event. */
const TOO_MANY = 'TooManyDeletions';

/** `inactive`: the VirtualKeys that do not work. */
export function planInstanceStatus(
  view: InstanceView,
  context: PlanContext,
  { guarded, inactive }: { readonly guarded: ReadonlyArray<DeletionGuard>; readonly inactive: ReadonlySet<Path> },
): Action[] {
  const { object, snapshot, isComplete, entryProblems } = view;
  if (entryProblems === 'unread') return [];
  if (object.spec.paused && !isDeleted(object)) return planPausedStatus(object, context);
  const { conditions, models, workload, address } = context.evaluate(view);
  const own = guarded.filter(({ instance }) => instance === pathOf(object.metadata));
  const tooMany = own.map(({ message }) => message).join('; ');
  const guardedCondition: ConditionState = { type: GUARDED, status: 'True', reason: TOO_MANY, message: tooMany };
  const message = deletionMessage(object, instanceObstacle(view, context.world));
  const evaluated = isDeleted(object)
    ? [toReady({ reason: 'Deleting', message })]
    : [...conditions, ...toLedgerCondition(view), ...(isComplete && own.length > 0 ? [guardedCondition] : [])];
  const before = object.status;
  // Only a complete view has the claims of all namespaces.
  const isKnown = isComplete && view.database.ok && view.database.isKnown;
  const spends = isKnown ? namespaceSpends(view, context.now) : undefined;
  const after: GatewayInstanceStatus = {
    // Only a run with all scope objects finds the deletions that are guarded.
    ...toObserved(object, evaluated, context, isComplete ? [] : [GUARDED]),
    ...address,
    models,
    namespaces: spends === undefined ? before?.namespaces : toNamespaceStatus(spends),
    keys: isComplete && !mayLackKeys(view, context) ? countKeys(view, context, inactive) : before?.keys,
    // The snapshot that is served. During a rollout that is the previous one, not the published one.
    snapshotHash:
      snapshot.isPublished && snapshot.isPushed && workload.isCurrent ? snapshot.hash : before?.snapshotHash,
    workloadType: workload.type,
  };
  const events = own.map((one) => {
    // One event for each combination of action and counts.
    const once = `${TOO_MANY}/${one.action}/${one.count}/${one.total}`;
    return event(object, { reason: TOO_MANY, message: one.message, once });
  });
  const shares = isDeleted(object) ? [] : planNamespaceEvents(object, spends ?? []);
  return [...planWrite(object, after, context), ...events, ...shares];
}

/**
 * Everything else keeps its last observed value, also `observedGeneration`, because no later generation was processed.
 */
function planPausedStatus(object: GatewayInstance, context: PlanContext): Action[] {
  const message =
    'spec.paused is true: only deletions are processed, and gateways serve. To stop a VirtualKey now, delete it';
  const { generation } = object.metadata;
  const evaluated = { type: PAUSED, status: 'True', reason: PAUSED, message } as const;
  const conditions = toConditions([evaluated], object.status?.conditions ?? [], { generation, now: context.now });
  return planWrite(object, { ...object.status, conditions }, context);
}

/** Whether the instance may have VirtualKeys that are not loaded. */
const mayLackKeys = ({ claims }: InstanceView, { world }: PlanContext): boolean =>
  world.notLoaded.size > 0 && claims.values().some(({ holder }) => world.notLoaded.has(holder.uid));

function countKeys({ object }: InstanceView, { keysOf }: PlanContext, inactive: ReadonlySet<Path>) {
  const keys = keysOf(pathOf(object.metadata)).filter((key) => !isDeleted(key));
  return { total: keys.length, active: keys.filter(({ metadata }) => !inactive.has(pathOf(metadata))).length };
}

/** `problem`: why the scope object does not work. `view`: of a VirtualKey. */
export function planScopeObjectStatus(
  scopeObject: ScopeObject,
  context: PlanContext,
  problem: Problem<Reason> | undefined,
  view?: KeyView,
): Action[] {
  const access = context.access(scopeObject);
  if (access.state === 'paused') return [];
  const own = context.ownClaim(scopeObject);
  const spend = spendOf(scopeObject, own, context.now);
  const { spec, status } = scopeObject;
  const reset = spend && spec.budgetDuration !== undefined ? toTimestamp(spend.resetsAt) : undefined;
  const further = view && own ? conditionsOfClaim(view, own, { spend, context }) : [];
  const evaluated = [toReady(problem), toModelsCondition(scopeObject, context), ...further];
  const after = {
    ...toObserved(
      { ...scopeObject, forbidden: forbiddenIn(scopeObject, context) },
      evaluated,
      context,
      view && own ? unknownTypesOf(view, own) : CLAIM_TYPES,
    ),
    // The last known spend stays while the instance's database is unknown.
    ...(access.state === 'allowed'
      ? { currentSpend: spend && formatMoney(spend.spent), budgetResetDate: reset }
      : { currentSpend: status?.currentSpend, budgetResetDate: status?.budgetResetDate }),
  };
  const shares = planThresholdEvent(scopeObject, { spend, reset, maxBudget: spec.maxBudget, before: status });
  if (view === undefined) {
    const ownStatus = { ...after, ...(scopeObject.kind === 'User' ? toKeyRefs(scopeObject, context) : {}) };
    return [...shares, ...planWrite(scopeObject, ownStatus, context)];
  }
  const expiry = own && expiryOf(view.object, own.claim);
  const expiryDate = expiry === undefined ? undefined : toTimestamp(expiry);
  const windows = own && view.object.spec.budgets && windowSpends(view.object, own, context.now);
  const keyStatus: VirtualKeyStatus = {
    ...after,
    budgets: access.state === 'allowed' ? windows?.map(toWindowStatus) : view.object.status?.budgets,
    expiryDate: access.state === 'allowed' ? expiryDate : view.object.status?.expiryDate,
    ...toSecretStatus(view, own?.claim, context),
    policy: access.state === 'allowed' ? policyNameOf(view, access.instance) : view.object.status?.policy,
    isActive: problem === undefined,
    lastSyncTime: view.object.status?.lastSyncTime,
  };
  const keyValue = displayModeOf(view, context) === 'Full' ? 'full' : 'redacted';
  const [soft, policy] = [SOFT_BUDGET_REACHED, POLICY_MET].map((one) => further.find(({ type }) => type === one));
  const value = planValueEvent(view.object, keyStatus, own);
  const write = planWrite(scopeObject, keyStatus, context, { keyValue, value });
  const ofWindows = windows?.flatMap((window) => planWindowEvent(view.object, window)) ?? [];
  const violated = planPolicyEvent(view.object, policy, problem?.reason !== policy?.reason);
  return [...shares, ...ofWindows, ...write, ...planSoftBudgetEvent(view.object, soft), ...violated];
}

/**
 * The block of a scope object whose namespace may or may not be allowed, once its policy has it. Everything else keeps
 * its last observed value.
 */
export function planBlockedStatus(scopeObject: ScopeObject, context: PlanContext): Action[] {
  const { state, instance } = context.access(scopeObject);
  const [problem] = ownCausesOf(scopeObject);
  if (state !== 'unknown' || problem === undefined || isDeleted(scopeObject)) return [];
  if (instance === undefined || instance.object.spec.paused) return [];
  const { state: claimState, claim } = claimOf(scopeObject, instance);
  if (claimState !== 'ours' || claim.policy?.blocked !== true) return [];
  const { kind, metadata, status } = scopeObject;
  const at = { generation: metadata.generation, now: context.now };
  const conditions = toConditions([toReady(problem)], status?.conditions ?? [], at);
  const after = { ...status, conditions, ...(kind === 'VirtualKey' ? { isActive: false } : {}) };
  return planWrite(scopeObject, after, context);
}

function conditionsOfClaim(
  { object, secret }: KeyView,
  { claim, instance }: OwnClaim,
  { spend, context }: { readonly spend: Spend | undefined; readonly context: PlanContext },
) {
  const published = secret.state === 'unread' ? object.status?.keyID : presentSecret(secret)?.hash;
  const rotation = toRotationCondition(object, claim, published, instance.databaseNow);
  const conditions = [rotation, toSoftBudgetCondition(object, spend), toPolicyCondition(object, instance, context)];
  return conditions.filter((evaluated) => evaluated !== undefined);
}

/** While it is unknown which policy applies, the last condition stays. */
const unknownTypesOf = ({ object }: KeyView, { instance }: OwnClaim): ReadonlyArray<string> =>
  policyInForce(object, instance) === 'unknown' ? [POLICY_MET] : [];

/** The name in the row of the namespace, which is in force. */
const policyNameOf = ({ object }: KeyView, instance: InstanceView): string | undefined =>
  namespaceClaim(instance, object.metadata.namespace)?.policy?.policyName;

function toKeyRefs(user: User, context: PlanContext): Pick<UserStatus, 'keyRef' | 'keySecretRef'> {
  const { key, isOwned } = ownedKeyOf(user, context);
  const view = key && context.world.keys.get(pathOf(key.metadata));
  if (view === undefined || !isOwned || isDeleted(view.object)) return {};
  const { keySecretRef } = toSecretStatus(view, context.ownClaim(view.object)?.claim, context);
  return { keyRef: { name: view.object.metadata.name }, keySecretRef };
}

const toWindowStatus = ({ budgetDuration, spent, resetsAt }: WindowSpend) => ({
  budgetDuration,
  currentSpend: formatMoney(spent),
  budgetResetDate: toTimestamp(resetsAt),
});

/** An event for a new value. Its name is the same in a second run, which then adds none. */
function planValueEvent(key: VirtualKey, { keyID, keySecretRef }: VirtualKeyStatus, own: OwnClaim | undefined) {
  const shown = key.status?.keyID;
  if (keyID === undefined || keyID === shown) return [];
  const end = own?.claim.values.find(({ hash }) => hash === shown)?.notAfter;
  const isRotated = end !== undefined && end > (own?.instance.databaseNow ?? 0);
  const reason = isRotated ? 'KeyRotated' : 'KeyCreated';
  const old = isRotated ? `the previous one works until ${toTimestamp(end)}` : 'the previous one no longer works';
  const message =
    shown === undefined
      ? `Secret "${keySecretRef}" has the key value`
      : `Secret "${keySecretRef}" has a new key value; ${old}`;
  return [event(key, { reason, message, once: `${reason}/${keyID}` })];
}

/** Shows a value if it works. The last shown value stays while it is unknown whether it works. */
function toSecretStatus(
  view: KeyView,
  claim: Claim | undefined,
  context: PlanContext,
): Pick<VirtualKeyStatus, 'keySecretRef' | 'keyValue' | 'keyID'> {
  const { keySecretRef, keyID, keyValue } = view.object.status ?? {};
  const live = claim && hashesOf(claim);
  // If the Secret with the new name could not be created, the Secret with the previous name is still the VirtualKey's.
  const secret = presentSecret(view.secret) ?? presentSecret(view.previous);
  const show = (value: string) => (displayModeOf(view, context) === 'Full' ? value : displayOf(value));
  if (secret?.hash !== undefined && live?.includes(secret.hash) && isOurs(secret, view.object, live)) {
    // The Secret with the previous name must be deleted before the status stops naming it: nothing else would find it.
    const replaced = replacedSecretOf(view, secret);
    const value = show(secret.data.get('key') ?? '');
    return { keySecretRef: replaced?.name ?? secret.name, keyID: secret.hash, keyValue: value };
  }
  if (live !== undefined && view.secret.state !== 'unread') return { keyID };
  return { keySecretRef, keyID, keyValue: keyValue && show(keyValue) };
}

function displayModeOf(view: KeyView, { world }: PlanContext): 'Full' | 'Redacted' {
  return world.instances.get(instancePathOf(view.object))?.object.spec.keyValueInStatus ?? 'Full';
}

/**
 * The status of an object whose spec an older CRD accepted: the violations are reported, and nothing else is done until
 * it is deleted.
 */
export function planMalformedStatus(malformed: MalformedObject, context: PlanContext): Action[] {
  const { kind, status } = malformed;
  const problem: Problem<Reason> = { reason: 'InvalidSpec', message: toText(malformed.violations) };
  // The other conditions are unknown while the spec cannot be read.
  const types = new Set(status?.conditions?.map(({ type }) => type));
  const stale = CONDITION_TYPES.filter(
    (type) => REASONS.InvalidSpec.conditions?.[type] === 'Unknown' && types.has(type),
  );
  const unknown = stale.map((type): ConditionState => ({ type, status: 'Unknown', ...problem }));
  const observed = toObserved(malformed, [toReady(problem), ...unknown], context, TEMPORARY_TYPES);
  const after = { ...status, ...observed, ...(kind === 'VirtualKey' ? { isActive: false } : {}) };
  return planWrite(malformed, after, context);
}

type StatusSubject = Pick<MalformedObject, 'kind' | 'metadata'> & {
  readonly status?: MalformedObject['status'];
  /** Violations of what this platform allows. */
  readonly forbidden?: ReadonlyArray<Violation>;
};

/** Labels and annotations of a VirtualKey's template that its Secret does not get. */
const forbiddenIn = (scopeObject: ScopeObject, { world }: PlanContext): ReadonlyArray<Violation> =>
  scopeObject.kind === 'VirtualKey'
    ? templateHarmless(scopeObject.spec.secretTemplate, world.platform.secretPrefixes)
    : [];

/**
 * Conditions with their transition times, and the evaluated generation. Conditions of `unknownTypes`, about which
 * nothing is known now, stay. `SpecValid` reports a violated rule about the spec that an older CRD, or a cluster
 * without CEL, did not check: the object continues working as far as it can.
 */
function toObserved(
  { kind, metadata, status, forbidden = [] }: StatusSubject,
  evaluated: ReadonlyArray<ConditionState>,
  { now, world }: PlanContext,
  unknownTypes: ReadonlyArray<string>,
) {
  const { generation } = metadata;
  const invalid = toProblem([...(world.violations.get(idOf(kind, metadata)) ?? []), ...forbidden]);
  const all: ReadonlyArray<ConditionState> =
    invalid === undefined ? evaluated : [...evaluated, { type: SPEC_VALID, status: 'False', ...invalid }];
  const before = (status?.conditions ?? []).filter(
    ({ type }) =>
      unknownTypes.includes(type) || !TEMPORARY_TYPES.includes(type) || all.some((one) => one.type === type),
  );
  return { conditions: toConditions(all, before, { generation, now }), observedGeneration: generation };
}

const toReady = (problem: Problem | undefined): ConditionState =>
  problem === undefined
    ? { type: 'Ready', status: 'True', reason: 'Ready', message: 'the object works' }
    : { type: 'Ready', status: 'False', ...problem };

/** The shown value of a VirtualKey, and the event for a new value. */
interface DisplayedValue {
  readonly keyValue?: StatusPatch['keyValue'];
  readonly value?: ReadonlyArray<Action>;
}

/** Writes only what changed, with the events. `lastSyncTime` changes only together with something else. */
function planWrite(
  object: StatusSubject,
  after: Readonly<Record<string, unknown>> & Pick<VirtualKeyStatus, 'conditions'>,
  context: PlanContext,
  { keyValue, value = [] }: DisplayedValue = {},
): Action[] {
  const changed = differingMembers(object.status ?? {}, after);
  if (changed.length === 0) return [];
  const isShown = changed.includes('keyValue') && after.keyValue !== undefined && keyValue !== undefined;
  const plain = changed.filter((name) => name !== 'keyValue' || !isShown);
  const members = {
    ...Object.fromEntries(plain.map((name) => [name, after[name] ?? null])),
    ...(object.kind === 'VirtualKey' ? { lastSyncTime: toTimestamp(context.now) } : {}),
  };
  const patch: StatusPatch = isShown ? { members, keyValue } : { members };
  const write: Action = { action: 'WriteStatus', ...about(object, `its ${changed.join(', ')} changed`), patch };
  return [write, ...value, ...planReadyEvent(object, after.conditions)];
}

/** An event for each change of Ready's status or reason. Its name is the same in a second run, which then adds none. */
function planReadyEvent(object: StatusSubject, conditions: ReadonlyArray<Condition> | undefined): Action[] {
  const [was, is] = [object.status?.conditions, conditions].map((all) => all?.find(({ type }) => type === 'Ready'));
  if (is === undefined || (was?.status === is.status && was.reason === is.reason)) return [];
  const once = `${is.reason}/${was?.reason ?? ''}/${was?.lastTransitionTime ?? ''}/${object.metadata.generation}`;
  return [event(object, { reason: toOtherReason(is.reason), message: is.message, once })];
}
