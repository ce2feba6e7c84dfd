// Which budget does a spec give its scope, and which window of it holds this instant?
import { parseMoney } from '#core/money.ts';
import type { Millis, Window } from '#core/ports/money.ts';
import type { Budget } from '#core/ports/policy.ts';
import { windowAt } from '#core/window.ts';
import type { Member } from '../world.ts';

/** A budget without `budgetDuration` is never whole again: its one window is the longest that there is. */
const NEVER_RESETS = '36525d';

export function budgetOf(member: Member): Budget | undefined {
  const { maxBudget, budgetDuration } = member.spec;
  const limit = maxBudget === undefined ? undefined : parseMoney(maxBudget);
  if (limit === undefined) return undefined;
  return {
    limit: limit.toString(),
    duration: budgetDuration ?? NEVER_RESETS,
    alignment: member.kind === 'VirtualKey' ? member.spec.budgetWindow : 'Rolling',
  };
}

/**
 * An anchor that this run has just made, or that a faster clock made, may lie a moment ahead: the first window has begun
 * all the same.
 */
export function windowOf(budget: Budget, anchor: Millis, now: Millis): Window {
  return windowAt({ duration: budget.duration, alignment: budget.alignment, anchor }, Math.max(now, anchor));
}
