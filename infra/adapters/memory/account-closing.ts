// Closing of accounts in memory, and the audit of their counters (LEDGER 3, 6).
import type { AccountRow, CounterStore, FreezeReply } from '#core/ports/counter-store.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import {
  type AccountState,
  type Counter,
  counterOf,
  endedUntil,
  figuresIn,
  forget,
  type MemoryStore,
  usedBy,
} from './account-state.ts';

/** Freezes an account: calls of its process are refused from now on. */
export function freeze(
  store: MemoryStore,
  id: string,
  how: Parameters<CounterStore['freeze']>[2],
  now: Millis,
): FreezeReply {
  const account = store.accounts.get(id);
  if (account === undefined) forget(store, id, false, now);
  if (account === undefined || account.isFinished) {
    store.callCount += 1;
    return { outcome: 'none', now, callCount: store.callCount };
  }
  if (!how.isOwn && account.leaseEnd > endedUntil(store, now)) return { outcome: 'live', now };
  const used = usedBy(store, account);
  const absent = used.filter(({ counter }) => counter.spent === undefined);
  if (!how.isRebuild && absent.length > 0)
    return { outcome: 'absent', now, counters: absent.map(({ counter }) => toScopeWindow(counter)) };
  account.isFrozen = true;
  store.callCount += 1;
  const accountFigures = used.map(({ counter, figures: { escrow, risk, unbooked } }) => ({
    ...toScopeWindow(counter),
    escrow,
    risk,
    unbooked: unbooked.map((batch) => ({ ...batch })),
  }));
  return { outcome: 'frozen', now, callCount: store.callCount, number: account.number, figures: accountFigures };
}

const toScopeWindow = ({ scopeId, window }: ScopeWindow): ScopeWindow => ({ scopeId, window });

/** Sets the spend of counters to PostgreSQL's sums plus the unbooked spend of accounts. */
export function audit(store: MemoryStore, sums: ReadonlyArray<ScopeSpend>, rows: ReadonlyMap<string, AccountRow>) {
  const audits = sums.flatMap((sum) => {
    const counter = counterOf(store, sum);
    const accounts = [...store.accounts.values()].filter(({ id }) => counter.figures.has(id));
    return counter.spent === undefined ? [] : [{ counter, previous: counter.spent, accounts, sum }];
  });
  const changedAccounts = audits.flatMap(({ counter, accounts }) =>
    accounts.flatMap((account) => (hasChanged(counter, account, rows.get(account.id)) ? [account.id] : [])),
  );
  if (changedAccounts.length > 0) return { differences: [], changedAccounts: [...new Set(changedAccounts)] };
  const differences = audits.flatMap(({ counter, previous, accounts, sum }) => {
    const spent = accounts.reduce(
      (sum, account) => sum + unbookedIn(counter, account, rows.get(account.id)),
      sum.spent,
    );
    counter.spent = spent;
    return spent === previous ? [] : [{ ...toScopeWindow(counter), by: spent - previous }];
  });
  return { differences, changedAccounts };
}

/**
 * Whether a batch was booked after the row was read, or it is unknown whether PostgreSQL has the spend of the account.
 */
function hasChanged(counter: Counter, account: AccountState, row: AccountRow | undefined): boolean {
  const { unbooked, risk, lastBookedBatch: bookedBatch } = figuresIn(counter, account);
  const hasSpend = unbooked.length > 0 || risk !== 0n;
  if (row === undefined) return hasSpend || bookedBatch > 0;
  return !row.isClosed && (bookedBatch > row.bookedBatch || (account.isFinished && hasSpend));
}

/** Spend of an account that is in the counter but not in PostgreSQL; negative: spend that only PostgreSQL has. */
function unbookedIn(counter: Counter, account: AccountState, row: AccountRow | undefined): Nano {
  if (row === undefined || account.isFinished) return 0n;
  const { unbooked, risk } = figuresIn(counter, account);
  if (row.isClosed) return row.isCharged ? -risk : 0n;
  return unbooked.reduce((sum, { batch, spend }) => (batch > row.bookedBatch ? sum + spend : sum), 0n);
}
