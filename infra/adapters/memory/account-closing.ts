// Closing of accounts in memory, and the audit of their counters (LEDGER 3, 6).
import type { AccountFigures, AccountRow, Accounts, Marking } from '#core/ports/accounts.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { type Account, close, type Figures, figuresIn, figuresOf, find, type Life, setAside } from './account-state.ts';

/** Freezes an account: no call of its process is done from now on. */
export function mark(life: Life, id: string, how: Parameters<Accounts['mark']>[2], now: Millis): Marking {
  const account = life.accounts.get(id);
  if (account === undefined) close(life, id, false, now);
  if (account === undefined || account.isFinished) return { outcome: 'none', now };
  if (!how.isOwn && account.until > now) return { outcome: 'live', now };
  const figures = figuresOf(account);
  const absent = figures.filter((one) => find(life, one) === undefined);
  if (!how.isRebuild && absent.length > 0) return { outcome: 'absent', now, counters: absent.map(toScopeWindow) };
  if (!how.isOwn && !account.isMarked) for (const one of figures) freeIdle(life, one);
  account.isMarked = true;
  return { outcome: 'marked', now, number: account.number, figures: figures.map(toFrozen) };
}

/** Only what is at risk stays set aside. */
function freeIdle(life: Life, figures: Figures): void {
  if (figures.escrow > figures.risk) setAside(life, figures, figures.risk - figures.escrow);
}

const toScopeWindow = ({ scopeId, window }: ScopeWindow): ScopeWindow => ({ scopeId, window });

const toFrozen = ({ escrow, risk, unbooked, ...of }: Figures): AccountFigures => ({
  ...toScopeWindow(of),
  ...{ escrow, risk, unbooked: unbooked.map((one) => ({ ...one })) },
});

/** Sets what counters have spent to PostgreSQL's sums and what accounts have not booked. */
export function audit(life: Life, sums: ReadonlyArray<ScopeSpend>, rows: ReadonlyMap<string, AccountRow>) {
  const accounts = [...life.accounts.values()];
  const loaded = sums.flatMap((sum) => {
    const counter = find(life, sum);
    return counter === undefined ? [] : [{ counter, sum }];
  });
  const isMovedIn = (account: Account): boolean =>
    loaded.some(({ counter }) => isMoved(account, counter, rows.get(account.id)));
  const moved = accounts.filter(isMovedIn).map(({ id }) => id);
  if (moved.length > 0) return { differences: [], moved };
  const differences = loaded.flatMap(({ counter, sum }) => {
    const spent = accounts.reduce((all, account) => all + unbookedIn(account, counter, rows), sum.spent);
    const by = spent - counter.spent;
    counter.spent = spent;
    return by === 0n ? [] : [{ ...toScopeWindow(counter), by }];
  });
  return { differences, moved };
}

/** Whether a batch has left after the row was read, or what the account has is not known to be in PostgreSQL or not. */
function isMoved(account: Account, of: ScopeWindow, row: AccountRow | undefined): boolean {
  const { unbooked, risk, left } = figuresIn(account, of);
  const hasSpend = unbooked.length > 0 || risk !== 0n;
  if (row === undefined) return hasSpend || left > 0;
  return !row.isClosed && (left > row.booked || (account.isFinished && hasSpend));
}

/** Spend that the counter has of an account and PostgreSQL has not; negative: what only PostgreSQL has. */
function unbookedIn(account: Account, of: ScopeWindow, rows: ReadonlyMap<string, AccountRow>): bigint {
  const row = rows.get(account.id);
  if (row === undefined || account.isFinished) return 0n;
  const { unbooked, risk } = figuresIn(account, of);
  if (row.isClosed) return row.isCharged ? -risk : 0n;
  return unbooked.reduce((all, { batch, spend }) => (batch > row.booked ? all + spend : all), 0n);
}
