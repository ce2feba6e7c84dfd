// Whether a VirtualKey, User or Team works, and if not, the first cause, in the order of the table of reasons (DESIGN
// 3).
import { type ConditionState, toTimestamp } from '#core/conditions/conditions.ts';
import { byOrder, type Reason } from '#core/conditions/reasons.ts';
import { formatMoney, parseMoney } from '#core/money/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { aliasTaken, keyConflict, secretConflict } from '#core/rules/conflicts.ts';
import { type Finding, toProblem } from '#core/rules/finding.ts';
import { modelsServed } from '#core/rules/models.ts';
import { referenceFound } from '#core/rules/references.ts';
import type { User } from '#crds/kinds/user.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { budgetOf, type Spend, spendOf, spentBudgets } from '../key/budget.ts';
import { ownBlockersOf } from '../key/own-blockers.ts';
import { dueAt, expiryOf, isExpired, overlapEnd } from '../key/rotation.ts';
import { holdersOf, isLabelled, isOurs, secretNameOf } from '../key/secret-shape.ts';
import {
  aliasOf,
  hashesOf,
  idOf,
  isDeleted,
  type KeyView,
  type OwnClaim,
  type Problem,
  pathOf,
  retainedSecret,
  type ScopeObject,
  teamAt,
} from '../world.ts';
import { claimOf } from './access.ts';
import { toReferred } from './charged-scopes.ts';
import type { InstanceConditions } from './conditions-instance.ts';
import type { PlanContext } from './context.ts';
import { scopeObjectDeletionMessage } from './deletion.ts';
import { allowedModels, policyTeam, whyNoModelAllowed, whyNoPolicyTeam, whyPerKeyExceeded } from './key-policy.ts';
import { whyNoNamespaceRow } from './namespaces.ts';
import { ownedKeyOf } from './owned-key.ts';
import { blockersOf, unprovenSecret } from './scope-object.ts';

type ScopeObjectProblem = Problem<Reason>;
type Violations = ReadonlyArray<Finding<Reason>>;
type Cause = ScopeObjectProblem | Finding<Reason> | Violations | undefined;

/**
 * The first cause for which the scope object does not work; all violations, if that cause is a violated rule.
 * Undefined: it works. `view`: of a VirtualKey.
 */
export function notReadyCause(
  scopeObject: ScopeObject,
  context: PlanContext,
  view?: KeyView,
): ScopeObjectProblem | undefined {
  const why = whyNotAccess(scopeObject, context);
  const own = context.ownClaim(scopeObject);
  if (why !== undefined || own === undefined) return why;
  const causes = view === undefined ? causesOfOwner(scopeObject, own, context) : causesOfKey(view, own, context);
  const reasonOf = (cause: ScopeObjectProblem | Finding<Reason>) => ('rule' in cause ? cause.rule : cause.reason);
  const found = causes.flat().filter((cause) => cause !== undefined);
  found.sort((one, other) => byOrder(reasonOf(one), reasonOf(other)));
  const [first] = found;
  return first !== undefined && 'rule' in first ? toProblem(found.filter((cause) => 'rule' in cause)) : first;
}

/** The cause in the instance, the namespace or the alias: these are common to VirtualKeys, Users and Teams. */
function whyNotAccess(scopeObject: ScopeObject, context: PlanContext): ScopeObjectProblem | undefined {
  if (isDeleted(scopeObject)) return { reason: 'Deleting', message: scopeObjectDeletionMessage(scopeObject, context) };
  const failure = context.world.failures.get(idOf(scopeObject.kind, scopeObject.metadata));
  const why = context.access(scopeObject).why ?? whyTaken(scopeObject, context) ?? failure;
  if (why !== undefined || context.ownClaim(scopeObject) !== undefined) return why;
  const { instance } = context.access(scopeObject);
  const isKey = scopeObject.kind === 'VirtualKey' && instance !== undefined;
  const ofNamespace = isKey ? whyNoNamespaceRow(scopeObject.metadata.namespace, instance, context.world) : undefined;
  return ofNamespace ?? { reason: 'Pending', message: 'the alias is not claimed yet' };
}

function causesOfKey(view: KeyView, own: OwnClaim, context: PlanContext): ReadonlyArray<Cause> {
  const key = view.object;
  const { now } = context;
  const ofKey = context.chargedScopes(key).charged;
  const shared = policyTeam(key, own.instance, context);
  const isNew = shared !== undefined && !ofKey.some(({ claim }) => claim.scopeId === shared.claim.scopeId);
  const charged = isNew ? [...ofKey, shared] : ofKey;
  const titleOf = ({ kind, metadata }: ScopeObject) => `${kind} "${metadata.name}"`;
  const spent = spentBudgets(key, own, now);
  const models = spent.length === 0 ? [] : (allowedModels(key, own.instance) ?? []);
  const isAllSpent = models.length > 0 && models.every((name) => spent.some(({ model }) => model === name));
  return [
    // Its namespace can be charged.
    whyNoNamespaceRow(key.metadata.namespace, own.instance, context.world),
    // The Secret is ours and holds a working value.
    whyNotSecret(view, own.claim, context),
    // The Users and Teams that are charged exist, and the VirtualKey is not blocked: its policy is not blocked either.
    ...blockersOf(key, context),
    // So does the Team of the key policy of its namespace.
    whyNoPolicyTeam(key, own.instance),
    // Its User and its Teams are not blocked.
    ...charged.flatMap(({ object }) =>
      ownBlockersOf(object).map(({ reason }) => ({ reason, message: `${titleOf(object)} is blocked` })),
    ),
    // The lifetime of the VirtualKey is not over.
    whyExpired(key, own.claim, now),
    // The budgets of the VirtualKey, its User and its Teams are not spent.
    whyExceeded(key, 'this VirtualKey has', own, now),
    spent.find(({ model }) => model === undefined),
    whyPerKeyExceeded(key, own, context),
    ...charged.map((scope) => whyExceeded(scope.object, `${titleOf(scope.object)} has`, scope, now)),
    // At least one model has budget of its own left, at least one is allowed by the key policy of the namespace, and at
    // least one is served. `ModelsReady` and `PolicyMet` report single models.
    isAllSpent ? spent.find(({ model }) => model !== undefined) : undefined,
    whyNoModelAllowed(key, own.instance),
    whyUnserved(key, own, context),
  ];
}

/** The causes in the object itself for which its policy is blocked. */
export const ownCausesOf = (scopeObject: ScopeObject): ReadonlyArray<ScopeObjectProblem> =>
  ownBlockersOf(scopeObject).map(({ reason, message }) => ({
    reason,
    message: scopeObject.kind === 'VirtualKey' ? message : `${message}: none of its VirtualKeys works`,
  }));

/** Why VirtualKeys cannot be charged to a User or Team, or why a User's own VirtualKey does not exist. */
const causesOfOwner = (scopeObject: ScopeObject, own: OwnClaim, context: PlanContext): ReadonlyArray<Cause> => [
  scopeObject.kind === 'User' ? whyNoKey(scopeObject, context) : undefined,
  ...ownCausesOf(scopeObject),
  scopeObject.kind === 'User' ? whyNoTeam(scopeObject, context) : undefined,
  whyExceeded(scopeObject, `this ${scopeObject.kind} has`, own, context.now),
  whyUnserved(scopeObject, own, context),
];

function whyNotSecret({ object, secret }: KeyView, claim: Claim, { hash }: PlanContext): Cause {
  const secretName = secretNameOf(object, hash);
  const hashes = hashesOf(claim);
  if (secret.state === 'unread') {
    const message = 'the database does not have the key value yet: one of the next runs reads the Secret';
    return hashes.length === 0 ? { reason: 'Pending', message } : undefined;
  }
  if (secret.state === 'absent')
    return { reason: 'SecretNotFound', message: `Secret "${secretName}" could not be created` };
  if (secret.state === 'deleting') {
    const message = `Secret "${secretName}" is in deletion, and its key value has ended: remove its finalizers, then a Secret with a new value is created`;
    return { reason: 'SecretNotFound', message };
  }
  if (!isOurs(secret, object, hashes)) {
    const isCopy = isLabelled(secret) && secret.hash !== undefined && holdersOf(secret).length === 0;
    return secretConflict(object.metadata.name, object.spec.secretTemplate?.name, secretName, isCopy);
  }
  if (secret.hash !== undefined && hashes.includes(secret.hash)) return undefined;
  return { reason: 'Pending', message: 'the key value does not work yet' };
}

function whyExpired(key: VirtualKey, claim: Claim, now: number): Cause {
  if (!isExpired(key, claim, now)) return undefined;
  const expiry = toTimestamp(expiryOf(key, claim) ?? 0);
  return { reason: 'Expired', message: `spec.duration ended at ${expiry}: lengthen or clear spec.duration` };
}

function whyExceeded(object: ScopeObject, subject: string, own: OwnClaim, now: number): Cause {
  const spend = spendOf(object, own, now);
  if (spend?.isExceeded !== true) return undefined;
  const { maxBudget, budgetDuration } = object.spec;
  const reset = budgetDuration === undefined ? '' : `, or wait until ${toTimestamp(spend.resetsAt)}`;
  const message =
    budgetOf(object)?.limit === '0'
      ? `${subject} a budget of 0 dollars: raise spec.maxBudget`
      : `${subject} spent ${formatMoney(spend.spent)} of ${maxBudget} dollars: raise spec.maxBudget${reset}`;
  return { reason: 'BudgetExceeded', message };
}

/** All violations, if none of the scope object's models is served. */
function whyUnserved(scopeObject: ScopeObject, { instance }: OwnClaim, context: PlanContext): Cause {
  const unserved = unservedModels(scopeObject, context.evaluate(instance));
  return unserved.length === scopeObject.spec.models.length ? unserved : undefined;
}

const unservedModels = ({ spec }: ScopeObject, { served }: InstanceConditions): Violations =>
  modelsServed(spec, spec.connectionRef.instanceRef, served);

const ALIAS_PATH = { VirtualKey: 'spec.keyAlias', User: 'spec.userEmail', Team: 'spec.teamAlias' } as const;

/** Another object has claimed the scope object's alias. */
function whyTaken(scopeObject: ScopeObject, context: PlanContext): ScopeObjectProblem | undefined {
  const access = context.access(scopeObject);
  const { state, claim } = 'instanceConditions' in access ? claimOf(scopeObject, access.instance) : { state: 'free' };
  if (claim === undefined || state === 'ours') return undefined;
  const { kind, spec, metadata } = scopeObject;
  const { namespace, name } = claim.holder;
  const view = kind === 'VirtualKey' ? context.world.keys.get(pathOf(metadata)) : undefined;
  const finding = aliasTaken({
    path: ALIAS_PATH[kind],
    alias: aliasOf(scopeObject).alias,
    holder: { kind, namespace, name },
    instance: spec.connectionRef.instanceRef,
    from: metadata.namespace,
    retained: retainedSecret(claim),
    copy: view && state === 'orphaned' ? unprovenSecret(view, claim)?.name : undefined,
  });
  return toProblem([finding]);
}

/**
 * Teams that a User names and that do not exist: the User's VirtualKeys do not work, because that Team's budget cannot
 * be enforced.
 */
function whyNoTeam({ metadata: { namespace }, spec }: User, { world }: PlanContext): Violations {
  const findings = spec.teamRefs.map(({ name }, index) => {
    const team = toReferred(teamAt(world, pathOf({ namespace, name })));
    const reference = { kind: 'Team', path: `spec.teamRefs[${index}].name`, name, namespace } as const;
    return referenceFound(reference, team, spec.connectionRef.instanceRef);
  });
  return findings.filter((finding) => finding !== undefined);
}

/** The cause that keeps a User's own VirtualKey from being created, or from working. */
function whyNoKey(user: User, context: PlanContext): Cause {
  const { key, isOwned } = ownedKeyOf(user, context);
  if (!user.spec.autoCreateKey || key === undefined) return undefined;
  return isOwned ? whyTaken(key, context) : keyConflict(key.metadata.name);
}

/**
 * `ModelsReady`: the instance serves all models of the VirtualKey, and each has budget of its own left. Unknown while
 * the instance is not evaluated.
 */
export function toModelsCondition(scopeObject: ScopeObject, context: PlanContext): ConditionState {
  const type = 'ModelsReady' as const;
  const access = context.access(scopeObject);
  if (!('instanceConditions' in access))
    return { type, status: 'Unknown', ...(whyNotAccess(scopeObject, context) ?? access.why) };
  const own = context.ownClaim(scopeObject);
  const further = scopeObject.kind === 'VirtualKey' && own ? spentBudgets(scopeObject, own, context.now) : [];
  const spent = further.filter(({ model }) => model !== undefined);
  const [first] = spent;
  const exceeded = first && { reason: first.reason, message: spent.map(({ message }) => message).join('; ') };
  const problem = toProblem(unservedModels(scopeObject, access.instanceConditions)) ?? exceeded;
  if (problem !== undefined) return { type, status: 'False', ...problem };
  const message = `the instance serves all models of the ${scopeObject.kind}`;
  return { type, status: 'True', reason: 'Ready', message };
}

/** `Rotation`: the state of the VirtualKey's value in its rotation. Undefined if the VirtualKey is not rotated. */
export function toRotationCondition(
  key: VirtualKey,
  claim: Claim,
  published: string | undefined,
  time: number,
): ConditionState | undefined {
  const type = 'Rotation' as const;
  const value = claim.values.find(({ hash }) => hash === published);
  const until = overlapEnd(claim, time);
  if (value === undefined || (key.spec.rotation === undefined && until === undefined)) return undefined;
  if (isExpired(key, claim, time)) {
    const message = 'an expired VirtualKey is rotated when spec.duration is lengthened';
    return { type, status: 'False', reason: 'Expired', message };
  }
  const due = dueAt(key, value);
  const sentences = [
    `the current value was created at ${toTimestamp(value.createdAt)}`,
    ...(until === undefined ? [] : [`the previous one works until ${toTimestamp(until)}`]),
    due === undefined ? 'no rotation is planned' : `the next rotation is at ${toTimestamp(due)}`,
  ];
  const reason = until === undefined ? 'Scheduled' : 'Overlap';
  return { type, status: 'True', reason, message: sentences.join('; ') };
}

export const SOFT_BUDGET_REACHED = 'SoftBudgetReached' as const;

/** A spent `softBudget` is reported. The VirtualKey continues working until its window's `maxBudget` is spent. */
export function toSoftBudgetCondition({ spec }: VirtualKey, spend: Spend | undefined): ConditionState | undefined {
  const { softBudget, maxBudget } = spec;
  const limit = softBudget === undefined ? undefined : parseMoney(softBudget);
  if (limit === undefined || spend === undefined) return undefined;
  const window = `in the window that ends at ${toTimestamp(spend.resetsAt)}`;
  if (spend.spent < limit) {
    const message = `the spend is below the softBudget of ${softBudget} dollars ${window}`;
    return { type: SOFT_BUDGET_REACHED, status: 'False', reason: 'BelowSoftBudget', message };
  }
  const message = `the softBudget of ${softBudget} dollars is spent ${window}: the VirtualKey works until it has spent ${maxBudget}`;
  return { type: SOFT_BUDGET_REACHED, status: 'True', reason: SOFT_BUDGET_REACHED, message };
}
