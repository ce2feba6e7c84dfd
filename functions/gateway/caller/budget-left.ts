// The rest of the budgets that pay for a request, for the headers of its reply: of the budget that has least (DESIGN
// 7).
import type { Failure } from '#core/failure/failure.ts';
import type { Ledger } from '#core/ports/ledger.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { KeyRecord, ScopePolicy, ScopeSpend } from '#core/ports/policy.ts';

export interface BudgetLeft {
  readonly scope: ScopePolicy;
  readonly limit: Nano;
  readonly spent: Nano;
  /** Never below zero. */
  readonly remaining: Nano;
  readonly resetAt: Millis;
}

/** The part of a request's context that tells its budget. */
export interface BudgetContext {
  /** The scopes that pay, once the key is known. */
  chargedScopes: ReadonlyArray<ScopePolicy> | undefined;
  /** The budget that has least, once that is known. */
  budget: BudgetLeft | undefined;
}

export function createBudgetLeft({ ledger }: { readonly ledger: Pick<Ledger, 'knownSpend' | 'spend'> }) {
  return { look, learn };

  /**
   * From memory, which knows the budgets of every request that holds money. Returns whether nothing is left to learn.
   */
  function look(context: BudgetContext): boolean {
    const { chargedScopes = [] } = context;
    if (!chargedScopes.some(({ budget }) => budget !== undefined)) return true;
    const spends = ledger.knownSpend(chargedScopes);
    context.budget = leastOf(chargedScopes, spends);
    return chargedScopes.every(({ budget }, index) => budget === undefined || spends[index] !== undefined);
  }

  /**
   * For replies without a reservation: the store is asked where memory does not know. A reply that already waited for the
   * store in vain goes without.
   */
  async function learn(context: BudgetContext, refused?: Failure): Promise<void> {
    if (look(context) || refused?.code === 'ledger_unavailable' || refused?.code === 'client_left') return;
    const { chargedScopes = [] } = context;
    const spends = await ledger.spend(chargedScopes);
    if (spends.ok) context.budget = leastOf(chargedScopes, spends.value);
  }
}

/** All that pays for requests of this key, whatever the model. */
export function chargedScopesOf({ key, scopes }: KeyRecord): ReadonlyArray<ScopePolicy> {
  const windows = key.furtherBudgets?.filter(({ kind }) => kind === 'key') ?? [];
  return windows.length === 0 ? scopes : [...scopes, ...windows];
}

function leastOf(
  chargedScopes: ReadonlyArray<ScopePolicy>,
  spends: ReadonlyArray<ScopeSpend | undefined>,
): BudgetLeft | undefined {
  let least: BudgetLeft | undefined;
  for (const [index, scope] of chargedScopes.entries()) {
    const spend = spends[index];
    if (scope.budget === undefined || spend === undefined) continue;
    const limit = BigInt(scope.budget.limit);
    const { spent, window } = spend;
    const remaining = spent < limit ? limit - spent : 0n;
    if (least === undefined || remaining < least.remaining)
      least = { scope, limit, spent, remaining, resetAt: window.end };
  }
  return least;
}
