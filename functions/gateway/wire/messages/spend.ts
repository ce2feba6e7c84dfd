// Spend for Claude Code: headers of replies, and its usage report (Claude Code 2.1, CLAUDE_CODE_USE_GATEWAY=1).
import { parseDuration } from '#core/money/duration.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { RemainingBudget } from '#core/ports/policy.ts';

const PREFIX = 'anthropic-ratelimit-unified';
const DAY: Millis = 86_400_000;
/** Shares of a budget at which Claude Code shows a notice, in ten thousandths: the highest first. */
const THRESHOLDS = [9500, 7500];

/** The headers of a budget. `isSpent`: the reply refuses a request that the budget does not cover. */
export function spendHeaders(budget: RemainingBudget, isSpent: boolean): Readonly<Record<string, string>> {
  const used = usedShareOf(budget);
  const passed = THRESHOLDS.find((threshold) => used >= threshold);
  const reset = String(Math.ceil(budget.resetAt / 1000));
  const headers: Record<string, string> = {
    [`${PREFIX}-reset`]: reset,
    [`${PREFIX}-overage-reset`]: reset,
    // Below one while requests pass.
    [`${PREFIX}-overage-utilization`]: isSpent ? '1' : String(Math.min(used, 9999) / 10_000),
  };
  if (passed !== undefined) headers[`${PREFIX}-overage-surpassed-threshold`] = String(passed / 10_000);
  if (isSpent) {
    headers[`${PREFIX}-status`] = 'rejected';
    headers[`${PREFIX}-overage-period`] = periodOf(budget);
    headers[`${PREFIX}-overage-disabled-reason`] = 'org_spend_cap_reached';
    if (budget.scope.kind === 'team') headers[`${PREFIX}-overage-scope`] = 'group_pool';
  } else {
    const status = passed === undefined ? 'allowed' : 'allowed_warning';
    headers[`${PREFIX}-status`] = status;
    headers[`${PREFIX}-overage-status`] = status;
    headers[`${PREFIX}-representative-claim`] = 'overage';
  }
  return headers;
}

/**
 * The answer to `GET api/oauth/usage`, in cents and whole percents. `budget`: undefined if the key may spend without a
 * budget.
 */
export function toUsageReport(budget: RemainingBudget | undefined): object {
  const shared = { is_enabled: true, currency: 'USD' };
  if (budget === undefined) {
    return { extra_usage: { ...shared, monthly_limit: null, used_credits: 0, utilization: null }, limits: [] };
  }
  const used = usedShareOf(budget);
  const percent = Math.floor(used / 100);
  const severity = ['critical', 'warning'][THRESHOLDS.findIndex((threshold) => used >= threshold)] ?? 'normal';
  const resets_at = new Date(budget.resetAt).toISOString();
  const limit = { kind: 'spend', group: periodOf(budget), percent, resets_at, severity, is_active: true };
  const cents = { monthly_limit: centsOf(budget.limit), used_credits: centsOf(budget.spent) };
  return { extra_usage: { ...shared, ...cents, utilization: percent }, limits: [limit] };
}

/** The used share of the budget, in ten thousandths. */
function usedShareOf({ limit, spent, remaining }: RemainingBudget): number {
  return remaining === 0n ? 10_000 : Number((spent * 10_000n) / limit);
}

/** Claude Code knows three lengths of a window. */
function periodOf({ scope }: RemainingBudget): 'daily' | 'weekly' | 'monthly' {
  const length = parseDuration(scope.budget?.duration ?? '') ?? 0;
  if (length <= DAY) return 'daily';
  return length <= 7 * DAY ? 'weekly' : 'monthly';
}

function centsOf(amount: Nano): number {
  return Number(amount / 10_000_000n);
}
