// One numbered call: everything that changed since the previous call, as totals per counter; and the changes that its
// reply makes (LEDGER 3).
import {
  type AccountCall,
  type AccountReply,
  type CounterChange,
  MAX_COUNTERS,
  MAX_REQUESTS,
  type RateChange,
  type ReservationRequest,
} from '../ports/counter-store.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type Account, addRateChange, forgetChange, markChanged, takeEndedRequests } from './account.ts';
import {
  type CounterState,
  confirmReport,
  idleEscrow,
  isUsable,
  revokeReport,
  type WaitingRequest,
} from './counters.ts';

/** A call as it was sent, with its counters and requests. */
export interface PendingCall {
  readonly call: AccountCall;
  readonly counters: ReadonlyArray<CounterState>;
  readonly waiters: ReadonlyArray<WaitingRequest>;
  /** The store's count of calls when this call was made. */
  readonly storeCalls: number;
}

export type DoneReply = Extract<AccountReply, { outcome: 'done' }>;

const LEASE: Millis = 20_000;
/**
 * The time until the deadline of a call: a call that arrives later grants nothing, since its requests have been refused
 * by then.
 */
const DEADLINE: Millis = 1000;
/** After this time a sum is read again. */
const MAX_SUM_AGE: Millis = 5000;
/** Escrow that no request has used for this long is returned with the next periodic call, so within a second. */
const UNUSED_AFTER: Millis = 750;
/**
 * The maximum counters that requests take in a call before reports are added to it; afterwards they take the room that is
 * left. A third, because each admitted request later causes two reports: of its cost, and of the escrow that it leaves.
 */
const REQUEST_COUNTERS = Math.floor(MAX_COUNTERS / 3);
/** A call is full after this number of requests that do not fit into it. */
const MAX_MISFITS = 8;
/** The share of idle escrow: at most a sixteenth of what is left of a limit, divided among the live accounts. */
const IDLE_SHARE = 16n;

/** Begins the next call of the account, without content. */
export function beginCall(account: Account): AccountCall {
  account.callNumber += 1;
  const { epoch, id, callNumber, openBatchNumber: batch, bookedBatchNumber: bookedBatch } = account;
  return {
    epoch,
    account: id,
    callNumber,
    lease: LEASE,
    deadline: account.now() + DEADLINE,
    batch,
    bookedBatch,
    changes: [],
    requests: [],
    rateChanges: [],
    accountsToForget: [],
    finishesAccount: false,
  };
}

/**
 * Composes the next call of everything that fits; the rest is in a later call. `requests` returns the waiting requests,
 * the first ones first. Undefined if there is nothing to report, unless the call renews the lease.
 */
export function compose(
  account: Account,
  requests: () => Iterable<WaitingRequest>,
  isRenewal: boolean,
): PendingCall | undefined {
  const counters: CounterState[] = [];
  const waiters: WaitingRequest[] = [];
  takeRequests(counters, waiters, requests(), REQUEST_COUNTERS);
  const rateChanges = takeReports(account, counters);
  takeRequests(counters, waiters, requests(), MAX_COUNTERS);
  if (!isRenewal && counters.length + waiters.length + account.requests.in('inCall').length + rateChanges.length === 0)
    return undefined;
  const requested = new Set(waiters.flatMap(({ chargedCounters }) => chargedCounters.counters));
  const changes = counters.map((counter) => takeCounterChange(account, counter, requested.has(counter)));
  const call: AccountCall = {
    ...beginCall(account),
    changes,
    requests: waiters.map(toReservationRequest),
    rateChanges,
  };
  return { call, counters, waiters, storeCalls: account.knownStore.storeCalls };
}

/** Adds to the call what changed without a request. Returns the changes of rates. */
function takeReports(account: Account, counters: CounterState[]): RateChange[] {
  // Ended requests are reported if the open batch, which is one transaction, has room for them, and the call for all of
  // their counters. The costs of the other ended requests are part of the risk meanwhile. A free reply has no figures.
  let room = account.requests.room();
  if (room > 0)
    takeEndedRequests(account, ({ row, counters: charged }) => {
      if (room <= 0 || !(row.cost === 0n || addCounters(counters, charged))) return false;
      room -= Math.max(1, charged.length);
      return true;
    });
  for (const counter of account.changed)
    if (isUpToDate(account, counter)) forgetChange(account, counter);
    else if (!addCounters(counters, [counter])) break;
  return takeRateChanges(account);
}

/**
 * Whether the store has these figures already, for example of a reservation that it granted itself. A counter with idle
 * escrow is named nevertheless: the reply shows whether another process waits for it.
 */
const isUpToDate = (account: Account, counter: CounterState): boolean =>
  counter.spend.inCall === 0n &&
  riskOf(counter) === counter.risk.reported &&
  idleEscrow(counter) <= 0n &&
  escrowChangeOf(account, counter, false).ahead === 0n;

const riskOf = ({ risk, costToCover }: CounterState): Nano => risk.current + costToCover.unreported;

/** Changes of rates that fit into a call. */
export function takeRateChanges({ rateChanges }: Account): RateChange[] {
  const first = [...rateChanges].slice(0, MAX_COUNTERS);
  for (const [key] of first) rateChanges.delete(key);
  return first.map(([, change]) => change);
}

/** Adds these counters to the call, all of them or none. */
function addCounters(
  counters: CounterState[],
  added: ReadonlyArray<CounterState>,
  room: number = MAX_COUNTERS,
): boolean {
  let missing = 0;
  for (const counter of added) {
    if (counter.isLoading) return false;
    if (counters[counter.changeIndex] !== counter) missing += 1;
  }
  if (counters.length + missing > room) return false;
  for (const counter of added)
    if (counters[counter.changeIndex] !== counter) counter.changeIndex = counters.push(counter) - 1;
  return true;
}

/** Adds requests to the call. */
function takeRequests(
  counters: CounterState[],
  waiters: WaitingRequest[],
  requests: Iterable<WaitingRequest>,
  room: number,
): void {
  let misfits = 0;
  if (waiters.length === MAX_REQUESTS) return;
  for (const waiter of requests) {
    const charged = waiter.chargedCounters.counters;
    if (charged.some(({ isLoading }) => isLoading)) continue;
    // The first request has the whole room, so that the largest one is admitted, too.
    if (addCounters(counters, charged, waiters.length === 0 ? MAX_COUNTERS : room)) {
      waiter.isInCall = true;
      waiters.push(waiter);
    } else misfits += 1;
    if (waiters.length === MAX_REQUESTS || misfits === MAX_MISFITS) break;
  }
}

const toReservationRequest = (waiter: WaitingRequest): ReservationRequest => ({
  counters: waiter.chargedCounters.counters.map(({ changeIndex }) => changeIndex),
  amount: waiter.amount,
  minAmount: waiter.minAmount,
  rates: waiter.rates,
  ...(waiter.isGrowth ? { isGrowth: waiter.isGrowth } : {}),
});

export function takeCounterChange(account: Account, counter: CounterState, isRequested: boolean): CounterChange {
  const { scopeId, window } = counter.scopeWindow;
  const { limit, spend } = counter;
  const risk = riskOf(counter);
  forgetChange(account, counter);
  counter.risk.inCall = risk;
  const escrowChange = escrowChangeOf(account, counter, isRequested);
  counter.returnedInCall = escrowChange.returned;
  const sum = sumFor(account, counter);
  return { scopeId, window, limit, spend: spend.inCall, risk, carriedOver: 0n, ...escrowChange, sum };
}

/** The sum for the store, if it was read just now: a counter may be loaded, used, and dropped after a minute. */
function sumFor(account: Account, { loadedSum }: CounterState): Nano | undefined {
  const age = loadedSum === undefined ? 0 : account.now() - loadedSum.readAt;
  return age >= 0 && age < MAX_SUM_AGE ? loadedSum?.spent : undefined;
}

/**
 * Escrow to return or to request ahead. The demand of the next second stays idle, at most the share of what is left:
 * none near the limit, and none if the last second had only one request, after which another one is unlikely. All of it
 * is returned if requests wait, no request has come for a while, the limit has fallen, or the window is over.
 */
function escrowChangeOf(
  account: Account,
  counter: CounterState,
  isRequested: boolean,
): Pick<CounterChange, 'returned' | 'ahead'> {
  const idle = idleEscrow(counter);
  const free = idle > 0n ? idle : 0n;
  const {
    limit,
    spendOfAll,
    escrowOfAll,
    demand,
    lastDemand,
    lastAmount,
    lastReservedAt,
    waitingRequests,
    isWantedByOthers,
  } = counter;
  const now = account.now();
  const isOver = counter.scopeWindow.window.end <= now;
  const isUnused = lastReservedAt + UNUSED_AFTER <= now || isWantedByOthers || waitingRequests.size > 0;
  if (limit === undefined || spendOfAll === undefined || isOver || isUnused || !isUsable(counter))
    return { returned: free, ahead: 0n };
  const share = (limit - spendOfAll - escrowOfAll) / (IDLE_SHARE * BigInt(account.liveAccounts));
  const maxDemand = demand > lastDemand ? demand : lastDemand;
  const max = maxDemand < share ? maxDemand : share;
  const target = maxDemand === lastAmount || max < lastAmount ? 0n : max;
  if (isRequested) return { returned: free, ahead: target };
  return free > target ? { returned: free - target, ahead: 0n } : { returned: 0n, ahead: target - free };
}

/** Applies the reply to a call that was done. */
export function applyDone(
  account: Account,
  { call, counters, waiters }: Pick<PendingCall, 'call' | 'counters' | 'waiters'>,
  reply: DoneReply,
): void {
  account.answeredCallNumber = call.callNumber;
  // A repeated call does not renew a lease that has ended, so `liveAccounts` may be 0.
  account.liveAccounts = Math.max(1, reply.liveAccounts);
  counters.forEach((counter, index) => {
    const [change, result] = [call.changes[index], reply.counters[index]];
    if (change === undefined || result === undefined) return;
    const { spent: spendOfAll, escrowOfAll, escrow, isWantedByOthers } = result;
    counter.limitAtGrant = limitAtGrantOf(counter, change, escrow);
    confirmReport(counter);
    if (spendOfAll !== undefined) counter.loadedSum = undefined;
    counter.risk.reported = change.risk;
    Object.assign(counter, { spendOfAll, escrowOfAll, escrow, isWantedByOthers } satisfies Partial<CounterState>);
    if (isWantedByOthers && idleEscrow(counter) > 0n) markChanged(account, counter);
  });
  account.requests.move('inCall', 'openBatch');
  // The store counts grants as risk.
  waiters.forEach(({ chargedCounters }, index) => {
    const result = reply.replies[index];
    if (result?.outcome === 'reserved')
      for (const counter of chargedCounters.counters) counter.risk.reported += result.amount;
  });
}

/**
 * The limit under which escrow is granted: a grant is within the limit of its call, together with all escrow that the
 * account had before.
 */
function limitAtGrantOf(
  { escrow: before, limitAtGrant: previousLimit }: CounterState,
  { carriedOver, spend, returned, limit }: CounterChange,
  escrow: Nano,
): Nano | undefined {
  if (carriedOver > 0n) return undefined;
  const freed = (spend > 0n ? spend : 0n) + returned;
  return escrow > (freed < before ? before - freed : 0n) ? limit : previousLimit;
}

/** Applies the refusal of a whole call: everything that it reported is in the next call again. */
export function applyRefused(account: Account, { call, counters }: PendingCall): void {
  account.answeredCallNumber = call.callNumber;
  for (const counter of counters) {
    revokeReport(counter);
    markChanged(account, counter);
  }
  account.requests.move('inCall', 'unreported');
  for (const change of call.rateChanges) addRateChange(account, change);
}
