// Closing of accounts in memory, and the audit of their counters (LEDGER 3, 6).
import type { AccountRow, AuditSum, AuditTerms, FiguresReply, FreezeReply } from '#core/ports/counter-store.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import {
  type AccountState,
  accountOf,
  type Counter,
  counterOf,
  endedUntil,
  figuresIn,
  finishAccount,
  forgetFigures,
  isKept,
  type MemoryStore,
  usedBy,
} from './account-state.ts';

/** Freezes an account: calls of its process are refused from now on. An unknown account is remembered as finished. */
export function freeze(store: MemoryStore, id: string, isOwn: boolean, now: Millis): FreezeReply {
  const account = store.accounts.get(id);
  if (account === undefined || account.isFinished) {
    if (account === undefined) forget(store, id, { isCharged: false, counters: [] }, now);
    store.storeCalls += 1;
    return { outcome: 'none', now, storeCalls: store.storeCalls };
  }
  if (!isOwn && account.leaseEnd > endedUntil(store, now)) return { outcome: 'live', now };
  account.isFrozen = true;
  store.storeCalls += 1;
  return { outcome: 'frozen', now, storeCalls: store.storeCalls, callNumber: account.callNumber };
}

/** A page of the figures of a frozen account. The cursor is a place among all its figures, forgotten ones too. */
export function pageOf(store: MemoryStore, id: string, cursor = '0'): FiguresReply {
  const account = store.accounts.get(id);
  if (account === undefined || !account.isFrozen || account.isFinished) return { outcome: 'none' };
  const used = usedBy(store, account);
  const from = Number(cursor);
  const end = from + store.figuresPage;
  const page = used.slice(from, end).filter(isKept);
  const figures = page.map(({ counter, figures: { escrow, risk, unbookedSpend } }) => ({
    ...toScopeWindow(counter),
    escrow,
    risk,
    unbookedSpend: unbookedSpend.map((batch) => ({ ...batch })),
    isAbsent: counter.spent === undefined,
  }));
  const next = end < used.length ? `${end}` : undefined;
  return { outcome: 'page', figures, total: used.filter(isKept).length, next };
}

const toScopeWindow = ({ scopeId, window }: ScopeWindow): ScopeWindow => ({ scopeId, window });

/** Forgets figures of a frozen or unknown account, and finishes the account when it has no figures left. */
export function forget(
  store: MemoryStore,
  id: string,
  { isCharged, counters }: { readonly isCharged: boolean; readonly counters: ReadonlyArray<ScopeWindow> },
  now: Millis,
): void {
  if (store.accounts.get(id)?.isFrozen === false) return;
  const account = Object.assign(accountOf(store, id), { isFrozen: true });
  for (const scopeWindow of counters) forgetFigures(counterOf(store, scopeWindow), account, isCharged);
  if (!account.isFinished && !usedBy(store, account).some(isKept)) finishAccount(store, account, now);
}

/**
 * Finishes an account after its last call. An account with more figures than a page is frozen, so that its figures are
 * forgotten page by page.
 */
export function finishAfterCall(store: MemoryStore, account: AccountState, now: Millis): void {
  const used = usedBy(store, account).filter(isKept);
  if (used.length > store.figuresPage) return void Object.assign(account, { isFrozen: true });
  for (const { counter } of used) forgetFigures(counter, account, false);
  finishAccount(store, account, now);
}

/** Sets the spend of counters to PostgreSQL's sums plus the unbooked spend of accounts. */
export function audit(
  store: MemoryStore,
  sums: ReadonlyArray<AuditSum>,
  rows: ReadonlyMap<string, AccountRow>,
  { storeCallsBefore, acceptsChangedAccounts = false }: Pick<AuditTerms, 'storeCallsBefore' | 'acceptsChangedAccounts'>,
) {
  const audited = [...store.accounts.values()].filter((account) => isAudited(account, storeCallsBefore));
  const audits = sums.flatMap((sum) => {
    const counter = counterOf(store, sum);
    const accounts = audited.filter(({ id }) => counter.figures.has(id));
    const changed = accounts.filter((account) => hasChanged(counter, account, rows.get(account.id)));
    return counter.spent === undefined ? [] : [{ counter, previous: counter.spent, accounts, changed, sum }];
  });
  const changedAccounts = acceptsChangedAccounts ? [] : audits.flatMap(({ changed }) => changed.map(({ id }) => id));
  if (changedAccounts.length > 0) {
    const minSums = audits
      .filter(({ changed }) => changed.length > 0)
      .map(({ counter, previous, accounts }) => ({
        ...toScopeWindow(counter),
        spent: accounts.reduce((sum, account) => sum - maxUnbookedIn(counter, account), previous),
      }));
    return { differences: [], changedAccounts: [...new Set(changedAccounts)], minSums };
  }
  const differences = audits.flatMap(({ counter, previous, accounts, changed, sum }) => {
    const expectedSpend = accounts.reduce((all, account) => {
      const isChanged = changed.includes(account);
      return all + (isChanged ? minIn(counter, account) : unbookedIn(counter, account, rows.get(account.id)));
    }, sum.spent);
    const missingInSum = (sum.minSum ?? sum.spent) - sum.spent;
    const lowered = missingInSum > 0n ? previous - missingInSum : previous;
    const spent = changed.length > 0 && expectedSpend < lowered ? lowered : expectedSpend;
    counter.spent = spent;
    return spent === previous ? [] : [{ ...toScopeWindow(counter), by: spent - previous }];
  });
  return { differences, changedAccounts, minSums: [] };
}

/** Whether the sums may lack spend of the account that the store has, or have spend that the store lacks. */
function isAudited(
  { isFrozen, isFinished, bookedBatch, reportedBatch, lastBookedCall }: AccountState,
  storeCallsBefore: number,
): boolean {
  return lastBookedCall > storeCallsBefore || (!isFinished && (isFrozen || bookedBatch < reportedBatch));
}

/**
 * Whether a batch was booked after the row was read, or it is unknown whether PostgreSQL has the spend of the account.
 */
function hasChanged(counter: Counter, account: AccountState, row: AccountRow | undefined): boolean {
  const { unbookedSpend, risk, lastBookedBatch: bookedBatch, isForgotten } = figuresIn(counter, account);
  const hasSpend = unbookedSpend.length > 0 || risk !== 0n;
  if (row === undefined) return hasSpend || bookedBatch > 0;
  if (row.isClosed) return row.isClosing && hasSpend;
  return bookedBatch > row.bookedBatch || (isForgotten && hasSpend);
}

/** The least that a changed account can add to the sum of a counter. PostgreSQL may have charged a frozen account. */
function minIn(counter: Counter, account: AccountState): Nano {
  const { unbookedSpend, risk, isForgotten } = figuresIn(counter, account);
  if (isForgotten) return 0n;
  return unbookedSpend.reduce((sum, { spend }) => (spend < 0n ? sum + spend : sum), account.isFrozen ? -risk : 0n);
}

/** The spend of an account that PostgreSQL may not have. */
function maxUnbookedIn(counter: Counter, account: AccountState): Nano {
  const { unbookedSpend, isForgotten } = figuresIn(counter, account);
  return isForgotten ? 0n : unbookedSpend.reduce((sum, { spend }) => (spend > 0n ? sum + spend : sum), 0n);
}

/** Spend of an account that is in the counter but not in PostgreSQL; negative: spend that only PostgreSQL has. */
function unbookedIn(counter: Counter, account: AccountState, row: AccountRow | undefined): Nano {
  const { unbookedSpend, risk, isForgotten } = figuresIn(counter, account);
  if (row === undefined || isForgotten) return 0n;
  if (row.isClosed) return row.isCharged ? -risk : 0n;
  return unbookedSpend.reduce((sum, { batch, spend }) => (batch > row.bookedBatch ? sum + spend : sum), 0n);
}
