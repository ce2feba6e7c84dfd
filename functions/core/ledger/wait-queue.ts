// Requests that wait for the store or for live reservations. Each has a deadline; each counter has a queue in order of
// arrival; one timer serves all (LEDGER 3, 9).

import type { ReservationRefusal } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type Account, STOPPED_REASON } from './account.ts';
import type { LedgerContext, WaitQueue } from './context.ts';
import { type CounterState, idleEscrow, type WaitingRequest } from './counters.ts';
import { createNextRequests } from './next-requests.ts';

/** Deadlines are this much later while a rebuild of the store is known. */
const REBUILD_EXTENSION: Millis = 900;
/** A reply within this time shows that the store is reachable. */
const ALIVE_WITHIN: Millis = 500;
/** The interval at which the first requests of the queues call again, since reservations of other processes end too. */
const RETRY_INTERVAL: Millis = 50;
/** The minimum time between two checks of deadlines and queues. */
const MIN_INTERVAL: Millis = 10;
/** A check that is this late shows that the process was paused. */
const PAUSE_THRESHOLD: Millis = 20;

export function createWaitQueue(context: LedgerContext): WaitQueue {
  const { account, intervalClock, timer } = context;
  /** All waiting requests, in order of arrival; and the requests for the next call. */
  const waiters = new Set<WaitingRequest>();
  const nextCall = createNextRequests();
  let due = Number.POSITIVE_INFINITY;
  let wasPaused = false;
  let cancel = (): void => undefined;

  const remove = (waiter: WaitingRequest): void => {
    waiter.hasEnded = true;
    waiters.delete(waiter);
    nextCall.delete(waiter);
    leaveWaitQueue(waiter);
  };
  const leaveWaitQueue = (waiter: WaitingRequest): void => {
    waiter.queuedIn?.waitingRequests.delete(waiter);
    waiter.queuedIn = undefined;
  };
  const refuse = (waiter: WaitingRequest, refusal: ReservationRefusal): void => {
    remove(waiter);
    waiter.onRefused(refusal);
  };

  const checkBy = (at: Millis): void => {
    if (at >= due) return;
    cancel();
    due = at;
    cancel = timer(Math.max(0, at - intervalClock.now()), check);
  };
  const check = (): void => {
    const now = intervalClock.now();
    // A process that was paused handles its timers first: replies that have arrived are read before deadlines count.
    wasPaused = !wasPaused && now - due > PAUSE_THRESHOLD;
    due = Number.POSITIVE_INFINITY;
    // The next check is certain, whatever fails in this check.
    if (waiters.size > 0) checkBy(now + RETRY_INTERVAL);
    let next = now + RETRY_INTERVAL;
    if (!wasPaused)
      for (const waiter of waiters) {
        const deadline = account.isRebuilding ? waiter.deadline + REBUILD_EXTENSION : waiter.deadline;
        if (deadline > now) next = Math.min(next, deadline);
        else refuse(waiter, timeoutRefusal(account, waiter, now));
      }
    for (const { waitingRequests, scopeWindow } of new Set([...waiters].flatMap(({ queuedIn = [] }) => queuedIn)))
      if (scopeWindow.window.end <= account.now()) for (const waiter of waitingRequests) addToNextCall(waiter);
      else wakeFront(waitingRequests);
    if (!nextCall.isEmpty()) context.sync.callNow();
    if (waiters.size > 0) checkBy(Math.max(next, now + MIN_INTERVAL));
  };
  const addToNextCall = (waiter: WaitingRequest): void => {
    if (!waiter.hasEnded && !waiter.isInCall) nextCall.add(waiter);
  };
  /**
   * Wakes each request whose amount is below the amounts of all requests before it: if the money is too little for a
   * request, it is also too little for those behind it with the same or a larger amount.
   */
  const wakeFront = (queue: ReadonlySet<WaitingRequest>): void => {
    let min: Nano | undefined;
    for (const waiter of queue) {
      if (min !== undefined && waiter.amount >= min) continue;
      min = waiter.amount;
      addToNextCall(waiter);
    }
  };
  /** Wakes the requests for which the money that spend and escrow leave, with the idle escrow here, is enough. */
  const wakeAffordable = (counter: CounterState): void => {
    const { limit = 0n, spendOfAll = 0n, escrowOfAll, waitingRequests } = counter;
    let left = limit - spendOfAll - escrowOfAll + idleEscrow(counter);
    for (const waiter of waitingRequests) {
      left -= waiter.amount;
      if (left < 0n) break;
      addToNextCall(waiter);
    }
  };
  /** Whether the request waits in a queue behind requests with the same or a smaller amount. */
  const joinsWaitQueue = (waiter: WaitingRequest): boolean => {
    const { counters } = waiter.chargedCounters;
    if (waiter.queuedIn !== undefined && !counters.includes(waiter.queuedIn)) leaveWaitQueue(waiter);
    const fullCounter =
      waiter.queuedIn === undefined &&
      counters.find(({ waitingRequests }) => hasSmallerRequest(waitingRequests, waiter.amount));
    if (fullCounter) waitIn(waiter, fullCounter);
    return Boolean(fullCounter);
  };
  const refuseAll = (): void => {
    for (const waiter of [...waiters]) refuse(waiter, { reason: 'unavailable', why: STOPPED_REASON });
  };
  const waitIn = (waiter: WaitingRequest, counter: CounterState): void => {
    if (waiter.queuedIn === counter) return;
    leaveWaitQueue(waiter);
    waiter.queuedIn = counter;
    counter.waitingRequests.add(waiter);
  };

  return {
    waitIn,
    addToNextCall,
    remove,
    refuse,
    wakeFront,
    wakeAffordable,
    add(request): void {
      if (account.isStopped) {
        request.onRefused({ reason: 'unavailable', why: STOPPED_REASON });
        return;
      }
      const waiter = { ...request, rateView: {}, queuedIn: undefined, isInCall: false, hasEnded: false };
      waiters.add(waiter);
      checkBy(Math.min(waiter.deadline, intervalClock.now() + RETRY_INTERVAL));
      nextCall.add(waiter);
      context.sync.callNow();
    },
    *requests(): Iterable<WaitingRequest> {
      for (const waiter of nextCall.inTurn()) {
        if (!waiter.isGrowth) updateWindows(account, waiter);
        const isBehind = !waiter.isGrowth && joinsWaitQueue(waiter);
        try {
          if (!isBehind) yield waiter;
        } finally {
          // Also for the request that fills the call, after which no other one is taken.
          if (isBehind || waiter.isInCall) nextCall.delete(waiter);
        }
      }
    },
    addAllToNextCall(): void {
      for (const waiter of waiters) {
        waiter.isInCall = false;
        addToNextCall(waiter);
      }
    },
    refuseAll,
    hasRequests: () => !nextCall.isEmpty(),
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
export function updateWindows(account: Account, waiter: WaitingRequest): void {
  const before = waiter.chargedCounters.counters;
  const charged = account.counters.ofScopes(waiter.chargedCounters.scopes, account.now());
  if (charged === waiter.chargedCounters) return;
  waiter.chargedCounters = charged;
  for (const [at, state] of waiter.chargedCounters.counters.entries()) {
    const { limit, scopeWindow } = before[at] ?? state;
    const isBack = scopeWindow.window.start > state.scopeWindow.window.start;
    if (state.limit === undefined || (isBack && limit !== undefined && limit < state.limit)) state.limit = limit;
  }
}

/** Whether a request in this queue has this amount or a smaller one. */
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
  { queuedIn, chargedCounters, rateView }: WaitingRequest,
  now: Millis,
): ReservationRefusal {
  const scope = queuedIn === undefined ? undefined : chargedCounters.scopes[chargedCounters.counters.indexOf(queuedIn)];
  if (scope !== undefined && now - account.lastReplyAt <= ALIVE_WITHIN) return { reason: 'held', scope, ...rateView };
  const { isOpen, notOpenReason, storeFailure } = account;
  if (isOpen && storeFailure !== '') return { reason: 'unavailable', why: `the counter store fails: ${storeFailure}` };
  return { reason: 'unavailable', why: isOpen ? 'counter store or database did not answer in time' : notOpenReason };
}
