// Does a key, a user or a team work, and if not, what is the first cause? (DESIGN 3: the order of causes.)
import { toTimestamp } from '#core/conditions.ts';
import { toProblem } from '#core/finding.ts';
import { formatMoney } from '#core/money.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { Problem } from '../problem.ts';
import { hashesOf, type InstanceView, idOf, type KeyView, type Member, pathOf } from '../world.ts';
import { budgetOf } from './budget.ts';
import { isDeleted, memberHeldUpBy, toWaiting } from './deletion.ts';
import { present } from './key-secret.ts';
import {
  aliasMistakes,
  keyMistakes,
  mistakesOf,
  modelMistakes,
  secretMistakes,
  teamMistakes,
  withMistakes,
} from './mistakes.ts';
import { spentModels } from './model-budgets.ts';
import type { Outlook } from './outlook.ts';
import { expiryOf, payersOf } from './policies.ts';
import { spendOf } from './spend.ts';

/** Why the key does not work: the first cause is the reason; undefined when it does work. */
export function whyNotKey(view: KeyView, outlook: Outlook): Problem | undefined {
  const cause = whyNotMember(view.object, outlook) ?? firstCause(view, outlook);
  return cause && withMistakes(cause, mistakesOf(view.object, outlook, view));
}

function firstCause(view: KeyView, outlook: Outlook): Problem | undefined {
  const key = view.object;
  const standing = outlook.standing(key);
  if (standing.at !== 'admitted') return undefined;
  const { instance } = standing;
  const state = outlook.claim(key, instance);
  if (state.state !== 'ours') return undefined;
  const { claim } = state;
  const payers = payersOf(key, outlook);
  // In this order; each is asked only when the ones before have nothing to say.
  const causes: ReadonlyArray<() => Problem | undefined> = [
    // The Secret is ours and holds a value that works.
    () => whyNotSecret(view, claim, outlook),
    // Whoever is to pay is there.
    () => toProblem(payers.missing),
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
    // One model at least has something left of its own budget.
    () => whyAllSpent(key, claim, instance, outlook),
    // One model at least of those it may use is served.
    () => whyUnserved(key, outlook),
  ];
  return causes.map((ask) => ask()).find((problem) => problem !== undefined);
}

/** What keys, users and teams have in common: instance, namespace, alias. */
export function whyNotMember(member: Member, outlook: Outlook): Problem | undefined {
  const name = `GatewayInstance ${pathOf(member.spec.connectionRef.instanceRef)}`;
  if (isDeleted(member)) return { reason: 'Deleting', message: toWaiting(member, memberHeldUpBy(member, outlook)) };
  const standing = outlook.standing(member);
  if (standing.at === 'missing' || standing.at === 'refused') return toProblem([standing.why]);
  if (standing.at === 'paused') return { reason: 'InstanceNotReady', message: `${name} is paused` };
  const { ready } = standing.judgement;
  if (!ready.ok)
    return { reason: 'InstanceNotReady', message: `${name} is not ready: ${ready.reason}: ${ready.message}` };
  const taken = aliasMistakes(member, outlook);
  if (taken.length > 0) return toProblem(taken);
  const failure = outlook.world.failures.get(idOf(member.kind, member.metadata));
  if (failure !== undefined) return { reason: 'ReconcileFailed', message: failure };
  const isOpen = outlook.claim(member, standing.instance).state === 'open';
  return isOpen ? { reason: 'Pending', message: 'its alias is not claimed yet' } : undefined;
}

/** Why a user or a team is not what its keys can spend from, or has no key of its own. */
export function whyNotScope(member: User | Team, outlook: Outlook): Problem | undefined {
  const cause = whyNotMember(member, outlook) ?? firstCauseOfScope(member, outlook);
  return cause && withMistakes(cause, mistakesOf(member, outlook));
}

function firstCauseOfScope(member: User | Team, outlook: Outlook): Problem | undefined {
  const standing = outlook.standing(member);
  if (standing.at !== 'admitted') return undefined;
  const state = outlook.claim(member, standing.instance);
  const isUser = member.kind === 'User';
  return (
    (isUser ? toProblem(keyMistakes(member, outlook)) : undefined) ??
    (member.spec.blocked
      ? { reason: 'Blocked', message: 'spec.blocked is true: none of its keys works' }
      : undefined) ??
    (isUser ? toProblem(teamMistakes(member, outlook)) : undefined) ??
    (state.state === 'ours' ? whyExceeded(member, state.claim, standing.instance, outlook.now, []) : undefined) ??
    whyUnserved(member, outlook)
  );
}

function whyNotSecret(view: KeyView, claim: Claim, outlook: Outlook): Problem | undefined {
  if (view.secret.state === 'unread') {
    const message = 'its value is not known to the database yet: its Secret is read by one of the next runs';
    return claim.values.length === 0 ? { reason: 'Pending', message } : undefined;
  }
  const secret = present(view.secret);
  if (secret === undefined)
    return { reason: 'SecretNotFound', message: `Secret "${view.secretName}" could not be made` };
  const conflict = toProblem(secretMistakes(view, outlook));
  if (conflict !== undefined) return conflict;
  if (secret.hash !== undefined && hashesOf(claim).includes(secret.hash)) return undefined;
  if (view.refusedHash !== undefined && view.refusedHash === secret.hash) {
    const message = `Secret "${secret.name}" holds a value that another key has: delete it, or put in another value`;
    return { reason: 'SecretConflict', message };
  }
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
    // A budget of nothing is as small in its next window.
    if (budgetOf(object)?.limit === '0')
      return { reason: 'BudgetExceeded', message: `${whose} a budget of 0 dollars: raise spec.maxBudget` };
    const reset = object.spec.budgetDuration === undefined ? '' : `, or wait until ${toTimestamp(spend.resetsAt)}`;
    const message = `${whose} spent ${formatMoney(spend.spent)} of ${object.spec.maxBudget} dollars: raise spec.maxBudget${reset}`;
    return { reason: 'BudgetExceeded', message };
  }
  return undefined;
}

/** Every model that it may use has a budget of its own that is used up. Some alone are told in `ModelsReady`. */
function whyAllSpent(
  key: KeyView['object'],
  claim: Claim,
  instance: InstanceView,
  outlook: Outlook,
): Problem | undefined {
  const spent = spentModels(key, claim, instance, outlook);
  const isAll =
    key.spec.models.length > 0 && key.spec.models.every((name) => spent.some(({ model }) => model === name));
  return isAll ? spent[0]?.problem : undefined;
}

/** None of its models is served. Some alone are told in `ModelsReady`. */
function whyUnserved(member: Member, outlook: Outlook): Problem | undefined {
  const unserved = modelMistakes(member, outlook);
  return unserved.length === member.spec.models.length ? toProblem(unserved) : undefined;
}
