// Events about the spend of budgets: thresholds that were passed, and the soft budget. Each is reported once in a
// window.
import { type ConditionState, toTimestamp } from '#core/conditions/conditions.ts';
import { formatMoney, parseMoney } from '#core/money/money.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { type Action, event } from '../action.ts';
import type { Spend, WindowSpend } from '../key/budget.ts';
import type { OwnObject } from '../world.ts';
import { SOFT_BUDGET_REACHED } from './conditions-scope-object.ts';

/**
 * The thresholds, in per cent of a budget, that are reported once in a window. The end of a budget is reported by
 * `Ready`.
 */
const THRESHOLDS = [95, 80, 50];

/** One budget of a scope object: its spend now, and the spend in the last status. */
interface BudgetChange {
  /** Whose budget it is. Default: that of the object itself. */
  readonly subject?: string;
  /** Distinguishes the budgets of one object in names of events; ends with a slash. */
  readonly id?: string;
  readonly spend: Spend | undefined;
  readonly reset: string | undefined;
  readonly maxBudget: string | undefined;
  readonly before:
    | { readonly currentSpend?: string | undefined; readonly budgetResetDate?: string | undefined }
    | undefined;
  /** The length of a further window. */
  readonly window?: string;
}

/** The event for a threshold that was just passed: the last status shows a smaller spend. */
export function planThresholdEvent(
  object: OwnObject,
  { subject = `this ${object.kind}`, id, spend, reset, maxBudget, before, window }: BudgetChange,
): Action[] {
  if (spend === undefined || maxBudget === undefined || spend.isExceeded) return [];
  const limit = parseMoney(maxBudget) ?? 0n;
  const reportedSpend = before?.budgetResetDate === reset ? (parseMoney(before?.currentSpend ?? '0') ?? 0n) : 0n;
  const share = THRESHOLDS.find((one) => spend.spent * 100n >= limit * BigInt(one));
  if (share === undefined || reportedSpend * 100n >= limit * BigInt(share)) return [];
  const until = reset === undefined ? '' : ` in the window that ends at ${reset}`;
  const budget = window === undefined ? 'its budget' : `its budget per ${window}`;
  const message = `${subject} has spent ${formatMoney(spend.spent)} of ${maxBudget} dollars${until}: ${share} per cent of ${budget}, or more`;
  const severity = share === THRESHOLDS.at(-1) ? ({ type: 'Normal' } as const) : {};
  const of = id ?? (window === undefined ? '' : `${window}/`);
  return [
    event(object, {
      ...severity,
      reason: 'BudgetUsed',
      message,
      once: `BudgetUsed/${of}${share}/${maxBudget}/${reset}`,
    }),
  ];
}

export function planWindowEvent(key: VirtualKey, spend: WindowSpend): Action[] {
  const { budgetDuration: window, maxBudget, resetsAt } = spend;
  const before = key.status?.budgets?.find(({ budgetDuration }) => budgetDuration === window);
  return planThresholdEvent(key, { spend, reset: toTimestamp(resetsAt), maxBudget, before, window });
}

/** Once in a window, and once more after an edit of `softBudget`. */
export function planSoftBudgetEvent(key: VirtualKey, evaluated: ConditionState | undefined): Action[] {
  if (evaluated?.status !== 'True') return [];
  const before = key.status?.conditions?.find(({ type }) => type === SOFT_BUDGET_REACHED);
  if (before?.status === 'True' && before.message === evaluated.message) return [];
  const { message } = evaluated;
  return [event(key, { reason: SOFT_BUDGET_REACHED, message, once: `${SOFT_BUDGET_REACHED}/${message}` })];
}
