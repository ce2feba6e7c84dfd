// Requests that wait for the store or for live reservations: one deadline each, one line per counter in order of
// arrival, one timer for all (LEDGER 3, 9).

import type { ReservationRefusal } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type Account, STOPPED } from './account.ts';
import type { LedgerContext, WaitQueue } from './context.ts';
import { type CounterState, idleEscrow, type WaitingRequest } from './counters.ts';

/** Requests are refused so much later while a rebuild is known. */
const REBUILD_EXTENSION: Millis = 900;
/** An answer within this time shows that the store lives. */
const ALIVE_WITHIN: Millis = 500;
/** The first requests of the lines ask again, since other processes' reservations end too. */
const RETRY_INTERVAL: Millis = 50;
/**
 * The minimum time between two looks at deadlines and lines; a look that comes later than this shows that the process
 * was paused.
 */
const MIN_INTERVAL: Millis = 10;
const PAUSE_THRESHOLD: Millis = 20;

export function createWaitQueue(context: LedgerContext): WaitQueue {
  const { account, clock, timer } = context;
  /** All requests that wait, in order of arrival; and those of them that have not been answered. */
  const waiters = new Set<WaitingRequest>();
  const asking = new Set<WaitingRequest>();
  let due = Number.POSITIVE_INFINITY;
  let wasPaused = false;
  let cancel = (): void => undefined;

  const remove = (waiter: WaitingRequest): void => {
    waiter.isOver = true;
    waiters.delete(waiter);
    asking.delete(waiter);
    leaveWaitQueue(waiter);
  };
  const leaveWaitQueue = (waiter: WaitingRequest): void => {
    waiter.busyIn?.waitQueue.delete(waiter);
    waiter.busyIn = undefined;
  };
  const refuse = (waiter: WaitingRequest, refusal: ReservationRefusal): void => {
    remove(waiter);
    waiter.onRefused(refusal);
  };

  const wakeBy = (at: Millis): void => {
    if (at >= due) return;
    cancel();
    due = at;
    cancel = timer(Math.max(0, at - clock.now()), wake);
  };
  const wake = (): void => {
    const now = clock.now();
    // A process that was paused finds its timers first: answers that have arrived are read before deadlines count.
    wasPaused = !wasPaused && now - due > PAUSE_THRESHOLD;
    due = Number.POSITIVE_INFINITY;
    // A later look is certain whatever fails in this one.
    if (waiters.size > 0) wakeBy(now + RETRY_INTERVAL);
    let next = now + RETRY_INTERVAL;
    if (!wasPaused)
      for (const waiter of waiters) {
        const deadline = account.isRebuilding ? waiter.deadline + REBUILD_EXTENSION : waiter.deadline;
        if (deadline > now) next = Math.min(next, deadline);
        else refuse(waiter, timeoutRefusal(account, waiter, now));
      }
    for (const { waitQueue, counter } of new Set([...waiters].flatMap(({ busyIn = [] }) => busyIn)))
      if (counter.window.end <= account.now()) for (const waiter of waitQueue) again(waiter);
      else wakeFront(waitQueue);
    if (asking.size > 0) context.sync.callNow();
    if (waiters.size > 0) wakeBy(Math.max(next, now + MIN_INTERVAL));
  };
  /** The request asks with the next call. */
  const again = (waiter: WaitingRequest): void => {
    if (!waiter.isOver && !waiter.isAsking) asking.add(waiter);
  };
  /**
   * Each request that wants less than all before it: money that is too little for it is too little for those behind it.
   */
  const wakeFront = (line: ReadonlySet<WaitingRequest>): void => {
    let min: Nano | undefined;
    for (const waiter of line) {
      if (min !== undefined && waiter.amount >= min) continue;
      min = waiter.amount;
      again(waiter);
    }
  };
  /** Those whom money that spend and escrow leave suffices for, with what is idle here, ask. */
  const wakeAffordable = (counter: CounterState): void => {
    const { limit = 0n, spend, reserved, waitQueue } = counter;
    let left = limit - (spend.reported ?? 0n) - reserved + idleEscrow(counter);
    for (const waiter of waitQueue) {
      left -= waiter.amount;
      if (left < 0n) break;
      again(waiter);
    }
  };
  /** Whether it comes behind others that want no more, and waits with them. */
  const joinsWaitQueue = (waiter: WaitingRequest): boolean => {
    const { counters } = waiter.charges;
    if (waiter.busyIn !== undefined && !counters.includes(waiter.busyIn)) leaveWaitQueue(waiter);
    const full =
      waiter.busyIn === undefined && counters.find(({ waitQueue }) => hasSmallerRequest(waitQueue, waiter.amount));
    if (full) queue(waiter, full);
    return Boolean(full);
  };
  const refuseAll = (): void => {
    for (const waiter of [...waiters]) refuse(waiter, { reason: 'unavailable', why: STOPPED });
  };
  /** The request waits for reservations in this counter. */
  const queue = (waiter: WaitingRequest, counter: CounterState): void => {
    if (waiter.busyIn === counter) return;
    leaveWaitQueue(waiter);
    waiter.busyIn = counter;
    counter.waitQueue.add(waiter);
  };

  return {
    waitIn: queue,
    askAgain: again,
    remove,
    refuse,
    wakeFront,
    wakeAffordable,
    add(request): void {
      if (account.isOver) {
        request.onRefused({ reason: 'unavailable', why: STOPPED });
        return;
      }
      const waiter = { ...request, rateView: {}, busyIn: undefined, isAsking: false, isOver: false };
      waiters.add(waiter);
      wakeBy(Math.min(waiter.deadline, clock.now() + RETRY_INTERVAL));
      asking.add(waiter);
      context.sync.callNow();
    },
    /** Requests for the next call, in order of arrival. Each is taken out when the call takes it. */
    *requests(): Iterable<WaitingRequest> {
      for (const waiter of asking) {
        if (!waiter.isGrowth) renew(account, waiter);
        const isBehind = !waiter.isGrowth && joinsWaitQueue(waiter);
        if (!isBehind) yield waiter;
        if (isBehind || waiter.isAsking) asking.delete(waiter);
      }
    },
    /** No call is under way any more: all who wait ask again. */
    askAll(): void {
      for (const waiter of waiters) {
        waiter.isAsking = false;
        again(waiter);
      }
    },
    refuseAll,
    hasRequests: () => asking.size > 0,
    close(): void {
      cancel();
      refuseAll();
    },
  };
}

/**
 * Windows and limits as of now. Counters that are new, since a window has begun, have the limits that were known last
 * in the previous one; where our clock is set back, the lower ones.
 */
export function renew(account: Account, waiter: WaitingRequest): void {
  const before = waiter.charges.counters;
  waiter.charges = account.counters.charges(waiter.charges.scopes, account.now());
  for (const [at, state] of waiter.charges.counters.entries()) {
    const { limit, counter } = before[at] ?? state;
    const isBack = counter.window.start > state.counter.window.start;
    if (state.limit === undefined || (isBack && limit !== undefined && limit < state.limit)) state.limit = limit;
  }
}

/** Whether a request in this line wants no more than this. */
function hasSmallerRequest(line: ReadonlySet<WaitingRequest>, amount: Nano): boolean {
  for (const waiter of line) if (waiter.amount <= amount) return true;
  return false;
}

/** The reason for a refusal at the deadline: holds, where the store has said so lately, else silence. */
function timeoutRefusal(
  account: Account,
  { busyIn, charges, rateView }: WaitingRequest,
  now: Millis,
): ReservationRefusal {
  const scope = busyIn === undefined ? undefined : charges.scopes[charges.counters.indexOf(busyIn)];
  if (scope !== undefined && now - account.lastReplyAt <= ALIVE_WITHIN) return { reason: 'busy', scope, ...rateView };
  const { isOpen, closedReason, storeFailure } = account;
  if (isOpen && storeFailure !== '') return { reason: 'unavailable', why: `the store fails: ${storeFailure}` };
  const late = 'store or database did not answer in time';
  return { reason: 'unavailable', why: isOpen ? late : `${late}: ${closedReason}` };
}
