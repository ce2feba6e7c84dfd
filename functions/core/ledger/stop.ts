// The clean end of an account: everything is told where the store answers, booked and closed together, then forgotten (LEDGER 6).

import type { AccountReply } from '../ports/accounts.ts';
import type { Millis } from '../ports/money.ts';
import { type Account, unbookedOf } from './account.ts';
import { type Booking, reportRejected } from './booking.ts';
import { takeUses, toCall } from './compose.ts';
import type { LedgerDependencies } from './deps.ts';
import type { Sync } from './sync.ts';
import { withTimeout } from './timeout.ts';

export interface StopDependencies extends LedgerDependencies {
  readonly account: Account;
  readonly sync: Sync;
  readonly booking: Booking;
}

/** The store has this long to take what is not told yet. */
const TELL: Millis = 1000;

/** Throws when PostgreSQL does not take the rest: the next start on the same outbox books it. Live holds keep the account open for that start. */
export async function stop(deps: StopDependencies): Promise<void> {
  const { account, sync, booking, books, outbox, timer } = deps;
  if (account.id === '' || account.number === 0) return;
  if (account.isOpen) await withTimeout(timer, TELL, 'the store', sync.flush()).catch(() => undefined);
  if (account.live.length > 0) return booking.flush();
  const isTold = account.untold.length === 0 && account.sent.length === 0;
  const entries = unbookedOf(account).map(({ entry }) => entry);
  const { id, epoch, batch, answered, store } = account;
  const own = { id, batch, number: answered };
  const { outcome, rejected } = await books.bookBatch({
    epoch,
    account: own,
    isLast: true,
    calls: store.calls,
    entries,
  });
  if (outcome !== 'booked') throw new Error('another process has closed the account');
  reportRejected(deps, rejected);
  outbox.done([...entries.map((entry) => entry.id), id]);
  if (!isTold || !account.isOpen) return;
  account.isOpen = false;
  // The store frees what the account has. One that is away keeps it until the lease ends; then it is forgotten without a charge.
  const last = { ...toCall(account), batch: account.batch + 1, booked: account.batch, isLast: true };
  await sync.ask({ ...last, uses: takeUses(account) }).catch((): AccountReply | undefined => undefined);
}
