// Whether a key, a user or a team works, and if not, the first cause (DESIGN 3: the order of causes).
import { type Judgement, toTimestamp } from '#core/conditions.ts';
import { type Finding, toProblem, toText } from '#core/finding.ts';
import { formatMoney } from '#core/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { askedFor } from '#core/rotation.ts';
import { aliasTaken } from '#core/rules/alias.ts';
import { keyConflict, secretConflict } from '#core/rules/conflicts.ts';
import { modelsServed } from '#core/rules/models.ts';
import { referenceFound } from '#core/rules/references.ts';
import { ROTATE_ANNOTATION } from '#crds/group.ts';
import type { User } from '#crds/user.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import { budgetOf } from '../key/budget.ts';
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
  present,
} from '../world.ts';
import { type PlanContext, toReferred } from './context.ts';
import { memberBlockedBy, toWaiting } from './deletion.ts';
import { ownedKeyOf } from './owned-key.ts';
import { payersOf } from './policy.ts';
import { spendOf, spentModels } from './spend.ts';

/** Why it does not work: the first cause is the reason; undefined when it works. `view`: of a key. */
export function whyNot(member: Member, context: PlanContext, view?: KeyView): Problem | undefined {
  const cause = whyNotAccess(member, context) ?? firstCause(member, context, view);
  return cause && withFindings(cause, findingsOf(member, context, view));
}

/** What keys, users and teams have in common: instance, namespace, alias. */
function whyNotAccess(member: Member, context: PlanContext): Problem | undefined {
  const name = `GatewayInstance ${pathOf(member.spec.connectionRef.instanceRef)}`;
  if (isDeleted(member)) return { reason: 'Deleting', message: toWaiting(member, memberBlockedBy(member, context)) };
  const access = context.access(member);
  if (access.at === 'missing' || access.at === 'notAllowed') return toProblem([access.why]);
  if (access.at === 'paused') return { reason: 'InstanceNotReady', message: `${name} is paused` };
  const { ready } = access.judged;
  if (!ready.ok)
    return { reason: 'InstanceNotReady', message: `${name} is not ready: ${ready.reason}: ${ready.message}` };
  const taken = toProblem(aliasFindings(member, context));
  const failure = taken ?? context.world.failures.get(idOf(member.kind, member.metadata));
  if (failure !== undefined) return failure;
  const isOpen = context.claim(member, access.instance).state === 'open';
  return isOpen ? { reason: 'Pending', message: 'its alias is not claimed yet' } : undefined;
}

function firstCause(member: Member, context: PlanContext, view: KeyView | undefined): Problem | undefined {
  const { instance } = context.access(member);
  const claim = context.ownClaim(member);
  if (instance === undefined || claim === undefined) return undefined;
  const causes =
    view === undefined ? causesOfOwner(member, claim, instance, context) : causesOfKey(view, claim, instance, context);
  return causes.map((ask) => ask()).find((problem) => problem !== undefined);
}

type Causes = ReadonlyArray<() => Problem | undefined>;

/** In this order; each is asked only when the ones before have nothing to say. */
function causesOfKey(view: KeyView, claim: Claim, instance: InstanceView, context: PlanContext): Causes {
  const key = view.object;
  const { paying, unpaid } = payersOf(key, context);
  const blocked = paying.find(({ object }) => object.spec.blocked)?.object;
  return [
    // The Secret is ours and holds a value that works.
    () => whyNotSecret(view, claim, context),
    // The users and teams that are to pay are there.
    () => toProblem(unpaid),
    // Nobody blocked the key, its user or one of its teams.
    () => (key.spec.blocked ? { reason: 'Blocked', message: 'spec.blocked is true' } : undefined),
    () => blocked && { reason: 'Blocked', message: `${blocked.kind} "${blocked.metadata.name}" is blocked` },
    // Its lifetime is not over.
    () => whyExpired(key, claim, context),
    // Its own budget and those of its user and teams are not used up.
    () => whyExceeded(key, [{ object: key, claim }, ...paying], instance, context),
    // One model at least has something left of its own budget.
    () => whyAllSpent(key, claim, instance, context),
    // One model at least of those it may use is served.
    () => whyUnserved(key, context),
  ];
}

/** Why a user or a team is not what its keys can spend from, or has no key of its own. */
function causesOfOwner(member: Member, claim: Claim, instance: InstanceView, context: PlanContext): Causes {
  const user = member.kind === 'User' ? member : undefined;
  return [
    () => user && toProblem(keyFindings(user, context)),
    () =>
      member.spec.blocked ? { reason: 'Blocked', message: 'spec.blocked is true: none of its keys works' } : undefined,
    () => user && toProblem(teamFindings(user, context)),
    () => whyExceeded(member, [{ object: member, claim }], instance, context),
    () => whyUnserved(member, context),
  ];
}

function whyNotSecret(view: KeyView, claim: Claim, context: PlanContext): Problem | undefined {
  if (view.secret.state === 'unread') {
    const message = 'its value is not known to the database yet: its Secret is read by one of the next runs';
    return claim.values.length === 0 ? { reason: 'Pending', message } : undefined;
  }
  const secret = present(view.secret);
  if (secret === undefined)
    return { reason: 'SecretNotFound', message: `Secret "${view.secretName}" could not be made` };
  const conflict = toProblem(secretFindings(view, context));
  if (conflict !== undefined) return conflict;
  if (secret.hash !== undefined && hashesOf(claim).includes(secret.hash)) return undefined;
  return { reason: 'Pending', message: 'the value in its Secret does not work yet' };
}

function whyExpired(key: VirtualKey, claim: Claim, { now }: PlanContext): Problem | undefined {
  if (!isExpired(key, claim, now)) return undefined;
  const expiry = toTimestamp(expiryOf(key, claim) ?? 0);
  return { reason: 'Expired', message: `it expired at ${expiry}: lengthen or clear spec.duration` };
}

function whyExceeded(
  member: Member,
  payers: ReadonlyArray<{ readonly object: Member; readonly claim: Claim }>,
  instance: InstanceView,
  { now }: PlanContext,
): Problem | undefined {
  for (const { object, claim } of payers) {
    const spend = spendOf(object, claim, instance, now);
    if (spend?.isExceeded !== true) continue;
    const { maxBudget, budgetDuration } = object.spec;
    const whose = object === member ? 'it has' : `${object.kind} "${object.metadata.name}" has`;
    const reset = budgetDuration === undefined ? '' : `, or wait until ${toTimestamp(spend.resetsAt)}`;
    const message =
      budgetOf(object)?.limit === '0'
        ? `${whose} a budget of 0 dollars: raise spec.maxBudget`
        : `${whose} spent ${formatMoney(spend.spent)} of ${maxBudget} dollars: raise spec.maxBudget${reset}`;
    return { reason: 'BudgetExceeded', message };
  }
  return undefined;
}

/** Every model that it may use has a budget of its own that is used up. Some alone are told in `ModelsReady`. */
function whyAllSpent(key: VirtualKey, claim: Claim, instance: InstanceView, { now }: PlanContext): Problem | undefined {
  const spent = spentModels(key, claim, instance, now);
  const { models } = key.spec;
  const isAll = models.length > 0 && models.every((name) => spent.some(({ model }) => model === name));
  return isAll ? spent[0] && { reason: spent[0].reason, message: spent[0].message } : undefined;
}

/** None of its models is served. Some alone are told in `ModelsReady`. */
function whyUnserved(member: Member, context: PlanContext): Problem | undefined {
  const unserved = modelFindings(member, context);
  return unserved.length === member.spec.models.length ? toProblem(unserved) : undefined;
}

/** What breaks a rule about its references, in the order of admission; of its models only when none is served: some alone keep nothing from working. */
function findingsOf(member: Member, context: PlanContext, view: KeyView | undefined): ReadonlyArray<Finding> {
  if (!('judged' in context.access(member))) return [];
  const models = modelFindings(member, context);
  return [
    ...(models.length > 0 && models.length === member.spec.models.length ? models : []),
    ...aliasFindings(member, context),
    ...(member.kind === 'VirtualKey' ? payersOf(member, context).unpaid : []),
    ...(view === undefined ? [] : secretFindings(view, context)),
    ...(member.kind === 'User' ? [...teamFindings(member, context), ...keyFindings(member, context)] : []),
  ];
}

/** The cause, and whatever else is wrong where that is a finding itself: one edit can mend all of them. */
function withFindings(cause: Problem, findings: ReadonlyArray<Finding>): Problem {
  const own = findings.filter(({ rule }) => rule === cause.reason);
  if (own.length === 0) return cause;
  return { reason: cause.reason, message: toText([...own, ...findings.filter((one) => !own.includes(one))]) };
}

/** Models that no entry of the instance serves. */
function modelFindings(member: Member, context: PlanContext): ReadonlyArray<Finding> {
  const access = context.access(member);
  if (!('judged' in access)) return [];
  const { models, connectionRef } = member.spec;
  return modelsServed({ models }, connectionRef.instanceRef, access.judged.served);
}

const ALIAS_PATH = { VirtualKey: 'spec.keyAlias', User: 'spec.userEmail', Team: 'spec.teamAlias' } as const;

/** Somebody else claimed what it wants to be called. */
function aliasFindings(member: Member, context: PlanContext): ReadonlyArray<Finding> {
  const access = context.access(member);
  if (!('judged' in access)) return [];
  const state = context.claim(member, access.instance);
  if (state.state !== 'taken' && state.state !== 'orphaned') return [];
  const { kind, spec, metadata } = member;
  const { name, namespace } = state.state === 'taken' ? state.by : state.claim.holder;
  const taken = { path: ALIAS_PATH[kind], alias: aliasOf(member).alias, holder: { kind, namespace, name } };
  const retained = state.state === 'orphaned' ? state.retained : undefined;
  return [aliasTaken({ ...taken, instance: spec.connectionRef.instanceRef, from: metadata.namespace, retained })];
}

/** Somebody else's Secret stands where its own would be. */
function secretFindings(view: KeyView, context: PlanContext): ReadonlyArray<Finding> {
  const { object: key, secretName } = view;
  const secret = present(view.secret);
  const access = context.access(key);
  if (secret === undefined || !('judged' in access)) return [];
  const state = context.claim(key, access.instance);
  if (isOurs(secret, key, state.state === 'ours' ? hashesOf(state.claim) : [])) return [];
  return [secretConflict(key.metadata.name, key.spec.secretTemplate?.name, secretName)];
}

/** Teams that a user names and that are not there: the user's keys do not work, for nobody keeps that team's budget. */
function teamFindings({ metadata: { namespace }, spec }: User, { world }: PlanContext): ReadonlyArray<Finding> {
  return spec.teamRefs.flatMap(({ name }, index) => {
    const team = toReferred(world.teams.get(pathOf({ namespace, name })));
    const reference = { kind: 'Team', path: `spec.teamRefs[${index}].name`, name, namespace } as const;
    const finding = referenceFound(reference, team, spec.connectionRef.instanceRef);
    return finding === undefined ? [] : [finding];
  });
}

/** What keeps a user's own key from being made, or from working. */
function keyFindings(user: User, context: PlanContext): ReadonlyArray<Finding> {
  const { key, isOwned } = ownedKeyOf(user, context);
  if (!user.spec.autoCreateKey || key === undefined) return [];
  return isOwned ? aliasFindings(key, context) : [keyConflict(key.metadata.name)];
}

/** `ModelsReady`: the instance serves all of its models, and each has something left of its own budget. Unknown while that cannot be told of an instance. */
export function judgeModels(member: Member, context: PlanContext): Judgement {
  const type = 'ModelsReady';
  const access = context.access(member);
  if (!('judged' in access)) {
    const pending = { reason: 'Pending', message: 'its instance was not looked at yet' };
    return { type, status: 'Unknown', ...(whyNotAccess(member, context) ?? pending) };
  }
  const claim = member.kind === 'VirtualKey' ? context.ownClaim(member) : undefined;
  const spent = member.kind === 'VirtualKey' && claim ? spentModels(member, claim, access.instance, context.now) : [];
  const [first] = spent;
  const exceeded = first && { reason: first.reason, message: spent.map(({ message }) => message).join('; ') };
  const problem = toProblem(modelFindings(member, context)) ?? exceeded;
  if (problem !== undefined) return { type, status: 'False', ...problem };
  const message = `the instance serves all models of the ${CLAIM_OF[member.kind]}`;
  return { type, status: 'True', reason: 'Ready', message };
}

/** The condition `Rotation`: where the key's value stands. Undefined for a key that is not rotated. */
export function judgeRotation(
  key: VirtualKey,
  claim: Claim,
  published: string | undefined,
  time: number,
): Judgement | undefined {
  const type = 'Rotation';
  const value = claim.values.find(({ hash }) => hash === published);
  const { annotations } = key.metadata;
  if (annotations?.[ROTATE_ANNOTATION] !== undefined && askedFor(annotations) === undefined) {
    const message = `the annotation ${ROTATE_ANNOTATION} is no text of 1 to 256 visible characters: it asks for nothing`;
    return { type, status: 'False', reason: 'InvalidAnnotation', message };
  }
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
