// Spend of scopes in their current windows, holds left out.

import type { HoldRefusal } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import type { ScopePolicy, ScopeSpend } from '../ports/policy.ts';
import { reasonOf } from '../reason.ts';
import { err, ok, type Result } from '../result.ts';
import { spendWindow } from '../window.ts';
import type { Account } from './account.ts';
import type { LedgerDependencies } from './deps.ts';
import { load } from './loads.ts';
import type { Membership } from './membership.ts';
import type { Sync } from './sync.ts';
import { withTimeout } from './timeout.ts';
import { REQUEST_DEADLINE } from './waiting.ts';

export interface SpendDependencies extends LedgerDependencies {
  readonly account: Account;
  readonly sync: Sync;
  readonly membership: Pick<Membership, 'opened'>;
}

type Spends = ReadonlyArray<ScopeSpend | undefined>;

/** Undefined for a scope without a budget. */
export function createSpend(deps: SpendDependencies) {
  const { account, accounts, sync, membership, timer } = deps;

  const read = async (scopes: ReadonlyArray<ScopePolicy>): Promise<Spends> => {
    await membership.opened();
    // Settlements that wait for the next call count too.
    await sync.flush();
    const now = account.now();
    const counters = scopes
      .filter(({ budget }) => budget !== undefined)
      .map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now) }));
    let shown = await accounts.read(counters);
    const absent = counters.filter((_, index) => shown[index] === undefined);
    if (absent.length > 0) {
      await load(deps, account.epoch, absent);
      shown = await accounts.read(counters);
    }
    const spends = counters.flatMap((counter, index) => {
      const spent = shown[index]?.spent;
      return spent === undefined ? [] : [[counter.scopeId, { ...counter, spent }] as const];
    });
    const known = new Map<string, ScopeSpend>(spends);
    return scopes.map(({ scopeId, budget }) => (budget === undefined ? undefined : known.get(scopeId)));
  };

  return async (scopes: ReadonlyArray<ScopePolicy>, waited: Millis = 0): Promise<Result<Spends, HoldRefusal>> => {
    try {
      const left = Math.max(REQUEST_DEADLINE - waited, MIN_WAIT);
      return ok(await withTimeout(timer, left, 'store or database', read(scopes)));
    } catch (error) {
      return err({ reason: 'unavailable', why: reasonOf(error) });
    }
  };
}

const MIN_WAIT: Millis = 500;
