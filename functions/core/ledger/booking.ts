// Bookings by numbered batches: charges are reported first, then booked. While one batch is booked, the next batch
// collects charges (LEDGER 8).

import type { Batch, BatchOutcome } from '../ports/ledger-database.ts';
import type { Millis } from '../ports/money.ts';
import { type Account, dropUnreported, STOPPED_REASON } from './account.ts';
import type { Booking, LedgerContext } from './context.ts';
import { createFailureLog } from './failures.ts';
import { addCorrections, dropPreviousAccounts } from './previous-accounts.ts';
import { toTransactions } from './requests.ts';
import { nextPause, pause } from './timeout.ts';

/** The time for which rows collect, so that rows of many ticks share a transaction. */
const GATHER: Millis = 100;
/** More unbooked requests than this, or older ones, mean that PostgreSQL is unreachable (LEDGER 6). */
const MAX_UNBOOKED = 100_000;
export const MAX_UNBOOKED_AGE: Millis = 30_000;

export function createBooking(context: LedgerContext): Booking {
  const { account, intervalClock, timer, metrics } = context;
  const bookings = createFailureLog(context, 'booking');
  let cancelGather: (() => void) | undefined;
  let running: Promise<void> | undefined;
  let wait = GATHER;
  /** Whether the open batch is to be sealed as soon as no call can add to it. */
  let isDue = false;

  const bookOne = async (): Promise<void> => {
    try {
      await bookSealed(context);
      bookings.succeeded();
      wait = GATHER;
    } catch (cause) {
      bookings.failed(cause);
      wait = nextPause(wait);
      throw new Error('booking ledger rows in PostgreSQL', { cause });
    } finally {
      running = undefined;
      setGauges();
      scheduleBooking();
    }
  };
  const run = async (): Promise<void> => {
    if (running === undefined && account.isOpen && seal(account)) {
      isDue = false;
      running = bookOne();
      // The new open batch has room for charges that waited for it.
      if (account.requests.in('unreported').length > 0) context.sync.callSoon();
    }
    await running;
  };
  const onDue = (): void => {
    cancelGather = undefined;
    isDue = true;
    // Failures are reported, and the batch is repeated.
    run().catch(() => undefined);
  };
  /**
   * A ledger for one request books its row and closes its account in one transaction, when its request has ended.
   */
  const scheduleBooking = (): void => {
    if (context.isPerRequest || cancelGather !== undefined || running !== undefined) return;
    if (
      account.isStopped ||
      !account.isOpen ||
      account.requests.in('openBatch').length + account.requests.in('sealedBatch').length === 0
    )
      return;
    // A batch that had to wait for a pending call is sealed after the reply.
    if (isDue) onDue();
    else cancelGather = timer(wait, onDue);
  };
  const setGauges = (): void => {
    if (account.isStopped) return;
    metrics.set('gateway_operator_ledger_unbooked', unbookedCount(account));
    metrics.set('gateway_operator_ledger_unbooked_age_seconds', unbookedAge(account, intervalClock.now()) / 1000);
  };

  return {
    scheduleBooking,
    setGauges,
    async flush(): Promise<void> {
      const rows = new Set(account.requests.unbooked().map(({ row }) => row));
      const isUnbooked = (): boolean => account.requests.unbooked().some(({ row }) => rows.has(row));
      while (isUnbooked()) {
        if (account.isStopped) throw new Error(STOPPED_REASON);
        await account.whenOpen.promise;
        await context.sync.flush();
        if (isUnbooked()) await run();
        // A pending call may add to the batch.
        if (running === undefined && isUnbooked()) await pause(timer, 1);
      }
    },
    close(): void {
      cancelGather?.();
      metrics.set('gateway_operator_ledger_unbooked', 0);
      metrics.set('gateway_operator_ledger_unbooked_age_seconds', 0);
    },
  };
}

/**
 * Seals the open batch, unless another batch is being booked, or the pending call may add to it: then its reply comes
 * first. After an opening, its rows may belong to several batches, in the order of `toTransactions`.
 */
function seal(account: Account): boolean {
  const { requests } = account;
  if (requests.in('sealedBatch').length > 0) return true;
  if (requests.in('openBatch').length === 0 || requests.in('inCall').length > 0) return false;
  const first = new Set(toTransactions(requests.in('openBatch').map(({ row }) => row))[0]);
  requests.move('openBatch', 'sealedBatch', ({ row }) => first.has(row));
  account.openBatchNumber += 1;
  return true;
}

async function bookSealed(context: LedgerContext): Promise<void> {
  const { account } = context;
  const { id, epoch, answeredCallNumber: callNumber } = account;
  const batch = account.openBatchNumber - 1;
  const rows = account.requests.in('sealedBatch').map(({ row }) => row);
  const outcome = await book(context, { epoch, account: { id, batch, callNumber }, rows });
  if (account.id !== id) return;
  if (outcome !== 'booked') return context.membership.rejoin(outcome === 'tooLate' ? 'accountClosed' : outcome);
  account.requests.move('sealedBatch', 'booked');
  account.bookedBatchNumber = batch;
  dropPreviousAccounts(context);
  context.sync.callSoon();
}

/**
 * Books all rows of a process that stops or waits without an account, or whose account another process has closed.
 * Previous accounts are closed first, without a charge, so that no other process charges what is booked here, not
 * even a process that has begun to close one of them and may be dead. Charges that were made before are corrected.
 */
export async function bookWithoutAccount(context: LedgerContext): Promise<void> {
  const { account, database, journal, ids } = context;
  const { epoch, previousAccounts, requests } = account;
  const last = { epoch, closesAccount: true, storeCalls: 0 };
  for (const id of previousAccounts.keys())
    await database.bookBatch({ ...last, account: { id, batch: 0, callNumber: 0 }, rows: [] });
  await addCorrections(context);
  // New accounts, each closed in its transaction: their epoch does not matter.
  for (const portion of toTransactions(requests.unbooked().map(({ row }) => row))) {
    const of = { id: ids.next(), batch: 1, callNumber: 0 };
    if (portion.length > 0) await book(context, { ...last, account: of, rows: portion });
    dropUnreported(account, new Set(portion));
  }
  journal.drop([...previousAccounts.keys()]);
  previousAccounts.clear();
}

/**
 * Books these rows; the journal drops their records. `storeCalls`: 0 if the rows were not reported to the current
 * store.
 */
export async function book(
  context: LedgerContext,
  batch: Omit<Batch, 'storeCalls'> & Partial<Pick<Batch, 'storeCalls'>>,
): Promise<BatchOutcome> {
  const { account, database, journal, metrics, log } = context;
  const { outcome, rejected } = await database.bookBatch({ storeCalls: account.knownStore.storeCalls, ...batch });
  if (outcome !== 'booked') return outcome;
  if (rejected.length > 0) {
    metrics.add('gateway_operator_ledger_rejected_total', {}, rejected.length);
    log.error('ledger: PostgreSQL refused ledger rows, which are in the table entry_rejected', { ids: rejected });
  }
  journal.drop(batch.rows.map(({ id }) => id));
  return outcome;
}

/** Whether so many requests are unbooked that new requests are refused. */
export const hasBacklog = ({ account, intervalClock }: LedgerContext): boolean =>
  unbookedCount(account) > MAX_UNBOOKED || unbookedAge(account, intervalClock.now()) > MAX_UNBOOKED_AGE;

export const unbookedCount = ({ requests }: Account): number => requests.unbookedCount();

function unbookedAge({ requests }: Account, now: Millis): Millis {
  const oldest = requests.oldest();
  return oldest === undefined ? 0 : Math.max(0, now - oldest.endedAt);
}
