// Requests that wait for the store or for live reservations: a deadline for each, a queue per counter in order of
// arrival, a timer for all (LEDGER 3, 9).

import type { ReservationRefusal } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type Account, STOPPED } from './account.ts';
import type { LedgerContext, WaitQueue } from './context.ts';
import { type CounterState, idleEscrow, type WaitingRequest } from './counters.ts';

/** Deadlines are this much later while a rebuild of the store is known. */
const REBUILD_EXTENSION: Millis = 900;
/** A reply within this time shows that the store is reachable. */
const ALIVE_WITHIN: Millis = 500;
/** The interval at which the first requests of the queues call again, since reservations of other processes end too. */
const RETRY_INTERVAL: Millis = 50;
/**
 * The minimum time between two looks at deadlines and queues; a look that is this late shows that the process was
 * paused.
 */
const MIN_INTERVAL: Millis = 10;
const PAUSE_THRESHOLD: Millis = 20;

export function createWaitQueue(context: LedgerContext): WaitQueue {
  const { account, clock, timer } = context;
  /** All waiting requests, in order of arrival; and those that the next call contains. */
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

  const lookBy = (at: Millis): void => {
    if (at >= due) return;
    cancel();
    due = at;
    cancel = timer(Math.max(0, at - clock.now()), look);
  };
  const look = (): void => {
    const now = clock.now();
    // A process that was paused handles its timers first: replies that have arrived are read before deadlines count.
    wasPaused = !wasPaused && now - due > PAUSE_THRESHOLD;
    due = Number.POSITIVE_INFINITY;
    // A later look is certain whatever fails in this one.
    if (waiters.size > 0) lookBy(now + RETRY_INTERVAL);
    let next = now + RETRY_INTERVAL;
    if (!wasPaused)
      for (const waiter of waiters) {
        const deadline = account.isRebuilding ? waiter.deadline + REBUILD_EXTENSION : waiter.deadline;
        if (deadline > now) next = Math.min(next, deadline);
        else refuse(waiter, timeoutRefusal(account, waiter, now));
      }
    for (const { waitQueue, counter } of new Set([...waiters].flatMap(({ busyIn = [] }) => busyIn)))
      if (counter.window.end <= account.now()) for (const waiter of waitQueue) askAgain(waiter);
      else wakeFront(waitQueue);
    if (asking.size > 0) context.sync.callNow();
    if (waiters.size > 0) lookBy(Math.max(next, now + MIN_INTERVAL));
  };
  /** The next call contains the request. */
  const askAgain = (waiter: WaitingRequest): void => {
    if (!waiter.isOver && !waiter.isAsking) asking.add(waiter);
  };
  /**
   * Wakes each request that wants less than all requests before it: money that is too little for a request is too
   * little for all behind it that want as much.
   */
  const wakeFront = (queue: ReadonlySet<WaitingRequest>): void => {
    let min: Nano | undefined;
    for (const waiter of queue) {
      if (min !== undefined && waiter.amount >= min) continue;
      min = waiter.amount;
      askAgain(waiter);
    }
  };
  /** Wakes the requests for which the money that spend and escrow leave, with the idle escrow here, is enough. */
  const wakeAffordable = (counter: CounterState): void => {
    const { limit = 0n, spend, reserved, waitQueue } = counter;
    let left = limit - (spend.reported ?? 0n) - reserved + idleEscrow(counter);
    for (const waiter of waitQueue) {
      left -= waiter.amount;
      if (left < 0n) break;
      askAgain(waiter);
    }
  };
  /** Whether the request is behind others that want no more, and so waits with them. */
  const joinsWaitQueue = (waiter: WaitingRequest): boolean => {
    const { counters } = waiter.charges;
    if (waiter.busyIn !== undefined && !counters.includes(waiter.busyIn)) leaveWaitQueue(waiter);
    const full =
      waiter.busyIn === undefined && counters.find(({ waitQueue }) => hasSmallerRequest(waitQueue, waiter.amount));
    if (full) waitIn(waiter, full);
    return Boolean(full);
  };
  const refuseAll = (): void => {
    for (const waiter of [...waiters]) refuse(waiter, { reason: 'unavailable', why: STOPPED });
  };
  /** The request waits until reservations in this counter end. */
  const waitIn = (waiter: WaitingRequest, counter: CounterState): void => {
    if (waiter.busyIn === counter) return;
    leaveWaitQueue(waiter);
    waiter.busyIn = counter;
    counter.waitQueue.add(waiter);
  };

  return {
    waitIn,
    askAgain,
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
      lookBy(Math.min(waiter.deadline, clock.now() + RETRY_INTERVAL));
      asking.add(waiter);
      context.sync.callNow();
    },
    /** Requests for the next call, in order of arrival. A request is removed when the call contains it. */
    *requests(): Iterable<WaitingRequest> {
      for (const waiter of asking) {
        if (!waiter.isGrowth) renew(account, waiter);
        const isBehind = !waiter.isGrowth && joinsWaitQueue(waiter);
        if (!isBehind) yield waiter;
        if (isBehind || waiter.isAsking) asking.delete(waiter);
      }
    },
    /** No call is pending any longer: the next call contains all waiting requests. */
    askAll(): void {
      for (const waiter of waiters) {
        waiter.isAsking = false;
        askAgain(waiter);
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
 * Sets windows and limits as of now. Counters of a new window have the last limits of the previous window; if the clock
 * was set back, the lower limits.
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

/** Whether a request in this queue wants no more than this amount. */
function hasSmallerRequest(queue: ReadonlySet<WaitingRequest>, amount: Nano): boolean {
  for (const waiter of queue) if (waiter.amount <= amount) return true;
  return false;
}

/**
 * The reason for a refusal at the deadline: reservations in flight if the store has replied lately, else the missing
 * reply.
 */
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
