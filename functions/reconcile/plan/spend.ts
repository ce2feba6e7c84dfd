// What a member has spent in its current window, and whether that is all it may.
import { type Judgement, toTimestamp } from '#core/conditions.ts';
import { formatMoney, type Nano, parseMoney } from '#core/money.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKey, VirtualKeyStatus } from '#crds/virtual-key.ts';
import { type Action, event } from '../action.ts';
import { budgetedScopes, budgetOf, windowOf } from '../key/budget.ts';
import { type InstanceView, type Member, type Problem, sumKey } from '../world.ts';
import { optional } from './json.ts';

export interface Spend {
  readonly spent: Nano;
  readonly resetsAt: Millis;
  readonly isExceeded: boolean;
}

/** By the policy in force: an edit that could not be written yet counts nothing. Undefined where the member has no budget. */
export function spendOf(member: Member, claim: Claim, { sums }: InstanceView, now: Millis): Spend | undefined {
  const budget = budgetOf(member);
  if (budget === undefined) return undefined;
  const window = windowOf(claim.policy?.budget ?? budget, claim.anchor, now);
  const spent = sums.get(sumKey(claim.scopeId, window)) ?? 0n;
  return { spent, resetsAt: window.end, isExceeded: spent >= BigInt(budget.limit) };
}

type SpendStatus = Pick<VirtualKeyStatus, 'currentSpend' | 'budgetResetDate'>;

/** What a status says of it: when a budget resets that ever does. */
export function toSpendStatus({ spec }: Member, spend: Spend | undefined): SpendStatus {
  if (spend === undefined) return {};
  const resets = spec.budgetDuration === undefined ? undefined : toTimestamp(spend.resetsAt);
  return { currentSpend: formatMoney(spend.spent), ...optional('budgetResetDate', resets) };
}

/** While nothing can be known of it, what was said stays. */
export const spendStatusOf = ({ status }: Member): SpendStatus => ({
  ...optional('currentSpend', status?.currentSpend),
  ...optional('budgetResetDate', status?.budgetResetDate),
});

/** Models that the key may use and whose own budget is used up, in one sentence each (`modelMaxBudget`). */
export function spentModels(
  key: VirtualKey,
  claim: Claim,
  { sums }: InstanceView,
  now: Millis,
): ReadonlyArray<Problem & { readonly model: string }> {
  const { models, modelMaxBudget = {} } = key.spec;
  return budgetedScopes(claim).flatMap(({ kind, scopeId, name: model, budget }) => {
    const asked = modelMaxBudget[model];
    if (kind !== 'model' || asked === undefined || (models.length > 0 && !models.includes(model))) return [];
    const window = windowOf(budget, claim.anchor, now);
    const spent = sums.get(sumKey(scopeId, window)) ?? 0n;
    const limit = parseMoney(asked.maxBudget) ?? 0n;
    if (spent < limit) return [];
    const on = `on ${JSON.stringify(model)}: raise spec.modelMaxBudget[${JSON.stringify(model)}].maxBudget`;
    const message =
      limit === 0n
        ? `it has a budget of 0 dollars ${on}`
        : `it has spent ${formatMoney(spent)} of ${formatMoney(limit)} dollars ${on}, or wait until ${toTimestamp(window.end)}`;
    return [{ model, reason: 'BudgetExceeded', message }];
  });
}

const SOFT = 'SoftBudgetReached';

/** The condition of a key that has a `softBudget`: it is reported, and the key goes on working until its window's `maxBudget` is spent. */
export function judgeSoftBudget({ spec }: VirtualKey, spend: Spend | undefined): Judgement | undefined {
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

/** Once in a window; after an edit of `softBudget` once more. */
export function planSoftBudgetEvent(key: VirtualKey, judged: Judgement | undefined): Action[] {
  if (judged?.status !== 'True') return [];
  const before = key.status?.conditions?.find(({ type }) => type === SOFT);
  if (before?.status === 'True' && before.message === judged.message) return [];
  const { message } = judged;
  return [event(key, { type: 'Warning', reason: SOFT, message, once: `${SOFT}/${message}` })];
}
