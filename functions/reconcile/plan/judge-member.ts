// Does a key, a user or a team work, and if not, what is the first cause? (DESIGN 3: the order of causes.)

import { toTimestamp } from '#core/conditions.ts';
import { formatMoney } from '#core/money.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import {
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  type KeyView,
  type Member,
  type Problem,
  pathOf,
} from '../world.ts';
import { isDeleted } from './deletion.ts';
import { isOurs, present } from './key-secret.ts';
import type { Outlook } from './outlook.ts';
import { ownedKeyOf } from './owned-key.ts';
import { expiryOf, payersOf } from './policies.ts';
import { spendOf } from './spend.ts';

/** The first cause why the key does not work; undefined when it does. */
export function whyNotKey(view: KeyView, outlook: Outlook): Problem | undefined {
  const key = view.object;
  const first = whyNotMember(key, outlook);
  if (first !== undefined) return first;
  const standing = outlook.standing(key);
  if (standing.at !== 'admitted') return undefined;
  const { instance, judgement } = standing;
  const state = outlook.claim(key, instance);
  if (state.state !== 'ours') return undefined;
  const { claim } = state;
  const payers = payersOf(key, outlook);
  // In this order; each is asked only when the ones before have nothing to say.
  const causes: ReadonlyArray<() => Problem | undefined> = [
    // The Secret is ours and holds a value that works.
    () => whyNotSecret(view, claim),
    // Whoever is to pay is there.
    () => payers.missing,
    // Nobody blocked the key, its user or one of its teams.
    () =>
      whyBlocked(
        key,
        payers.members.map(({ object }) => object),
      ),
    // Its lifetime is not over.
    () => whyExpired(view, claim, outlook.now),
    // Its own budget and those of its user and teams are not used up.
    () => whyExceeded(key, claim, instance, outlook.now, payers.members),
    // One model at least of those it may use is served.
    () => whyUnserved(view, judgement.served)?.all,
  ];
  return causes.map((ask) => ask()).find((problem) => problem !== undefined);
}

/** What keys, users and teams have in common: instance, namespace, alias. */
export function whyNotMember(member: Member, outlook: Outlook): Problem | undefined {
  const { instanceRef } = member.spec.connectionRef;
  const name = `GatewayInstance ${pathOf(instanceRef)}`;
  if (isDeleted(member)) return { reason: 'Deleting', message: 'it is being deleted' };
  const standing = outlook.standing(member);
  if (standing.at === 'missing') {
    // A key never changes its instance; users and teams may.
    const or = member.kind === 'VirtualKey' ? 'delete this key and make another' : 'change spec.connectionRef';
    return { reason: 'InstanceNotFound', message: `${name} is not there: create it, or ${or}` };
  }
  if (standing.at === 'paused') return { reason: 'InstanceNotReady', message: `${name} is paused` };
  if (standing.at === 'refused') {
    const message = `${name} does not admit namespace "${member.metadata.namespace}": its owner can change spec.allowedNamespaces`;
    return { reason: 'NamespaceNotAllowed', message };
  }
  const { ready } = standing.judgement;
  if (!ready.ok)
    return { reason: 'InstanceNotReady', message: `${name} is not ready: ${ready.reason}: ${ready.message}` };
  const failure = outlook.world.failures.get(idOf(member.kind, member.metadata));
  const state = outlook.claim(member, standing.instance);
  if (state.state === 'taken' || state.state === 'orphaned') {
    const holder = state.state === 'taken' ? state.by : state.claim.holder;
    const who =
      holder.namespace === member.metadata.namespace
        ? `"${holder.name}" has it`
        : 'an object of another namespace has it';
    return { reason: 'AliasTaken', message: `the alias is claimed on ${name}: ${who}; choose another` };
  }
  if (failure !== undefined) return { reason: 'ReconcileFailed', message: failure };
  if (state.state === 'open') return { reason: 'Pending', message: 'its alias is not claimed yet' };
  return undefined;
}

export function whyNotScope(member: User | Team, outlook: Outlook): Problem | undefined {
  const first = whyNotMember(member, outlook);
  if (first !== undefined) return first;
  const standing = outlook.standing(member);
  if (standing.at !== 'admitted') return undefined;
  if (member.kind === 'User') {
    const { key, owned } = ownedKeyOf(member, outlook);
    if (member.spec.autoCreateKey && key !== undefined && !owned) {
      const message = `VirtualKey "${key.metadata.name}" is there and does not belong to this User: it is not touched; delete it, or set autoCreateKey to false`;
      return { reason: 'KeyConflict', message };
    }
  }
  if (member.spec.blocked) return { reason: 'Blocked', message: 'spec.blocked is true: none of its keys works' };
  const lost = member.kind === 'User' ? whyNotTeams(member, outlook) : undefined;
  if (lost !== undefined) return lost;
  const state = outlook.claim(member, standing.instance);
  if (state.state !== 'ours') return undefined;
  return whyExceeded(member, state.claim, standing.instance, outlook.now, []);
}

/** A team that a user names and that is not there: the user's keys do not work, for nobody keeps that team's budget. */
function whyNotTeams({ metadata: { namespace }, spec }: User, { world }: Outlook): Problem | undefined {
  const lost = spec.teamRefs.find(({ name }) => {
    const team = world.teams.get(pathOf({ namespace, name }));
    return team === undefined || isDeleted(team) || instancePathOf(team) !== pathOf(spec.connectionRef.instanceRef);
  });
  if (lost === undefined) return undefined;
  const message = `Team "${lost.name}" is not there on the same instance: create it, or change spec.teamRefs`;
  return { reason: 'TeamNotFound', message };
}

function whyNotSecret(view: KeyView, claim: Claim): Problem | undefined {
  if (view.secret.state === 'unread') return undefined;
  const secret = present(view.secret);
  if (secret === undefined)
    return { reason: 'SecretNotFound', message: `Secret "${view.secretName}" could not be made` };
  const live = hashesOf(claim);
  if (!isOurs(secret, view.object, live)) {
    const message = `Secret "${secret.name}" is there and was not made for this key: it is not touched; delete it, or name another in spec.secretTemplate.name`;
    return { reason: 'SecretConflict', message };
  }
  if (secret.hash !== undefined && live.includes(secret.hash)) return undefined;
  return { reason: 'Pending', message: 'the value in its Secret does not work yet' };
}

function whyBlocked(key: KeyView['object'], payers: ReadonlyArray<User | Team>): Problem | undefined {
  if (key.spec.blocked) return { reason: 'Blocked', message: 'spec.blocked is true' };
  const blocked = payers.find(({ spec }) => spec.blocked);
  return blocked === undefined
    ? undefined
    : { reason: 'Blocked', message: `${blocked.kind} "${blocked.metadata.name}" is blocked` };
}

function whyExpired({ object }: KeyView, claim: Claim, now: Millis): Problem | undefined {
  const expiry = expiryOf(object, claim);
  if (expiry === undefined || now < expiry) return undefined;
  return { reason: 'Expired', message: `it expired at ${toTimestamp(expiry)}: lengthen or clear spec.duration` };
}

function whyExceeded(
  member: Member,
  claim: Claim,
  instance: InstanceView,
  now: Millis,
  payers: ReadonlyArray<{ readonly object: User | Team; readonly claim: Claim }>,
): Problem | undefined {
  for (const { object, claim: paying } of [{ object: member, claim }, ...payers]) {
    const spend = spendOf(object, paying, instance, now);
    if (spend?.exceeded !== true) continue;
    const whose = object === member ? 'it has' : `${object.kind} "${object.metadata.name}" has`;
    const reset = object.spec.budgetDuration === undefined ? '' : `, or wait until ${toTimestamp(spend.resetsAt)}`;
    const message = `${whose} spent ${formatMoney(spend.spent)} of ${object.spec.maxBudget} dollars: raise spec.maxBudget${reset}`;
    return { reason: 'BudgetExceeded', message };
  }
  return undefined;
}

/** `some`: models of the key that no entry of the instance serves. `all`: when it has none but these. */
export function whyUnserved(
  { object: { spec } }: KeyView,
  served: ReadonlySet<string>,
): { readonly some: Problem; readonly all: Problem | undefined } | undefined {
  const missing = spec.models.filter((model) => !served.has(model));
  if (missing.length === 0) return undefined;
  const message = `the instance serves no ${missing.map((model) => JSON.stringify(model)).join(', ')}: names match exactly; correct spec.models, or add the entry`;
  const problem = { reason: 'ModelNotServed', message };
  return { some: problem, all: missing.length === spec.models.length ? problem : undefined };
}
