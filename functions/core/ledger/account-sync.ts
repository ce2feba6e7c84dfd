// Calls of the account, one at a time: when they are sent and repeated, and what their replies change (LEDGER 3).

import { reasonAndCausesOf } from '../failure/error-text.ts';
import { type AccountCall, type AccountReply, MAX_COUNTERS } from '../ports/counter-store.ts';
import type { Millis } from '../ports/money.ts';
import { markChanged, recordStoreCalls, STOPPED_REASON } from './account.ts';
import { applyDone, applyRefused, compose, type PendingCall } from './account-call.ts';
import type { AccountSync, LedgerContext } from './context.ts';
import { idleEscrow } from './counters.ts';
import { logFailure } from './failures.ts';
import { FIRST_PAUSE, nextPause } from './timeout.ts';

/**
 * While more requests than this are in flight, calls that a request waits for are sent at this interval, so that many
 * requests share a call. With fewer requests each call is sent immediately.
 */
const MAX_UNSHARED = 4;
const CALL_INTERVAL: Millis = 2;
/** The delay of a call that no request waits for. */
const REPORT_DELAY: Millis = 25;
/**
 * The interval of renewals of the lease: of an account in use, of an idle account, and of an account that serves a
 * single request.
 */
const RENEWAL: Millis = 1000;
const IDLE_RENEWAL: Millis = 2000;
const PER_REQUEST_RENEWAL: Millis = 5000;

const afterPromises = (callback: () => void): void => void Promise.resolve().then(callback);

export function createSync(context: LedgerContext): AccountSync {
  const {
    account,
    counterStore,
    intervalClock,
    wallClock,
    timer,
    tick = afterPromises,
    metrics,
    log,
    instanceUid: instance,
  } = context;
  let pending: PendingCall | undefined;
  let isSending = false;
  let isRenewal = false;
  /** The time of the next call, never before `notBefore`. */
  let due: Millis = Number.POSITIVE_INFINITY;
  let notBefore: Millis = Number.NEGATIVE_INFINITY;
  let pause = FIRST_PAUSE;
  let cancel = (): void => undefined;
  const flushing: PromiseWithResolvers<void>[] = [];

  const clear = (): void => {
    cancel();
    due = Number.POSITIVE_INFINITY;
  };
  const isReady = (): boolean => account.isOpen && !account.isStopped && !isSending;
  const sendWithin = (millis: Millis): void => {
    if (!isReady()) return;
    const now = intervalClock.now();
    const earliest = account.requests.reserved.length > MAX_UNSHARED ? account.sentAt + CALL_INTERVAL : now;
    const at = Math.max(now + millis, notBefore, earliest);
    if (at >= due) return;
    clear();
    due = at;
    if (at > now) cancel = timer(at - now, run);
    else tick(run);
  };
  const run = (): void => {
    if (!isReady()) return;
    clear();
    rejoinOnError(() => {
      pending ??= compose(account, context.waitQueue.requests, isRenewal);
      isRenewal = false;
      if (pending !== undefined) void send(pending);
    });
  };

  const send = async (sending: PendingCall): Promise<void> => {
    isSending = true;
    const reply = await callStore(sending.call, sending.storeCalls).catch(
      (cause) => ({ outcome: 'failed', cause }) as const,
    );
    // The account was left meanwhile, so its calls are void.
    if (pending !== sending) return;
    isSending = false;
    if (reply.outcome === 'failed') return onFailure(reply.cause);
    pending = undefined;
    pause = FIRST_PAUSE;
    rejoinOnError(() => {
      applyReply(sending, reply);
      next();
    });
  };
  const onFailure = (cause: unknown): void => {
    metrics.add('gateway_operator_ledger_store_failures_total');
    const why = reasonAndCausesOf(cause);
    if (account.storeFailure === '')
      log.warn('ledger: a call to the counter store failed, and is repeated', { instance, why });
    account.storeFailure = why;
    for (const { reject } of flushing.splice(0)) reject(cause);
    notBefore = intervalClock.now() + pause;
    pause = nextPause(pause);
    sendWithin(0);
  };
  /**
   * Joins with a new account after an error: composing a call and applying its reply change many figures, which an error
   * leaves wrong. A new account counts them again.
   */
  const rejoinOnError = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      logFailure(context, 'call', error);
      context.membership.rejoin('error');
    }
  };
  /** Sends one call. `knownStoreCalls`: as it was when this call was first sent. */
  const callStore = async (
    call: AccountCall,
    knownStoreCalls = account.knownStore.storeCalls,
  ): Promise<AccountReply> => {
    const [sentAt, sentAtWall] = [intervalClock.now(), wallClock.now()];
    metrics.add('gateway_operator_ledger_store_calls_total');
    const reply = await counterStore.call(call);
    account.lastReplyAt = intervalClock.now();
    if (account.storeFailure !== '') log.info('ledger: the counter store answers calls again', { instance });
    account.storeFailure = '';
    account.knownStore.clockOffset = Math.round(reply.now - (sentAt + account.lastReplyAt) / 2);
    if (account.id !== call.account || reply.outcome === 'epoch' || reply.outcome === 'stale') return reply;
    // A store that was restored from a snapshot shows fewer calls than before.
    if (reply.storeCalls <= knownStoreCalls)
      return { outcome: 'stale', why: 'wentBack', now: reply.now, storeCalls: reply.storeCalls };
    recordStoreCalls(account.knownStore, call.epoch, reply.storeCalls);
    Object.assign(account, { sentAt, sentAtWall });
    return reply;
  };

  const applyReply = (sent: PendingCall, reply: AccountReply): void => {
    if (reply.outcome === 'done') {
      applyDone(account, sent, reply);
      context.reservations.onReply(sent, reply);
      context.settlement.onReported();
      context.booking.scheduleBooking();
      context.endedAccounts.closeNamedIn(reply);
      return;
    }
    for (const waiter of sent.waiters) {
      waiter.isInCall = false;
      context.waitQueue.addToNextCall(waiter);
    }
    if (reply.outcome === 'epoch') context.membership.rejoin('epoch');
    else if (reply.outcome === 'stale') context.membership.rejoin(reply.why);
    else {
      applyRefused(account, sent);
      // The two clocks may disagree about the edge of a window for a moment.
      if (reply.outcome === 'window') notBefore = intervalClock.now() + CALL_INTERVAL;
      else context.loading.load(reply.absent.flatMap((index) => sent.counters[index] ?? []));
    }
  };
  /** Whether everything is reported, or the open batch is full. */
  const isReported = (): boolean =>
    account.requests.isReported() || (account.requests.room() <= 0 && account.requests.in('inCall').length === 0);
  const hasUnreported = (): boolean => account.requests.room() > 0 && account.requests.in('unreported').length > 0;
  /** Begins the work that came up while the call was pending. */
  const next = (): void => {
    if (isReported()) for (const { resolve } of flushing.splice(0)) resolve();
    const isLarge = account.changed.size > MAX_COUNTERS;
    if (context.waitQueue.hasRequests() || flushing.length > 0 || isLarge) sendWithin(0);
    else if (account.changed.size > 0 || account.rateChanges.size > 0 || hasUnreported()) sync.callSoon();
  };

  const sync: AccountSync = {
    callNow: () => sendWithin(0),
    callSoon(): void {
      // A ledger of one request reports when its request has ended.
      if (!context.isPerRequest) sendWithin(REPORT_DELAY);
    },
    refresh(): void {
      let isUsed = account.requests.reserved.length > 0;
      for (const counter of account.counters.all()) {
        if (counter.escrow > 0n) isUsed = true;
        if (idleEscrow(counter) > 0n) markChanged(account, counter);
      }
      const every = context.isPerRequest ? PER_REQUEST_RENEWAL : isUsed ? RENEWAL : IDLE_RENEWAL;
      if ((context.isPerRequest || account.changed.size === 0) && intervalClock.now() - account.sentAt < every) return;
      isRenewal = true;
      sendWithin(0);
    },
    /**
     * Reports everything that is unreported and fits into the open batch; throws if the store refuses it, or the ledger
     * has stopped.
     */
    async flush(): Promise<void> {
      if (isReported()) return;
      if (account.isStopped) throw new Error(STOPPED_REASON);
      const flushed = Promise.withResolvers<void>();
      flushing.push(flushed);
      sendWithin(0);
      await flushed.promise;
    },
    call: callStore,
    reset(): void {
      context.waitQueue.addAllToNextCall();
      pending = undefined;
      isSending = false;
      notBefore = Number.NEGATIVE_INFINITY;
      clear();
    },
    close(): void {
      clear();
      for (const { reject } of flushing.splice(0)) reject(new Error(STOPPED_REASON));
    },
  };
  return sync;
}
