// What has a member spent in its current window, and is that all it may?
import type { Nano } from '#core/money.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { type InstanceView, type Member, sumKey } from '../world.ts';
import { budgetOf, windowOf } from './budget.ts';

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
