// Spend of scopes in their current windows, holds left out.

import type { HoldRefusal } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import type { ScopePolicy, ScopeSpend } from '../ports/policy.ts';
import { reasonOf } from '../reason.ts';
import { err, ok, type Result } from '../result.ts';
import { spendWindow } from '../window.ts';
import type { Context } from './context.ts';
import { load } from './loads.ts';
import type { Sync } from './sync.ts';
import { withTimeout } from './timeout.ts';
import { MIN_WAIT, REQUEST_DEADLINE } from './waiting.ts';

type Spends = ReadonlyArray<ScopeSpend | undefined>;

/** Undefined for a scope without a budget. */
export const createSpend =
  (context: Context, sync: Sync) =>
  async (scopes: ReadonlyArray<ScopePolicy>, waited: Millis = 0): Promise<Result<Spends, HoldRefusal>> => {
    try {
      const left = Math.max(REQUEST_DEADLINE - waited, MIN_WAIT);
      return ok(await withTimeout(context.timer, left, 'store or database', read(context, sync, scopes)));
    } catch (error) {
      return err({ reason: 'unavailable', why: reasonOf(error) });
    }
  };

async function read(context: Context, sync: Sync, scopes: ReadonlyArray<ScopePolicy>): Promise<Spends> {
  const { account, accounts } = context;
  await account.opened.promise;
  // Settlements that wait for the next call count too.
  await sync.flush();
  const now = account.now();
  const counters = scopes
    .filter(({ budget }) => budget !== undefined)
    .map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now) }));
  let shown = await accounts.read(counters);
  const absent = counters.filter((_, index) => shown[index] === undefined);
  if (absent.length > 0) {
    await load(context, account.epoch, absent);
    shown = await accounts.read(counters);
  }
  const spends = counters.flatMap((counter, index) => {
    const spent = shown[index]?.spent;
    return spent === undefined ? [] : [{ ...counter, spent }];
  });
  return scopes.map(({ scopeId }) => spends.find((spend) => spend.scopeId === scopeId));
}
