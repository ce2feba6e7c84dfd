// Budgets of a member and the windows they are counted in.
import { parseMoney } from '#core/money.ts';
import type { Millis, Window } from '#core/ports/money.ts';
import type { Budget, ScopePolicy } from '#core/ports/policy.ts';
import type { Claim } from '#core/ports/registry.ts';
import { windowAt } from '#core/window.ts';
import type { Member } from '../world.ts';

/** A budget without `budgetDuration` never resets: its one window is the longest that there is. */
const NEVER_RESETS = '36525d';

export function budgetOf(member: Member): Budget | undefined {
  const { maxBudget, budgetDuration } = member.spec;
  const limit = maxBudget === undefined ? undefined : parseMoney(maxBudget);
  if (limit === undefined) return undefined;
  const alignment = member.kind === 'VirtualKey' ? member.spec.budgetWindow : 'Rolling';
  return { limit: limit.toString(), duration: budgetDuration ?? NEVER_RESETS, alignment };
}

/** The window of `now`. An anchor that this run made, or that a faster clock made, may lie a moment ahead: the first window has begun. */
export function windowOf({ duration, alignment }: Budget, anchor: Millis, now: Millis): Window {
  return windowAt({ duration, alignment, anchor }, Math.max(now, anchor));
}

/** The scopes of a policy that have a budget: the claim's own, and those for single models. */
export function budgetedScopes({
  policy,
}: Pick<Claim, 'policy'>): ReadonlyArray<ScopePolicy & { readonly budget: Budget }> {
  if (policy === undefined) return [];
  const models = 'modelScopes' in policy ? (policy.modelScopes ?? []) : [];
  return [policy, ...models].flatMap((scope) =>
    scope.budget === undefined ? [] : [{ ...scope, budget: scope.budget }],
  );
}
