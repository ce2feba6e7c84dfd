// Closing of accounts in memory, and the audit of their counters (LEDGER 3, 6).
import type { AccountRow, CounterStore, FreezeReply } from '#core/ports/counter-store.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { type Account, type Counter, close, counterOf, figuresIn, type Life, usedBy } from './account-state.ts';

/** Freezes an account: no call of its process is done from now on. */
export function mark(life: Life, id: string, how: Parameters<CounterStore['freeze']>[2], now: Millis): FreezeReply {
  const account = life.accounts.get(id);
  if (account === undefined) close(life, id, false, now);
  if (account === undefined || account.isFinished) {
    life.calls += 1;
    return { outcome: 'none', now, calls: life.calls };
  }
  if (!how.isOwn && account.until > now) return { outcome: 'live', now };
  const used = usedBy(life, account);
  const absent = used.filter(({ counter }) => counter.spent === undefined);
  if (!how.isRebuild && absent.length > 0)
    return { outcome: 'absent', now, counters: absent.map(({ counter }) => toScopeWindow(counter)) };
  account.isMarked = true;
  life.calls += 1;
  const frozen = used.map(({ counter, figures: { escrow, risk, unbooked } }) => ({
    ...toScopeWindow(counter),
    escrow,
    risk,
    unbooked: unbooked.map((one) => ({ ...one })),
  }));
  return { outcome: 'frozen', now, calls: life.calls, number: account.number, figures: frozen };
}

const toScopeWindow = ({ scopeId, window }: ScopeWindow): ScopeWindow => ({ scopeId, window });

/** Sets what counters have spent to PostgreSQL's sums and what accounts have not booked. */
export function audit(life: Life, sums: ReadonlyArray<ScopeSpend>, rows: ReadonlyMap<string, AccountRow>) {
  const found = sums.flatMap((sum) => {
    const counter = counterOf(life, sum);
    const accounts = [...life.accounts.values()].filter(({ id }) => counter.figures.has(id));
    return counter.spent === undefined ? [] : [{ counter, was: counter.spent, accounts, sum }];
  });
  const moved = found.flatMap(({ counter, accounts }) =>
    accounts.flatMap((account) => (isMoved(counter, account, rows.get(account.id)) ? [account.id] : [])),
  );
  if (moved.length > 0) return { differences: [], moved: [...new Set(moved)] };
  const differences = found.flatMap(({ counter, was, accounts, sum }) => {
    const spent = accounts.reduce((all, one) => all + unbookedIn(counter, one, rows.get(one.id)), sum.spent);
    counter.spent = spent;
    return spent === was ? [] : [{ ...toScopeWindow(counter), by: spent - was }];
  });
  return { differences, moved };
}

/** Whether a batch has left after the row was read, or nobody knows whether PostgreSQL has what the account has. */
function isMoved(counter: Counter, account: Account, row: AccountRow | undefined): boolean {
  const { unbooked, risk, left } = figuresIn(counter, account);
  const hasSpend = unbooked.length > 0 || risk !== 0n;
  if (row === undefined) return hasSpend || left > 0;
  return !row.isClosed && (left > row.booked || (account.isFinished && hasSpend));
}

/** Spend that the counter has of an account and PostgreSQL has not; negative: what only PostgreSQL has. */
function unbookedIn(counter: Counter, account: Account, row: AccountRow | undefined): Nano {
  if (row === undefined || account.isFinished) return 0n;
  const { unbooked, risk } = figuresIn(counter, account);
  if (row.isClosed) return row.isCharged ? -risk : 0n;
  return unbooked.reduce((all, { batch, spend }) => (batch > row.booked ? all + spend : all), 0n);
}
