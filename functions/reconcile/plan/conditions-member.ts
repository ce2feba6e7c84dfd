// Whether a key, a user or a team works, and if not, the first cause (DESIGN 3: the order of causes).
import { type ConditionState, toTimestamp } from '#core/conditions.ts';
import { type Finding, toProblem } from '#core/finding.ts';
import { formatMoney, parseMoney } from '#core/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { aliasTaken } from '#core/rules/alias.ts';
import { keyConflict, secretConflict } from '#core/rules/conflicts.ts';
import { modelsServed } from '#core/rules/models.ts';
import { referenceFound } from '#core/rules/references.ts';
import type { User } from '#crds/user.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { budgetOf, type Spend, spendOf, spentModels } from '../key/budget.ts';
import { dueAt, expiryOf, isExpired, worksUntil } from '../key/rotation.ts';
import { isOurs } from '../key/secret-shape.ts';
import {
  aliasOf,
  CLAIM_OF,
  hashesOf,
  type InstanceView,
  idOf,
  isDeleted,
  type KeyView,
  type Member,
  type Problem,
  pathOf,
} from '../world.ts';
import { type PlanContext, toReferred } from './context.ts';
import { memberBlockedBy, toWaiting } from './deletion.ts';
import { ownedKeyOf } from './owned-key.ts';

/** Why it does not work: the first cause, and where that is a violation of a rule, all violations; undefined when it works. `view`: of a key. */
export function whyNot(member: Member, context: PlanContext, view?: KeyView): Problem | undefined {
  const why = whyNotAccess(member, context);
  const { instance } = context.access(member);
  const claim = context.ownClaim(member);
  if (why !== undefined || instance === undefined || claim === undefined) return why;
  const causes =
    view === undefined ? causesOfOwner(member, claim, instance, context) : causesOfKey(view, claim, instance, context);
  const found = [...causes].filter((cause) => cause !== undefined && !(isFindings(cause) && cause.length === 0));
  const [first] = found;
  return isFindings(first) ? toProblem(found.filter(isFindings).flat()) : first;
}

type Cause = Problem | ReadonlyArray<Finding> | undefined;

const isFindings = (cause: Cause): cause is ReadonlyArray<Finding> => Array.isArray(cause);

/** What keys, users and teams have in common: instance, namespace, alias. */
function whyNotAccess(member: Member, context: PlanContext): Problem | undefined {
  const name = `GatewayInstance ${pathOf(member.spec.connectionRef.instanceRef)}`;
  if (isDeleted(member)) return { reason: 'Deleting', message: toWaiting(member, memberBlockedBy(member, context)) };
  const access = context.access(member);
  if (access.at === 'missing' || access.at === 'notAllowed') return toProblem([access.why]);
  if (access.at === 'paused') return { reason: 'InstanceNotReady', message: `${name} is paused` };
  const { ready } = access.evaluated;
  if (!ready.ok)
    return { reason: 'InstanceNotReady', message: `${name} is not ready: ${ready.reason}: ${ready.message}` };
  const failure = whyTaken(member, context) ?? context.world.failures.get(idOf(member.kind, member.metadata));
  if (failure !== undefined) return failure;
  const isOpen = context.claim(member, access.instance).state === 'open';
  return isOpen ? { reason: 'Pending', message: 'its alias is not claimed yet' } : undefined;
}

/** In this order. */
function* causesOfKey(view: KeyView, claim: Claim, instance: InstanceView, context: PlanContext): Iterable<Cause> {
  const key = view.object;
  const { now } = context;
  const { paying, unpaid } = context.payers(key);
  // The Secret is ours and holds a value that works.
  yield whyNotSecret(view, claim);
  // The users and teams that are to pay are there.
  yield unpaid;
  // Nobody blocked the key, its user or one of its teams.
  if (key.spec.blocked) yield { reason: 'Blocked', message: 'spec.blocked is true' };
  for (const { object } of paying)
    if (object.spec.blocked)
      yield { reason: 'Blocked', message: `${object.kind} "${object.metadata.name}" is blocked` };
  // Its lifetime is not over.
  if (isExpired(key, claim, now)) {
    const expiry = toTimestamp(expiryOf(key, claim) ?? 0);
    yield { reason: 'Expired', message: `it expired at ${expiry}: lengthen or clear spec.duration` };
  }
  // Its own budget and those of its user and teams are not used up.
  yield whyExceeded(key, 'it has', claim, instance, now);
  for (const { object, claim: theirs } of paying)
    yield whyExceeded(object, `${object.kind} "${object.metadata.name}" has`, theirs, instance, now);
  // One model at least has something left of its own budget, and one at least is served. Some alone are told in `ModelsReady`.
  const spent = spentModels(key, claim, instance, now);
  const { models } = key.spec;
  if (models.length > 0 && models.every((name) => spent.some(({ model }) => model === name)))
    yield spent[0] && { reason: spent[0].reason, message: spent[0].message };
  yield whyUnserved(key, context);
}

/** Why a user or a team is not what its keys can spend from, or has no key of its own. */
function* causesOfOwner(member: Member, claim: Claim, instance: InstanceView, context: PlanContext): Iterable<Cause> {
  if (member.kind === 'User') yield whyNoKey(member, context);
  if (member.spec.blocked) yield { reason: 'Blocked', message: 'spec.blocked is true: none of its keys works' };
  if (member.kind === 'User') yield whyNoTeam(member, context);
  yield whyExceeded(member, 'it has', claim, instance, context.now);
  yield whyUnserved(member, context);
}

function whyNotSecret(view: KeyView, claim: Claim): Cause {
  const { object, secret, secretName } = view;
  const hashes = hashesOf(claim);
  if (secret.state === 'unread') {
    const message = 'its value is not known to the database yet: its Secret is read by one of the next runs';
    return hashes.length === 0 ? { reason: 'Pending', message } : undefined;
  }
  if (secret.state === 'absent')
    return { reason: 'SecretNotFound', message: `Secret "${secretName}" could not be made` };
  if (!isOurs(secret, object, hashes))
    return [secretConflict(object.metadata.name, object.spec.secretTemplate?.name, secretName)];
  if (secret.hash !== undefined && hashes.includes(secret.hash)) return undefined;
  return { reason: 'Pending', message: 'the value in its Secret does not work yet' };
}

function whyExceeded(object: Member, whose: string, claim: Claim, instance: InstanceView, now: number) {
  const spend = spendOf(object, claim, instance, now);
  if (spend?.isExceeded !== true) return undefined;
  const { maxBudget, budgetDuration } = object.spec;
  const reset = budgetDuration === undefined ? '' : `, or wait until ${toTimestamp(spend.resetsAt)}`;
  const message =
    budgetOf(object)?.limit === '0'
      ? `${whose} a budget of 0 dollars: raise spec.maxBudget`
      : `${whose} spent ${formatMoney(spend.spent)} of ${maxBudget} dollars: raise spec.maxBudget${reset}`;
  return { reason: 'BudgetExceeded', message };
}

/** None of its models is served. */
function whyUnserved(member: Member, context: PlanContext): ReadonlyArray<Finding> {
  const unserved = unservedModels(member, context);
  return unserved.length === member.spec.models.length ? unserved : [];
}

function unservedModels(member: Member, context: PlanContext): ReadonlyArray<Finding> {
  const access = context.access(member);
  const { models, connectionRef } = member.spec;
  return 'evaluated' in access ? modelsServed({ models }, connectionRef.instanceRef, access.evaluated.served) : [];
}

const ALIAS_PATH = { VirtualKey: 'spec.keyAlias', User: 'spec.userEmail', Team: 'spec.teamAlias' } as const;

/** Somebody else claimed what it wants to be called. */
function whyTaken(member: Member, context: PlanContext): Problem | undefined {
  const access = context.access(member);
  const state = 'evaluated' in access ? context.claim(member, access.instance) : undefined;
  if (state?.state !== 'taken' && state?.state !== 'orphaned') return undefined;
  const { kind, spec, metadata } = member;
  const { name, namespace } = state.state === 'taken' ? state.by : state.claim.holder;
  const taken = { path: ALIAS_PATH[kind], alias: aliasOf(member).alias, holder: { kind, namespace, name } };
  const retained = state.state === 'orphaned' ? state.retained : undefined;
  const instance = spec.connectionRef.instanceRef;
  return toProblem([aliasTaken({ ...taken, instance, from: metadata.namespace, retained })]);
}

/** Teams that a user names and that are not there: the user's keys do not work, for nobody keeps that team's budget. */
function whyNoTeam({ metadata: { namespace }, spec }: User, { world }: PlanContext): ReadonlyArray<Finding> {
  const findings = spec.teamRefs.map(({ name }, index) => {
    const team = toReferred(world.teams.get(pathOf({ namespace, name })));
    const reference = { kind: 'Team', path: `spec.teamRefs[${index}].name`, name, namespace } as const;
    return referenceFound(reference, team, spec.connectionRef.instanceRef);
  });
  return findings.filter((finding) => finding !== undefined);
}

/** What keeps a user's own key from being made, or from working. */
function whyNoKey(user: User, context: PlanContext): Cause {
  const { key, isOwned } = ownedKeyOf(user, context);
  if (!user.spec.autoCreateKey || key === undefined) return undefined;
  return isOwned ? whyTaken(key, context) : [keyConflict(key.metadata.name)];
}

/** `ModelsReady`: the instance serves all of its models, and each has something left of its own budget. Unknown while that cannot be told of an instance. */
export function toModelsCondition(member: Member, context: PlanContext): ConditionState {
  const type = 'ModelsReady';
  const access = context.access(member);
  if (!('evaluated' in access)) {
    const pending = { reason: 'Pending', message: 'its instance was not looked at yet' };
    return { type, status: 'Unknown', ...(whyNotAccess(member, context) ?? pending) };
  }
  const claim = member.kind === 'VirtualKey' ? context.ownClaim(member) : undefined;
  const spent = member.kind === 'VirtualKey' && claim ? spentModels(member, claim, access.instance, context.now) : [];
  const [first] = spent;
  const exceeded = first && { reason: first.reason, message: spent.map(({ message }) => message).join('; ') };
  const problem = toProblem(unservedModels(member, context)) ?? exceeded;
  if (problem !== undefined) return { type, status: 'False', ...problem };
  const message = `the instance serves all models of the ${CLAIM_OF[member.kind]}`;
  return { type, status: 'True', reason: 'Ready', message };
}

/** `Rotation`: where the key's value stands. Undefined for a key that is not rotated. */
export function toRotationCondition(
  key: VirtualKey,
  claim: Claim,
  published: string | undefined,
  time: number,
): ConditionState | undefined {
  const type = 'Rotation';
  const value = claim.values.find(({ hash }) => hash === published);
  const until = worksUntil(claim, time);
  if (value === undefined || (key.spec.rotation === undefined && until === undefined)) return undefined;
  if (isExpired(key, claim, time)) {
    const message = 'an expired key keeps its value; it is rotated when spec.duration is lengthened';
    return { type, status: 'False', reason: 'Expired', message };
  }
  const due = dueAt(key, value);
  const sentences = [
    `the key is from ${toTimestamp(value.createdAt)}`,
    ...(until === undefined ? [] : [`the one before works until ${toTimestamp(until)}`]),
    due === undefined ? 'no other is planned' : `the next comes at ${toTimestamp(due)}`,
  ];
  const reason = until === undefined ? 'Scheduled' : 'Overlap';
  return { type, status: 'True', reason, message: sentences.join('; ') };
}

export const SOFT = 'SoftBudgetReached';

/** A `softBudget` is reported, and the key goes on working until its window's `maxBudget` is spent. */
export function toSoftBudgetCondition({ spec }: VirtualKey, spend: Spend | undefined): ConditionState | undefined {
  const { softBudget, maxBudget } = spec;
  const limit = softBudget === undefined ? undefined : parseMoney(softBudget);
  if (limit === undefined || spend === undefined) return undefined;
  const window = `in the window that ends at ${toTimestamp(spend.resetsAt)}`;
  if (spend.spent < limit) {
    const message = `it has spent less than its softBudget of ${softBudget} dollars ${window}`;
    return { type: SOFT, status: 'False', reason: 'BelowSoftBudget', message };
  }
  const message = `it has spent its softBudget of ${softBudget} dollars ${window}: it goes on working until it has spent ${maxBudget}`;
  return { type: SOFT, status: 'True', reason: SOFT, message };
}
