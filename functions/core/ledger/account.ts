// The account of a gateway process in the counter store, not of a customer: live reservations, ended requests on their
// way to PostgreSQL, and the numbers of its calls (LEDGER 3, 8).

import type { Clock } from '../ports/clock.ts';
import type { RateChange } from '../ports/counter-store.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { perRate, perWindowedRate } from '../ports/rates.ts';
import { type CounterState, type Counters, createCounters, resetFigures } from './counters.ts';
import { createRequests, type EndedRequest, type LiveReservation, limitsOf, type Requests } from './requests.ts';

/**
 * The reason why a process needs another account: another process has frozen, closed or finished the present account,
 * the store is in another epoch or has gone back in time, or our own error has left the account half changed.
 */
export type RejoinReason = 'accountClosed' | 'epoch' | 'wentBack' | 'error';

/**
 * The state of the store as a process knows it, as plain data: on Workers, all requests of an isolate share this data,
 * since they cannot share I/O (LEDGER 7).
 */
export interface KnownStore {
  /** The last open epoch. 0: none yet. */
  epoch: number;
  /** The store's count of calls in this epoch, as of its last reply. */
  storeCalls: number;
  /** The lead of the store's clock over this process's clock. */
  clockOffset: Millis;
  /**
   * On Workers: the time, by the interval clock, at which PostgreSQL was last read and had this epoch, in this store.
   */
  checkedAt: Millis;
}

/** The reason for refusals after the ledger has stopped. */
export const STOPPED_REASON = 'the ledger stops';

export interface Account {
  /** The id of the account. Empty: the process has no account yet, or has left it. */
  id: string;
  epoch: number;
  /** The number of the last call, with or without a reply. */
  callNumber: number;
  /** The number of the last call that has a reply. */
  answeredCallNumber: number;
  /** Whether requests are admitted: the epoch is open, and the account has reported its live reservations. */
  isOpen: boolean;
  /** Resolves when the account is open; rejects if the ledger has stopped before. */
  whenOpen: PromiseWithResolvers<void>;
  /** The reason why the account is not open. Empty: it is open. */
  notOpenReason: string;
  /** Whether the store is being rebuilt: requests wait longer. */
  isRebuilding: boolean;
  /** Whether the disk has refused a record, so that the journal was discarded. */
  hasNoJournal: boolean;
  /**
   * Whether the ledger stops: no request is admitted any more (`isStopping`); then its parts stop their work
   * (`isStopped`).
   */
  isStopping: boolean;
  isStopped: boolean;
  /** The time at which the last call with a reply was sent: on the interval clock, and on the wall clock. */
  sentAt: Millis;
  sentAtWall: Millis;
  /** The time of the last reply of the store; and the error of the last call, empty if it succeeded. */
  lastReplyAt: Millis;
  storeFailure: string;
  /** The number of live accounts, as of the last reply. */
  liveAccounts: number;
  readonly knownStore: KnownStore;
  readonly counters: Counters;
  readonly requests: Requests;
  /** The number of the open batch, and of the last batch that PostgreSQL has. */
  openBatchNumber: number;
  bookedBatchNumber: number;
  /** Changes of rates by requests that have ended, by limit and minute. */
  readonly rateChanges: Map<string, RateChange>;
  /** Counters that changed: the next call names them. */
  readonly changed: Set<CounterState>;
  /**
   * Previous accounts of this process and of its journal, each with its corrections. Undefined: they are not known yet,
   * since this process has not closed the account, or has not read what was charged.
   */
  readonly previousAccounts: Map<string, ReadonlyArray<EndedRequest> | undefined>;
  // Epochs, as numbers; 0: none.
  /** The epoch in which the process has reported its live reservations. */
  joinedEpoch: number;
  /**
   * The epoch whose state the store has lost, so that this process must raise the epoch. 0: the instance has no epoch
   * yet, and the first one must be raised. Undefined: no state is lost.
   */
  lostEpoch: number | undefined;
  /** The epoch of the last reply of the store. */
  storeEpoch: number;
  /** The epoch that this process has raised and not begun. To begin it, the process empties its store, once. */
  raisedEpoch: number;
  /** The last epoch that this process has found in its store. */
  foundEpoch: number;
  /** The epoch that this process has looked for by a new connection. */
  reconnectedEpoch: number;
  /** The store's clock. */
  now(): Millis;
}

/** The figures of an account that has made no call. */
const newAccount = () => ({
  id: '',
  callNumber: 0,
  answeredCallNumber: 0,
  isOpen: false,
  openBatchNumber: 1,
  bookedBatchNumber: 0,
  sentAt: Number.NEGATIVE_INFINITY,
  sentAtWall: Number.NEGATIVE_INFINITY,
});

export type StoreCalls = Pick<KnownStore, 'epoch' | 'storeCalls'>;

/** Records the store's count of calls, which never falls within an epoch. */
export function recordStoreCalls(knownStore: StoreCalls, epoch: number, storeCalls: number): void {
  if (knownStore.epoch === epoch) knownStore.storeCalls = Math.max(knownStore.storeCalls, storeCalls);
}

export const createKnownStore = (clockOffset: Millis = 0): KnownStore => ({
  epoch: 0,
  storeCalls: 0,
  clockOffset,
  checkedAt: Number.NEGATIVE_INFINITY,
});

/** Creates an account without a call. */
export const createAccount = (intervalClock: Clock, knownStore: KnownStore): Account => ({
  ...newAccount(),
  epoch: 0,
  liveAccounts: 1,
  lastReplyAt: Number.NEGATIVE_INFINITY,
  storeFailure: '',
  whenOpen: Promise.withResolvers(),
  notOpenReason: 'the ledger starts',
  isRebuilding: false,
  hasNoJournal: false,
  isStopping: false,
  isStopped: false,
  joinedEpoch: 0,
  lostEpoch: undefined,
  storeEpoch: 0,
  raisedEpoch: 0,
  foundEpoch: 0,
  reconnectedEpoch: 0,
  knownStore,
  counters: createCounters(),
  requests: createRequests(),
  rateChanges: new Map(),
  changed: new Set(),
  previousAccounts: new Map(),
  // PostgreSQL has whole milliseconds; the interval clock has fractions.
  now: () => Math.floor(intervalClock.now() + knownStore.clockOffset),
});

/** Names the counter in the next call; while the counter is being loaded, in the first call after that. */
export function markChanged(account: Account, counter: CounterState): void {
  if (counter.isChanged || counter.isLoading) return;
  counter.isChanged = true;
  account.changed.add(counter);
}

/** The next call does not name the counter. */
export function forgetChange(account: Account, counter: CounterState): void {
  counter.isChanged = false;
  account.changed.delete(counter);
}

/** Adds a reservation, which takes its part of the escrow. */
export function addReservation(account: Account, reservation: LiveReservation): void {
  account.requests.reserve(reservation);
  for (const counter of reservation.counters) {
    counter.reservations += 1;
    counter.liveAmount += reservation.amount;
    counter.risk.current += reservation.atRisk;
    markChanged(account, counter);
  }
}

/** Adds escrow to a reservation. The risk of a stream is its cost so far, whatever its amount is. */
export function enlargeReservation(account: Account, reservation: LiveReservation, by: Nano): void {
  const risk = reservation.isStream ? 0n : by;
  reservation.amount += by;
  reservation.atRisk += risk;
  for (const counter of reservation.counters) {
    counter.liveAmount += by;
    counter.risk.current += risk;
    markChanged(account, counter);
  }
}

/** Ends a reservation: it takes no escrow any more. */
export function endReservation(account: Account, live: LiveReservation, to: 'unreported' | 'released'): void {
  if (!account.requests.end(live, to)) return;
  for (const counter of live.counters) {
    counter.reservations -= 1;
    counter.liveAmount -= live.amount;
    counter.risk.current -= live.atRisk;
    markChanged(account, counter);
  }
}

/**
 * Records the cost of a stream so far, which replaces the whole amount as its risk. From the first cost on, the risk
 * never falls.
 */
export function recordStreamCost(account: Account, live: LiveReservation, cost: Nano): void {
  if (live.isStream && cost <= live.atRisk) return;
  for (const counter of live.counters) {
    counter.risk.current += cost - live.atRisk;
    markChanged(account, counter);
  }
  live.atRisk = cost;
  live.isStream = true;
}

/** Adds an ended request, which is unreported. */
export function addEndedRequest(account: Account, request: Omit<EndedRequest, 'state'>): void {
  account.requests.addUnreported({ ...request, state: 'unreported' });
  for (const counter of request.counters) {
    counter.spend.unreported += request.row.cost;
    counter.costToCover.unreported += request.costToCover;
    markChanged(account, counter);
  }
}

/** Adds a ledger row without a reservation. Its counters may have been dropped, while nothing was in them. */
export const addUnreservedRequest = (
  account: Account,
  {
    row,
    costToCover = 0n,
    endedAt,
  }: Pick<EndedRequest, 'row' | 'endedAt'> & Partial<Pick<EndedRequest, 'costToCover'>>,
): void => addEndedRequest(account, { row, counters: row.scopeWindows.map(account.counters.of), costToCover, endedAt });

/** Moves ended requests to the next call. `fits`: whether a request fits into the call. */
export function takeEndedRequests(account: Account, fits?: (request: EndedRequest) => boolean): void {
  account.requests.move('unreported', 'inCall', (request) => {
    if (fits?.(request) === false) return false;
    for (const { spend, costToCover } of request.counters) {
      spend.unreported -= request.row.cost;
      spend.inCall += request.row.cost;
      costToCover.unreported -= request.costToCover;
      costToCover.inCall += request.costToCover;
    }
    return true;
  });
}

/** Drops ended requests that PostgreSQL has, and that need not be reported. */
export function dropUnreported(account: Account, bookedRows: ReadonlySet<LedgerRow>): void {
  account.requests.move('unreported', 'booked', ({ row, counters, costToCover }) => {
    if (!bookedRows.has(row)) return false;
    for (const counter of counters) {
      counter.spend.unreported -= row.cost;
      counter.costToCover.unreported -= costToCover;
    }
    return true;
  });
}

export function addRateChange(account: Account, change: RateChange): void {
  const { id, minute } = change;
  if (Object.values(perRate((kind) => change[kind])).every((by) => by === 0)) return;
  const key = `${minute ?? ''} ${id}`;
  const before = account.rateChanges.get(key);
  account.rateChanges.set(key, { id, minute, ...perRate((kind) => (before?.[kind] ?? 0) + change[kind]) });
}

/** Leaves the account: the next account reports again all rows that PostgreSQL is not known to have. */
export function resetAccount(account: Account): void {
  const unbooked = account.requests.takeUnbooked();
  Object.assign(account, newAccount());
  for (const counter of account.counters.all()) resetFigures(counter);
  for (const ended of unbooked) addUnreservedRequest(account, ended);
  account.rateChanges.clear();
  // The store counts requests in flight by account.
  for (const { rateUse } of account.requests.reserved)
    for (const { id, parallel } of limitsOf(rateUse))
      addRateChange(account, { id, ...perWindowedRate(() => 0), parallel });
}
