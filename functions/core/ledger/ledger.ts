// The ledger of a gateway: money is reserved before a request and charged after it, in an account of its process
// (LEDGER).

import { withTimeout } from '../concurrency/timeout.ts';
import { reasonAndCausesOf } from '../failure/error-text.ts';
import type { AccountCall } from '../ports/counter-store.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import { createAccount, createKnownStore, STOPPED_REASON } from './account.ts';
import { beginCall, takeRateChanges } from './account-call.ts';
import { createEndedAccounts, finishAccount } from './account-closing.ts';
import { createSync } from './account-sync.ts';
import { beginAlertMetrics } from './alert-metrics.ts';
import { book, bookWithoutAccount, createBooking, unbookedCount } from './booking.ts';
import type { LedgerContext, LedgerDependencies } from './context.ts';
import { createKnownSpend, createLoading, createSpend } from './counter-loading.ts';
import { guardTimer, logFailure } from './failures.ts';
import { withLoggedErrors } from './journal-records.ts';
import { maintain } from './maintenance.ts';
import { createMembership } from './membership.ts';
import { createMoveToModelEntry } from './rates.ts';
import { toTransactions } from './requests.ts';
import { createGrow } from './reservation-growth.ts';
import { createReservations } from './reservations.ts';
import { createSettlements } from './settlement.ts';
import { FIRST_PAUSE, IDLE_TIMEOUT, nextPause, pause } from './timeout.ts';
import { createWaitQueue } from './wait-queue.ts';

/** The time limit of a flush and of a stop. */
const GRACE: Millis = 5000;
/** The time limit of the charge of live requests, in case the store does not answer (LEDGER 3). */
const CHARGE_TIMEOUT: Millis = 2500;
/**
 * The time limit of the stop of a ledger for one request. Nothing waits for this stop, and a request that is not booked
 * in time is charged when another process closes the account.
 */
const PER_REQUEST_GRACE: Millis = 15_000;
/** The time limit of the last report to the store. */
const REPORT_TIMEOUT: Millis = 1000;
/** The period of the work that is done every quarter of a second, every second or every two seconds. */
const PERIOD: Millis = 250;
const PERIODS_PER_SECOND = 4;

export interface StartableLedger extends Ledger {
  /**
   * Closes the accounts of an earlier process and reports the rows of its journal, which the next batch books. Requests
   * wait within their deadlines; on failure `start` may be called again.
   */
  start(): Promise<void>;
  /**
   * Charges the live requests as those of a process that died: for a process that ends, before `close`. Takes at most
   * 2.5 s.
   */
  chargeLive(): Promise<void>;
  /** Books within this time as much as possible, then ends within 2 s more, whatever the store and the database do. */
  close(within?: Millis): Promise<void>;
  /** Closes accounts that have ended, of all processes, then audits every counter. Called by a resync. */
  maintain(): Promise<void>;
}

export function createLedger(deps: LedgerDependencies): StartableLedger {
  const context = createParts(deps);
  const { account, timer, booking, settlement } = context;
  const endPeriodicWork = startPeriodicWork(context);
  return {
    start: context.membership.start,
    reserve: context.reservations.reserve,
    moveToModelEntry: createMoveToModelEntry(context),
    grow: createGrow(context),
    spend: createSpend(context),
    knownSpend: createKnownSpend(context),
    trackStream: settlement.trackStream,
    settle: settlement.settle,
    release: settlement.release,
    flush: () => withTimeout(timer, GRACE, 'counter store or database', booking.flush()),
    chargeLive: () => withTimeout(timer, CHARGE_TIMEOUT, 'counter store or database', settlement.chargeLive()),
    async maintain() {
      if (!account.isOpen) throw new Error('the counter store is being rebuilt');
      await maintain(context, account.epoch);
    },
    async close(within = deps.knownStoreOfIsolate === undefined ? GRACE : PER_REQUEST_GRACE) {
      if (account.isStopping) return;
      account.isStopping = true;
      // No request may be admitted after the account has ended.
      context.waitQueue.refuseAll();
      await withTimeout(timer, within, 'counter store or database', stop(context)).catch((error) =>
        logUnfinishedStop(context, error),
      );
      endPeriodicWork();
      await closeParts(context);
    },
  };
}

function createParts(deps: LedgerDependencies): LedgerContext {
  const { clock: wallClock, intervalClock = wallClock, processName = deps.ids.next() } = deps;
  beginAlertMetrics(deps.metrics);
  // Until the first reply, the wall clock is taken for the store's clock.
  const account = createAccount(
    intervalClock,
    deps.knownStoreOfIsolate ?? createKnownStore(wallClock.now() - intervalClock.now()),
  );
  const context: LedgerContext = {
    ...deps,
    intervalClock,
    wallClock,
    timer: guardTimer(deps, deps.timer),
    processName,
    journal: withLoggedErrors(deps, deps.journal),
    account,
    knownStore: account.knownStore,
    isPerRequest: deps.knownStoreOfIsolate !== undefined,
    now: account.now,
    isStopped: () => account.isStopped,
    get waitQueue() {
      return waitQueue;
    },
    get sync() {
      return sync;
    },
    get loading() {
      return loading;
    },
    get reservations() {
      return reservations;
    },
    get settlement() {
      return settlement;
    },
    get booking() {
      return booking;
    },
    get membership() {
      return membership;
    },
    get endedAccounts() {
      return endedAccounts;
    },
  };
  const waitQueue = createWaitQueue(context);
  const sync = createSync(context);
  const loading = createLoading(context);
  const reservations = createReservations(context);
  const settlement = createSettlements(context);
  const booking = createBooking(context);
  const membership = createMembership(context);
  const endedAccounts = createEndedAccounts(context);
  return context;
}

/** Starts the work that is done periodically. Returns a function that ends it. */
function startPeriodicWork({ timer, account, sync, settlement, membership, booking }: LedgerContext): () => void {
  let periods = 0;
  // The next run is certain whatever fails in this run, and the lease is renewed first.
  const work = (): void => {
    cancel = timer(PERIOD, work);
    periods += 1;
    sync.refresh();
    if (periods % PERIODS_PER_SECOND === 0) {
      settlement.checkLive();
      account.counters.beginSecond();
    }
    if (periods % (2 * PERIODS_PER_SECOND) === 0) membership.sendHeartbeat();
    booking.setGauges();
  };
  let cancel = timer(PERIOD, work);
  return () => cancel();
}

async function closeParts(context: LedgerContext): Promise<void> {
  const { account, timer, sync, booking, waitQueue, membership, endedAccounts } = context;
  account.isStopped = true;
  for (const part of [sync, booking, waitQueue]) part.close();
  account.whenOpen.promise.catch(() => undefined);
  account.whenOpen.reject(new Error(STOPPED_REASON));
  const closed = withTimeout(timer, IDLE_TIMEOUT, 'counter store or database', endedAccounts.stop());
  await Promise.all([closed.catch((error) => logFailure(context, 'stop', error)), membership.close()]);
}

/**
 * Ends the account: all is reported and booked, then PostgreSQL closes the account and the store finishes it (LEDGER
 * 6). Live reservations, and rows that PostgreSQL does not take, are left to the next start. A process without an
 * account still books its rows.
 */
async function stop(context: LedgerContext): Promise<void> {
  const { account, timer, sync, booking } = context;
  // Reservations that are being settled count as live until their records are on disk.
  await Promise.allSettled(account.requests.reserved.map(({ ending }) => ending));
  await context.membership.whenJoined();
  if (account.id === '' || account.callNumber === 0) return untilBooked(context, () => bookWithoutAccount(context));
  const warn = (error: unknown): void => logFailure(context, 'stop', error);
  if (account.isOpen) await withTimeout(timer, REPORT_TIMEOUT, 'the counter store', sync.flush()).catch(warn);
  if (account.isOpen && account.requests.reserved.length > 0) return booking.flush();
  // More than one transaction is reported and booked batch by batch, and the last one closes the account.
  const isLarge = toTransactions(account.requests.unbooked().map(({ row }) => row)).length > 1;
  if (account.isOpen && isLarge) await booking.flush().catch(warn);
  await untilBooked(context, () => closeOwnAccount(context));
}

/** Logs the failure of a stop. If all requests are booked, only the account is left in the store. */
function logUnfinishedStop(context: LedgerContext, error: unknown): void {
  const unbooked = unbookedCount(context.account);
  if (unbooked === 0) logFailure(context, 'stop', error);
  else
    context.log.warn(
      'ledger: stopped with unbooked requests; a start on the same disk books them, else another process charges them',
      { unbooked, why: reasonAndCausesOf(error) },
    );
}

/** Repeats a booking that PostgreSQL refuses, until the grace period is over. */
async function untilBooked(context: LedgerContext, book: () => Promise<void>): Promise<void> {
  const { account, timer } = context;
  for (let wait = FIRST_PAUSE; ; wait = nextPause(wait)) {
    try {
      return await book();
    } catch (error) {
      await pause(timer, wait);
      if (account.isStopped) throw error;
      logFailure(context, 'stop', error);
    }
  }
}

async function closeOwnAccount(context: LedgerContext): Promise<void> {
  const { account, journal, ids } = context;
  const isReported = account.requests.isReported();
  const [rows = [], ...others] = toTransactions(account.requests.unbooked().map(({ row }) => row));
  const { id, epoch, openBatchNumber: batch, answeredCallNumber: callNumber } = account;
  const outcome = await book(context, { epoch, account: { id, batch, callNumber }, closesAccount: true, rows });
  if (outcome !== 'booked') {
    // Another process has closed the account, and may have charged it.
    account.previousAccounts.set(id, undefined);
    return bookWithoutAccount(context);
  }
  // The store is unreachable: what was not reported is booked under accounts of its own, after the closing of this
  // account, so that no process charges it too.
  for (const each of others) {
    // The grace period is over: the next start books the rest.
    if (account.isStopped) throw new Error(STOPPED_REASON);
    const other = { id: ids.next(), batch: 1, callNumber: 0 };
    await book(context, { epoch, account: other, closesAccount: true, storeCalls: 0, rows: each });
  }
  journal.drop([id]);
  if (!isReported || !account.isOpen) return;
  account.isOpen = false;
  // The store frees the escrow of the account. An unreachable store keeps the account until its lease ends; then
  // another process finishes the account without a charge.
  const lastCall = {
    ...beginCall(account),
    batch: batch + 1,
    bookedBatch: batch,
    finishesAccount: true,
    rateChanges: takeRateChanges(account),
  };
  await finish(context, id, lastCall).catch((error) => logFailure(context, 'stop', error));
}

/** The account of a ledger for one request has one page of figures: its last call finishes the account. */
async function finish(context: LedgerContext, account: string, lastCall: AccountCall): Promise<void> {
  await context.sync.call(lastCall);
  if (!context.isPerRequest) await finishAccount(context, { epoch: lastCall.epoch, account, isCharged: false });
}
