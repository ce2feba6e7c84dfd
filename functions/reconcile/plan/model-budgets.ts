// What may a key spend on single models, what has it spent, and which of them has it used up? (`modelMaxBudget`)
import { toTimestamp } from '#core/conditions.ts';
import { modelScopeId } from '#core/model-scope.ts';
import { formatMoney, parseMoney } from '#core/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { Budget, ScopePolicy } from '#core/ports/policy.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { Problem } from '../problem.ts';
import { type InstanceView, type Member, sumKey } from '../world.ts';
import { windowOf } from './budget.ts';
import type { Outlook } from './outlook.ts';

export interface ModelScope extends ScopePolicy {
  readonly kind: 'model';
  readonly budget: Budget;
}

/** By model name; windows are aligned and anchored as the key's own. */
export function modelScopesOf(member: Member, claim: Claim, hash: Hash): ReadonlyArray<ModelScope> {
  if (member.kind !== 'VirtualKey') return [];
  const { modelMaxBudget, budgetWindow } = member.spec;
  if (modelMaxBudget === undefined) return [];
  return Object.entries(modelMaxBudget)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([model, budget]) => {
      const { maxBudget, budgetDuration } = budget;
      return {
        scopeId: modelScopeId(hash, claim.scopeId, model),
        ...{ kind: 'model', name: model, of: claim.alias, blocked: false, models: [] },
        budget: { limit: String(parseMoney(maxBudget)), duration: budgetDuration, alignment: budgetWindow },
        anchor: claim.anchor,
      };
    });
}

/** Models that the key may use and whose own budget is used up, in one sentence each. */
export function spentModels(
  key: VirtualKey,
  claim: Claim,
  instance: InstanceView,
  { now, hash }: Pick<Outlook, 'now' | 'hash'>,
): ReadonlyArray<{ readonly model: string; readonly problem: Problem }> {
  return modelScopesOf(key, claim, hash).flatMap(({ scopeId, name: model, budget }) => {
    const window = windowOf(budget, claim.anchor, now);
    const spent = instance.sums.get(sumKey(scopeId, window)) ?? 0n;
    const { models } = key.spec;
    if (spent < BigInt(budget.limit) || (models.length > 0 && !models.includes(model))) return [];
    const path = `spec.modelMaxBudget[${JSON.stringify(model)}].maxBudget`;
    const on = `on ${JSON.stringify(model)}: raise ${path}`;
    // A budget of nothing is as small in its next window.
    const message =
      budget.limit === '0'
        ? `it has a budget of 0 dollars ${on}`
        : `it has spent ${formatMoney(spent)} of ${formatMoney(BigInt(budget.limit))} dollars ${on}, or wait until ${toTimestamp(window.end)}`;
    return [{ model, problem: { reason: 'BudgetExceeded', message } }];
  });
}
