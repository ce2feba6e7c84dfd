// Maintenance of an instance's ledger by a sweep, with or without a running gateway: accounts that have ended are closed, then counters audited (LEDGER 3, 6).

import type { Clock } from '../ports/clock.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { auditAll } from './audit.ts';
import { closeEnded } from './closing.ts';
import type { StoreContext } from './context.ts';
import { inTime, pause } from './timeout.ts';

/** Settlements are told within one tick and booked within a few. */
const BOOKED_WITHIN: Millis = 1000;
const LOOK_AGAIN: Millis = 25;
const MAX_CLOSED = 1000;

/** Throws when store or PostgreSQL are away. */
export async function maintain(context: StoreContext, epoch: number): Promise<void> {
  const ended = await context.accounts.accounts(true, MAX_CLOSED);
  for (const { account } of ended) await closeEnded(context, epoch, account);
  await whenBooked(context);
  await auditAll(context, epoch);
}

/** Does nothing for a store that is new or being rebuilt: the next gateway rebuilds it. */
export async function maintainAlone(
  deps: Omit<StoreContext, 'now' | 'store'> & { readonly epochs: Epochs; readonly clock: Clock },
): Promise<void> {
  const { timer, clock } = deps;
  const [accounts, books] = [inTime(timer, 'the store', deps.accounts), inTime(timer, 'PostgreSQL', deps.books)];
  const { epoch, isOpen, calls } = await inTime(timer, 'PostgreSQL', deps.epochs).state();
  if (!isOpen) return;
  // An empty audit tells the store's clock.
  const told = await accounts.audit(epoch, [], new Map(), Number.MAX_SAFE_INTEGER);
  if (told.outcome === 'epoch') return;
  const ahead = told.now - clock.now();
  await maintain({ ...deps, accounts, books, store: { epoch, calls }, now: () => clock.now() + ahead }, epoch);
}

/** Waits until processes have booked what they have told: sums are read after a sweep. Their processes do it; one that died is closed by its lease. */
async function whenBooked({ accounts, books, timer, now }: StoreContext): Promise<void> {
  const until = now() + BOOKED_WITHIN;
  const known = await accounts.accounts(false, MAX_CLOSED);
  const told = known.filter(({ unbooked }) => unbooked > 0);
  while (told.length > 0 && now() < until) {
    const rows = await books.rows(told.map(({ account }) => account));
    const isBooked = told.every(({ account, unbooked }) => {
      const row = rows.get(account);
      return row !== undefined && (row.isClosed || row.booked >= unbooked);
    });
    if (isBooked) return;
    await pause(timer, LOOK_AGAIN);
  }
}
