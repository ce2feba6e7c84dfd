// Bookings by numbered batches: told first, then booked; one is under way while the next collects (LEDGER 8).

import type { Batch, BatchOutcome } from '../ports/ledger-database.ts';
import type { Millis } from '../ports/money.ts';
import { type Account, STOPPED, unbookedOf } from './account.ts';
import type { Context } from './context.ts';
import { createRepeated } from './failures.ts';
import { forgetEarlier } from './previous-accounts.ts';
import { longer, pause } from './timeout.ts';

/** Entries of many ticks share a transaction. */
const GATHER: Millis = 100;
/** Unbooked entries beyond this, or older, mean that PostgreSQL is away (LEDGER 6). */
const MAX_UNBOOKED = 100_000;
export const MAX_UNBOOKED_AGE: Millis = 30_000;

export type Booking = ReturnType<typeof createBooking>;

/** `tell` tells everything that is not told. */
export function createBooking(context: Context, tell: () => Promise<void>) {
  const { account, clock, timer, metrics } = context;
  const bookings = createRepeated(context, 'booking');
  let cancelGather: (() => void) | undefined;
  let running: Promise<void> | undefined;
  let wait = GATHER;
  /** The batch that collects is to be sealed as soon as no call may add to it. */
  let isDue = false;

  const bookOne = async (): Promise<void> => {
    try {
      await bookSealed(context);
      bookings.succeeded();
      wait = GATHER;
    } catch (cause) {
      bookings.failed(cause);
      wait = longer(wait);
      throw new Error('booking entries in PostgreSQL', { cause });
    } finally {
      running = undefined;
      report();
      gather();
    }
  };
  const run = async (): Promise<void> => {
    if (running === undefined && account.isOpen && seal(account)) {
      isDue = false;
      running = bookOne();
    }
    await running;
  };
  const due = (): void => {
    cancelGather = undefined;
    isDue = true;
    // Failures are reported, and the batch is repeated.
    run().catch(() => undefined);
  };
  /** Entries were told: they are booked within about 100 ms. A visit books and closes its account together, when its request has ended. */
  const gather = (): void => {
    if (context.isolate !== undefined || cancelGather !== undefined || running !== undefined) return;
    if (account.isOver || !account.isOpen || account.collecting.length + account.sealed.length === 0) return;
    // A batch that met a pending call is sealed with its answer.
    if (isDue) due();
    else cancelGather = timer(wait, due);
  };
  const report = (): void => {
    if (account.isOver) return;
    metrics.set('gateway_operator_ledger_unbooked', sizeOf(account));
    metrics.set('gateway_operator_ledger_unbooked_age_seconds', ageOf(account, clock.now()) / 1000);
  };

  return {
    ...{ gather, report },
    /** Tells and books everything that has ended so far; throws when store or PostgreSQL do not take it, or the ledger has stopped. */
    async flush(): Promise<void> {
      const owed = new Set(unbookedOf(account).map(({ entry }) => entry));
      const isOwed = (): boolean => unbookedOf(account).some(({ entry }) => owed.has(entry));
      while (isOwed()) {
        if (account.isOver) throw new Error(STOPPED);
        await account.opened.promise;
        await tell();
        if (isOwed()) await run();
        // A call is under way that may add to the batch.
        if (running === undefined && isOwed()) await pause(timer, 1);
      }
    },
    /** Entries that are left belong to the next start. */
    close(): void {
      cancelGather?.();
      metrics.set('gateway_operator_ledger_unbooked', 0);
      metrics.set('gateway_operator_ledger_unbooked_age_seconds', 0);
    },
  };
}

/** Seals the batch that collects, unless one is under way or the pending call may add to it; then its answer comes first. */
function seal(account: Account): boolean {
  if (account.sealed.length > 0) return true;
  if (account.collecting.length === 0 || account.sent.length > 0) return false;
  account.sealed = account.collecting;
  account.collecting = [];
  account.batch += 1;
  return true;
}

async function bookSealed(context: Context): Promise<void> {
  const { account } = context;
  const { id, epoch, answered: number } = account;
  const batch = account.batch - 1;
  const entries = account.sealed.map(({ entry }) => entry);
  const outcome = await book(context, { epoch, account: { id, batch, number }, entries });
  if (account.id !== id) return;
  if (outcome !== 'booked') return context.leave(outcome);
  Object.assign(account, { sealed: [], booked: batch });
  forgetEarlier(context);
  context.news();
}

/** Books these entries; the outbox forgets them. */
export async function book(context: Context, batch: Omit<Batch, 'calls'>): Promise<BatchOutcome> {
  const { account, books, outbox, metrics, log } = context;
  const { outcome, rejected } = await books.bookBatch({ ...batch, calls: account.store.calls });
  if (outcome !== 'booked') return outcome;
  if (rejected.length > 0) {
    metrics.add('gateway_operator_ledger_rejected_total', {}, rejected.length);
    log.error('PostgreSQL rejected entries; they are in entry_rejected', { ids: rejected });
  }
  outbox.done(batch.entries.map(({ id }) => id));
  return outcome;
}

/** Whether new requests are refused. */
export const isOverLimit = ({ account, clock }: Context): boolean =>
  sizeOf(account) > MAX_UNBOOKED || ageOf(account, clock.now()) > MAX_UNBOOKED_AGE;

export const sizeOf = ({ untold, sent, collecting, sealed }: Account): number =>
  untold.length + sent.length + collecting.length + sealed.length;

function ageOf({ untold, sent, collecting, sealed }: Account, now: Millis): Millis {
  const oldest = sealed[0] ?? collecting[0] ?? sent[0] ?? untold[0];
  return oldest === undefined ? 0 : Math.max(0, now - oldest.since);
}
