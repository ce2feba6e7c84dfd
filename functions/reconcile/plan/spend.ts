// What has a member spent in its current window, and is that all it may?
import { toTimestamp } from '#core/conditions.ts';
import { formatMoney, type Nano } from '#core/money.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKeyStatus } from '#crds/virtual-key.ts';
import { type InstanceView, type Member, sumKey } from '../world.ts';
import { budgetOf, windowOf } from './budget.ts';
import { optional } from './write-status.ts';

export interface Spend {
  readonly spent: Nano;
  readonly resetsAt: Millis;
  readonly exceeded: boolean;
}

/** Undefined where the member has no budget. */
export function spendOf(member: Member, claim: Claim, instance: InstanceView, now: Millis): Spend | undefined {
  const budget = budgetOf(member);
  if (budget === undefined) return undefined;
  const window = windowOf(budget, claim.anchor, now);
  const spent = instance.sums.get(sumKey(claim.scopeId, window)) ?? 0n;
  return { spent, resetsAt: window.end, exceeded: spent >= BigInt(budget.limit) };
}

type SpendStatus = Pick<VirtualKeyStatus, 'currentSpend' | 'budgetResetDate'>;

/** What a status says of it: when a budget is whole again that ever is. */
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
