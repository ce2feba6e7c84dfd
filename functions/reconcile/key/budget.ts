// Budgets of a scope object, their windows, and the spend in each.
import { toTimestamp } from '#core/conditions/conditions.ts';
import { ownMember } from '#core/json/json.ts';
import { perKeyScopeId } from '#core/keys/per-key-budget.ts';
import { formatMoney, parseMoney } from '#core/money/money.ts';
import { windowAt } from '#core/money/window.ts';
import type { Millis, Nano, Window } from '#core/ports/money.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { Budget, KeyPolicy, ScopeId, SpecRateLimits } from '#core/ports/policy.ts';
import { RATE_ROWS } from '#core/ports/rates.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKey, VirtualKeySpec } from '#crds/kinds/virtual-key.ts';
import { type InstanceView, type OwnClaim, type Problem, type ScopeObject, sumKey } from '../world.ts';

/** A budget without `budgetDuration` never resets: its one window is the longest possible. */
const NEVER_RESETS = '36525d';

/** A spec with a budget and limits: of a scope object, or a part of an instance's key policy. */
interface BudgetSpec {
  readonly spec: Pick<VirtualKeySpec, 'budgetTimeZone' | keyof SpecRateLimits> & {
    readonly [Field in 'maxBudget' | 'budgetDuration' | 'budgetWindow']?: VirtualKeySpec[Field] | undefined;
  };
}

export function budgetOf({ spec }: BudgetSpec): Budget | undefined {
  const { maxBudget, budgetDuration } = spec;
  const limit = maxBudget === undefined ? undefined : parseMoney(maxBudget);
  if (limit === undefined) return undefined;
  if (budgetDuration === undefined) return { limit: limit.toString(), duration: NEVER_RESETS, alignment: 'Rolling' };
  return { limit: limit.toString(), duration: budgetDuration, alignment: alignmentOf({ spec }) };
}

export const alignmentOf = ({ spec: { budgetWindow = 'Rolling', budgetTimeZone } }: BudgetSpec): Budget['alignment'] =>
  budgetWindow === 'Calendar' && budgetTimeZone !== undefined ? `Calendar ${budgetTimeZone}` : budgetWindow;

/** The limit of each kind of rate; undefined for a kind that the spec does not limit. */
export const rateLimitsOf = ({ spec }: BudgetSpec): SpecRateLimits =>
  Object.fromEntries(RATE_ROWS.map(([, { specField }]) => [specField, spec[specField]]));

/** The same; undefined if the spec limits no kind. */
export function policyLimitsOf(limited: BudgetSpec): SpecRateLimits | undefined {
  const limits = rateLimitsOf(limited);
  return Object.values(limits).some((limit) => limit !== undefined) ? limits : undefined;
}

/**
 * The budget with its `since`, which grows with each edit that changes the windows. `before`: the budget in force.
 * `isNew`: the scope has no policy yet.
 */
export function renewedBudget(
  budget: Budget | undefined,
  before: Budget | undefined,
  { isNew, generation }: { readonly isNew: boolean; readonly generation: number },
): Budget | undefined {
  if (budget === undefined || isNew) return budget;
  const isSame = before?.duration === budget.duration && before.alignment === budget.alignment;
  // An object that was created again counts its generations from one.
  const sinceGeneration = isSame ? before.sinceGeneration : Math.max(generation, (before?.sinceGeneration ?? 0) + 1);
  return sinceGeneration === undefined ? budget : { ...budget, sinceGeneration };
}

/**
 * The window of `now`. An anchor that this run or a faster clock set may be a moment in the future: then the first
 * window has begun.
 */
export function windowOf(budget: Budget, anchor: Millis, now: Millis): Window {
  return windowAt({ ...budget, anchor }, Math.max(now, anchor));
}

/** The window of `now` of a budget, and what its scope has spent in it. */
export function spentIn(
  sums: InstanceView['sums'],
  { scopeId, budget, anchor }: { readonly scopeId: ScopeId; readonly budget: Budget; readonly anchor: Millis },
  now: Millis,
): { readonly window: Window; readonly spent: Nano } {
  const window = windowOf(budget, anchor, now);
  return { window, spent: sums.get(sumKey(scopeId, window)) ?? 0n };
}

interface BudgetedScope {
  readonly scopeId: ScopeId;
  readonly budget: Budget;
  /** The model that a further budget is for. */
  readonly model?: string | undefined;
}

interface BudgetOwner extends Pick<Claim, 'scopeId'> {
  readonly policy?: Pick<KeyPolicy, 'budget' | 'furtherBudgets'>;
}

/** The scopes of a policy that have a budget: the claim's own, and its further ones. */
export function budgetedScopes({
  scopeId: own,
  policy: { budget: ownBudget, furtherBudgets = [] } = {},
}: BudgetOwner): ReadonlyArray<BudgetedScope> {
  if (ownBudget === undefined) return [];
  const { alignment } = ownBudget;
  const further = furtherBudgets.map(({ scopeId, model, ...budget }) => ({
    scopeId,
    model,
    budget: { ...budget, alignment },
  }));
  return [{ scopeId: own, budget: ownBudget }, ...further];
}

/**
 * The budget of a VirtualKey from the key policy of its namespace (`perKey`). The database has a sum of it as soon as a
 * gateway has served a request of the VirtualKey under this policy.
 */
export function perKeyScope(key: Claim, namespace: Claim | undefined, hash: Hash): BudgetedScope | undefined {
  const budget = namespace?.policy?.perKey?.budget;
  if (namespace === undefined || budget === undefined) return undefined;
  const owner = { namespace: namespace.scopeId, key: key.scopeId, holderUid: key.holder.uid, budget };
  const { sinceGeneration: _, ...window } = budget;
  return { scopeId: perKeyScopeId(hash, owner), budget: window };
}

export interface Spend {
  readonly spent: Nano;
  readonly resetsAt: Millis;
  readonly isExceeded: boolean;
}

/**
 * A scope object's spend in its window, by the policy in force: an edit that is not written yet does not count.
 * Undefined: no budget, or no claim.
 */
export function spendOf(scopeObject: ScopeObject, own: OwnClaim | undefined, now: Millis): Spend | undefined {
  const budget = budgetOf(scopeObject);
  if (budget === undefined || own === undefined) return undefined;
  const { claim, instance } = own;
  const { window, spent } = spentIn(instance.sums, { ...claim, budget: claim.policy?.budget ?? budget }, now);
  return { spent, resetsAt: window.end, isExceeded: spent >= BigInt(budget.limit) };
}

export interface WindowSpend extends Spend {
  readonly budgetDuration: string;
  readonly maxBudget: string;
}

/**
 * A VirtualKey's spend in its further windows (`budgets`), in the order of the spec, without windows that are not in
 * force yet.
 */
export function windowSpends(key: VirtualKey, { claim, instance }: OwnClaim, now: Millis): ReadonlyArray<WindowSpend> {
  const further = budgetedScopes(claim).filter(
    ({ model, scopeId }) => model === undefined && scopeId !== claim.scopeId,
  );
  return (key.spec.budgets ?? []).flatMap(({ budgetDuration, maxBudget }) => {
    const scope = further.find(({ budget }) => budget.duration === budgetDuration);
    if (scope === undefined) return [];
    const { window, spent } = spentIn(instance.sums, { ...scope, anchor: claim.anchor }, now);
    return [
      { budgetDuration, maxBudget, spent, resetsAt: window.end, isExceeded: spent >= (parseMoney(maxBudget) ?? 0n) },
    ];
  });
}

type SpentBudget = Problem<'BudgetExceeded'> & { readonly model: string | undefined };

interface ClaimWithSums {
  readonly claim: Pick<Claim, 'scopeId' | 'anchor' | 'policy'>;
  readonly instance: Pick<OwnClaim['instance'], 'sums'>;
}

/**
 * Further budgets that are spent, in one sentence each: of models that the VirtualKey may use (`modelMaxBudget`), and
 * of other windows (`budgets`).
 */
export function spentBudgets(
  { spec }: { readonly spec: Pick<VirtualKeySpec, 'models' | 'modelMaxBudget' | 'budgets'> },
  { claim, instance }: ClaimWithSums,
  now: Millis,
): ReadonlyArray<SpentBudget> {
  const { models, modelMaxBudget = {}, budgets = [] } = spec;
  return budgetedScopes(claim).flatMap(({ scopeId, model, budget }): SpentBudget[] => {
    const index = budgets.findIndex(({ budgetDuration }) => budgetDuration === budget.duration);
    const specBudget = model === undefined ? budgets[index] : ownMember(modelMaxBudget, model);
    if (scopeId === claim.scopeId || specBudget === undefined) return [];
    if (model !== undefined && models.length > 0 && !models.includes(model)) return [];
    const { window, spent } = spentIn(instance.sums, { scopeId, budget, anchor: claim.anchor }, now);
    const limit = parseMoney(specBudget.maxBudget) ?? 0n;
    if (spent < limit) return [];
    const of = model === undefined ? `per ${budget.duration}` : `on ${JSON.stringify(model)}`;
    const path = model === undefined ? `budgets[${index}]` : `modelMaxBudget[${JSON.stringify(model)}]`;
    const raise = `${of}: raise spec.${path}.maxBudget`;
    const message =
      limit === 0n
        ? `this VirtualKey has a budget of 0 dollars ${raise}`
        : `this VirtualKey has spent ${formatMoney(spent)} of ${formatMoney(limit)} dollars ${raise}, or wait until ${toTimestamp(window.end)}`;
    return [{ model, reason: 'BudgetExceeded', message }];
  });
}
