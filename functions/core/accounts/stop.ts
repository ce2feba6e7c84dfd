// The clean end of an account: everything is told where the store answers, booked and closed together, then forgotten (LEDGER 6).

import { withTimeout } from '../ledger/timeout.ts';
import type { AccountCall, AccountReply } from '../ports/accounts.ts';
import type { Millis } from '../ports/money.ts';
import { type Account, unbookedOf } from './account.ts';
import { type Booking, reportRejected } from './booking.ts';
import { toCall } from './compose.ts';
import type { LedgerDependencies } from './deps.ts';
import type { Sync } from './sync.ts';

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
  if (account.live.size > 0) return booking.flush();
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
  // A store that is away keeps the account until its lease ends; then it is forgotten without a charge.
  await sync.ask(lastCall(account)).catch((): AccountReply | undefined => undefined);
}

function lastCall(account: Account): AccountCall {
  const lines = [...account.counters.all()]
    .filter(({ escrow, toldRisk }) => escrow > 0n || toldRisk > 0n)
    .map(({ counter, limit, escrow }) => ({
      ...{ scopeId: counter.scopeId, window: counter.window, limit, spend: 0n, risk: 0n },
      ...{ returned: escrow > 0n ? escrow : 0n, registered: 0n, ahead: 0n },
    }));
  return {
    ...{ ...toCall(account), batch: account.batch + 1, booked: account.batch, lines },
    ...{ uses: [...account.uses.values()], isLast: true },
  };
}
