// Limits of a request, and what is left of them, for the headers of its reply: of the budget that has least (DESIGN 7).
import type { Failure } from '#core/failure/failure.ts';
import { toFurtherScope } from '#core/keys/further-budgets.ts';
import type { Ledger, RateView } from '#core/ports/ledger.ts';
import type { KeyRecord, RemainingBudget, ScopePolicy, ScopeSpend } from '#core/ports/policy.ts';

/** The limits of a request: the scopes that it is charged to, known with its key, and the key's rates, known later. */
export interface RequestLimits {
  readonly chargedScopes?: ReadonlyArray<ScopePolicy>;
  readonly rates?: RateView | undefined;
}

/** The end of a request before its reply, and the limits that were known by then. */
export interface RequestFailure extends RequestLimits {
  readonly failure: Failure;
}

/** The rest of a request's limits: the key's rates, and the budget that has least. */
export interface RemainingLimits {
  readonly rates: RateView | undefined;
  readonly budget: RemainingBudget | undefined;
}

const NO_SCOPES: ReadonlyArray<ScopePolicy> = [];

export function createRemainingLimits({ ledger }: { readonly ledger: Pick<Ledger, 'knownSpend' | 'spend'> }) {
  return { fromMemory, fromStore };

  /** From memory, which knows the budgets of every request that holds money. */
  function fromMemory({ chargedScopes = NO_SCOPES, rates }: RequestLimits): RemainingLimits {
    const spends = isCapped(chargedScopes) ? ledger.knownSpend(chargedScopes) : [];
    return { rates, budget: smallestOf(chargedScopes, spends) };
  }

  /**
   * For replies without a reservation: the store is asked where memory does not know. A reply that already waited for the
   * store in vain goes without.
   */
  async function fromStore(
    limits: RequestLimits & { readonly failure?: Failure | undefined },
  ): Promise<RemainingLimits> {
    const { chargedScopes = NO_SCOPES, rates, failure } = limits;
    const known = ledger.knownSpend(chargedScopes);
    const isWhole = chargedScopes.every(({ budget }, index) => budget === undefined || known[index] !== undefined);
    const isVain = failure?.code === 'ledger_unavailable' || failure?.code === 'client_left';
    const asked = isWhole || isVain ? undefined : await ledger.spend(chargedScopes);
    return { rates, budget: smallestOf(chargedScopes, asked?.ok ? asked.value : known) };
  }
}

export function isCapped(scopes: ReadonlyArray<ScopePolicy>): boolean {
  return scopes.some(({ budget }) => budget !== undefined);
}

/** All that pays for requests of this key, whatever the model. */
export function chargedScopesOf({ key, scopes }: KeyRecord): ReadonlyArray<ScopePolicy> {
  const windows = key.furtherBudgets?.filter(({ model }) => model === undefined) ?? [];
  return windows.length === 0 ? scopes : [...scopes, ...windows.map(toFurtherScope(key))];
}

function smallestOf(
  chargedScopes: ReadonlyArray<ScopePolicy>,
  spends: ReadonlyArray<ScopeSpend | undefined>,
): RemainingBudget | undefined {
  let smallest: RemainingBudget | undefined;
  for (const [index, scope] of chargedScopes.entries()) {
    const spend = spends[index];
    if (scope.budget === undefined || spend === undefined) continue;
    const limit = BigInt(scope.budget.limit);
    const { spent, window } = spend;
    const remaining = spent < limit ? limit - spent : 0n;
    if (smallest === undefined || remaining < smallest.remaining)
      smallest = { scope, limit, spent, remaining, resetAt: window.end };
  }
  return smallest;
}
