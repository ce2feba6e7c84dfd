// The limits of a request and what remains of them, for the headers of its reply. Of several budgets, the one with the
// smallest rest counts (DESIGN 7).
import type { Failure } from '#core/failure/failure.ts';
import { toFurtherScope } from '#core/keys/further-budgets.ts';
import type { Ledger, RateView } from '#core/ports/ledger.ts';
import type { KeyRecord, RemainingBudget, ScopePolicy, ScopeSpend } from '#core/ports/policy.ts';

/**
 * The limits of a request: its charged scopes, known with its key, and its rates, known later: those of the tightest
 * charged scope.
 */
export interface RequestLimits {
  readonly chargedScopes?: ReadonlyArray<ScopePolicy>;
  readonly rates?: RateView | undefined;
}

/** A request that failed before its reply, with its limits as far as they are known. */
export interface RequestFailure extends RequestLimits {
  readonly failure: Failure;
}

/** The rest of a request's limits: of its rates, and of the budget with the smallest rest. */
export interface RemainingLimits {
  readonly rates: RateView | undefined;
  readonly budget: RemainingBudget | undefined;
}

const NO_SCOPES: ReadonlyArray<ScopePolicy> = [];

export function createRemainingLimits({ ledger }: { readonly ledger: Pick<Ledger, 'knownSpend' | 'spend'> }) {
  return { fromMemory, fromStore };

  /** Reads memory only. Memory has the budgets of every request with a reservation. */
  function fromMemory({ chargedScopes = NO_SCOPES, rates }: RequestLimits): RemainingLimits {
    const spends = hasBudget(chargedScopes) ? ledger.knownSpend(chargedScopes) : [];
    return { rates, budget: smallestOf(chargedScopes, spends) };
  }

  /**
   * Reads memory, then the counter store for budgets that memory does not have. For reports, and for counts of tokens. If
   * the store has already failed to answer this request, only memory is read.
   */
  async function fromStore(
    limits: RequestLimits & { readonly failure?: Failure | undefined },
  ): Promise<RemainingLimits> {
    const { chargedScopes = NO_SCOPES, rates, failure } = limits;
    const known = ledger.knownSpend(chargedScopes);
    const isComplete = chargedScopes.every(({ budget }, index) => budget === undefined || known[index] !== undefined);
    const isUseless = failure?.code === 'ledger_unavailable' || failure?.code === 'client_left';
    const read = isComplete || isUseless ? undefined : await ledger.spend(chargedScopes);
    return { rates, budget: smallestOf(chargedScopes, read?.ok ? read.value : known) };
  }
}

export function hasBudget(scopes: ReadonlyArray<ScopePolicy>): boolean {
  return scopes.some(({ budget }) => budget !== undefined);
}

/** The scopes that every request of this key is charged to, whatever its model. */
export function chargedScopesOf({ key, scopes }: KeyRecord): ReadonlyArray<ScopePolicy> {
  const windows = key.furtherBudgets?.filter(({ model }) => model === undefined) ?? [];
  return windows.length === 0 ? scopes : [...scopes, ...windows.map(toFurtherScope(key))];
}

function smallestOf(
  chargedScopes: ReadonlyArray<ScopePolicy>,
  spends: ReadonlyArray<ScopeSpend | undefined>,
): RemainingBudget | undefined {
  let smallest: RemainingBudget | undefined;
  for (let index = 0; index < chargedScopes.length; index += 1) {
    const [scope, spend] = [chargedScopes[index], spends[index]];
    if (scope?.budget === undefined || spend === undefined) continue;
    const limit = BigInt(scope.budget.limit);
    const { spent, window } = spend;
    const remaining = spent < limit ? limit - spent : 0n;
    if (smallest === undefined || remaining < smallest.remaining)
      smallest = { scope, limit, spent, remaining, resetAt: window.end };
  }
  return smallest;
}
