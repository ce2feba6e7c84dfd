// The account of a process: live reservations, ended requests on their way to PostgreSQL, and the numbers of its calls (LEDGER
// 3, 8).

import type { Clock } from '../ports/clock.ts';
import type { RateChange } from '../ports/counter-store.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type CounterState, type Counters, createCounters, forgetReports } from './counters.ts';
import { createRequests, type EndedRequest, type LiveReservation, limitsOf, type Requests } from './requests.ts';

/**
 * Why an account is left: another process has closed it, the store is in another epoch or has gone back in time, or our
 * own error has left it half changed.
 */
export type LeaveReason = 'closed' | 'epoch' | 'behind' | 'error';

/** A process's knowledge of its store, as plain data: on Workers, requests that share no I/O share it (LEDGER 7). */
export interface StoreState {
  /** The epoch that was open last. 0: none yet. */
  epoch: number;
  /** The store's count of calls in it, as last answered. */
  calls: number;
  /** How far the store's clock is ahead of ours. */
  clockOffset: Millis;
}

/** Why nothing is held, told or booked any more. */
export const STOPPED = 'the ledger stops';

export interface Account {
  /** Empty: none yet, or left. */
  id: string;
  epoch: number;
  /** The number of the last call, answered or not. */
  number: number;
  /** The number of the last answered call. */
  answered: number;
  /** Whether requests are admitted: the epoch is open and the account has told what it holds. */
  isOpen: boolean;
  /** Resolves when it is; rejects when the ledger has stopped before. */
  opened: PromiseWithResolvers<void>;
  /** Why it is not. */
  closedReason: string;
  /** Requests wait longer. */
  isRebuilding: boolean;
  /** The disk has refused a record: the journal is discarded. */
  hasNoJournal: boolean;
  /** The ledger stops: no request is admitted any more; then its parts do nothing any more. */
  isStopping: boolean;
  isOver: boolean;
  /** When the last answered call was sent: on the clock of intervals, and on the wall clock. */
  sentAt: Millis;
  sentAtWall: Millis;
  /** When the store last answered; and why the last call failed: empty, where it did not. */
  lastReplyAt: Millis;
  storeFailure: string;
  /** Live accounts, as last answered. */
  accounts: number;
  readonly store: StoreState;
  readonly counters: Counters;
  readonly requests: Requests;
  /** The number of the batch that collects, and of the last one that PostgreSQL has. */
  batch: number;
  booked: number;
  /** Changes of rates by requests that have ended, by limit and minute. */
  readonly rateChanges: Map<string, RateChange>;
  /** Counters that the next call names. */
  readonly changed: Set<CounterState>;
  /**
   * Earlier accounts of this process and of its journal, with the corrections that are not booked yet; undefined: not
   * closed yet.
   */
  readonly previousAccounts: Map<string, ReadonlyArray<EndedRequest> | undefined>;
  /** The epoch in which it has told what it holds; 0: none. */
  joined: number;
  /** The epoch in which the store is not what it was: it must be raised. */
  staleEpoch: number | undefined;
  /** The epoch that the store last answered. */
  storeEpoch: number;
  /** The store's clock. */
  now(): Millis;
}

/** An account that has made no call. */
const newAccount = () => ({
  id: '',
  number: 0,
  answered: 0,
  isOpen: false,
  batch: 1,
  booked: 0,
  sentAt: Number.NEGATIVE_INFINITY,
  sentAtWall: Number.NEGATIVE_INFINITY,
});

export type StoreCount = Pick<StoreState, 'epoch' | 'calls'>;

/** The store's count of calls never falls within an epoch. */
export function recordCalls(store: StoreCount, epoch: number, calls: number): void {
  if (store.epoch === epoch) store.calls = Math.max(store.calls, calls);
}

export const createStoreState = (ahead: Millis = 0): StoreState => ({ epoch: 0, calls: 0, clockOffset: ahead });

/** `store`: by default the wall clock is the best guess at the store's. */
export const createAccount = (clock: Clock, store: StoreState): Account => ({
  ...newAccount(),
  epoch: 0,
  accounts: 1,
  lastReplyAt: Number.NEGATIVE_INFINITY,
  storeFailure: '',
  opened: Promise.withResolvers(),
  closedReason: 'the ledger starts',
  isRebuilding: false,
  hasNoJournal: false,
  isStopping: false,
  isOver: false,
  joined: 0,
  staleEpoch: undefined,
  storeEpoch: 0,
  store,
  counters: createCounters(),
  requests: createRequests(),
  rateChanges: new Map(),
  changed: new Set(),
  previousAccounts: new Map(),
  // Whole milliseconds, as PostgreSQL has them: a monotonic clock shows parts.
  now: () => Math.floor(clock.now() + store.clockOffset),
});

/** The next call names the counter; while it is loaded, the first call after that. */
export function markChanged(account: Account, counter: CounterState): void {
  if (counter.isChanged || counter.isLoading) return;
  counter.isChanged = true;
  account.changed.add(counter);
}

/** The reservation takes its part of the escrow. */
export function addReservation(account: Account, reservation: LiveReservation): void {
  account.requests.reserve(reservation);
  for (const counter of reservation.counters) {
    counter.reservations += 1;
    counter.live += reservation.amount;
    counter.risk.live += reservation.atRisk;
    markChanged(account, counter);
  }
}

/** The reservation takes more escrow. A stream's risk is its cost so far, whatever its amount. */
export function enlargeReservation(account: Account, reservation: LiveReservation, by: Nano): void {
  const risk = reservation.isStream ? 0n : by;
  reservation.amount += by;
  reservation.atRisk += risk;
  for (const counter of reservation.counters) {
    counter.live += by;
    counter.risk.live += risk;
    markChanged(account, counter);
  }
}

/** The reservation ends: it takes nothing any more. */
export function endReservation(account: Account, live: LiveReservation, to: 'unreported' | 'released'): void {
  if (!account.requests.end(live, to)) return;
  for (const counter of live.counters) {
    counter.reservations -= 1;
    counter.live -= live.amount;
    counter.risk.live -= live.atRisk;
    markChanged(account, counter);
  }
}

/** A stream has cost more: that is its risk, never less than before. */
export function recordStreamCost(account: Account, live: LiveReservation, cost: Nano): void {
  if (live.isStream && cost <= live.atRisk) return;
  for (const counter of live.counters) {
    counter.risk.live += cost - live.atRisk;
    markChanged(account, counter);
  }
  live.atRisk = cost;
  live.isStream = true;
}

/** The cost of an ended request waits to be reported to the store. */
export function addCharge(account: Account, charge: Omit<EndedRequest, 'state'>): void {
  account.requests.report({ ...charge, state: 'unreported' });
  for (const counter of charge.counters) {
    counter.spend.unreported += charge.row.cost;
    counter.unguaranteed.unreported += charge.guaranteed;
    markChanged(account, counter);
  }
}

/** A charge without a reservation. Its counters may have been dropped since, when nothing was in them. */
export const requeue = (
  account: Account,
  { row, guaranteed = 0n, endedAt }: Pick<EndedRequest, 'row' | 'endedAt'> & { readonly guaranteed?: Nano },
): void => addCharge(account, { row, counters: row.scopeWindows.map(account.counters.of), guaranteed, endedAt });

/** The next call reports these charges. */
export function sendCharges(account: Account, isSent?: (request: EndedRequest) => boolean): void {
  account.requests.move('unreported', 'inFlight', (request) => {
    if (isSent?.(request) === false) return false;
    for (const { spend, unguaranteed } of request.counters) {
      spend.unreported -= request.row.cost;
      spend.inFlight += request.row.cost;
      unguaranteed.unreported -= request.guaranteed;
      unguaranteed.inFlight += request.guaranteed;
    }
    return true;
  });
}

export function addRateChange(account: Account, { id, minute, requests, tokens, parallel }: RateChange): void {
  if (requests === 0 && tokens === 0 && parallel === 0) return;
  const key = `${minute ?? ''} ${id}`;
  const before = account.rateChanges.get(key) ?? { requests: 0, tokens: 0, parallel: 0 };
  const sum = { requests: before.requests + requests, tokens: before.tokens + tokens };
  account.rateChanges.set(key, { id, minute, ...sum, parallel: before.parallel + parallel });
}

/** The account is left: what PostgreSQL is not known to have is told again by the next one. */
export function resetAccount(account: Account): void {
  const unbooked = account.requests.takeUnbooked();
  Object.assign(account, newAccount());
  for (const counter of account.counters.all()) forgetReports(counter);
  for (const ended of unbooked) requeue(account, ended);
  account.rateChanges.clear();
  // The store counts requests in flight by account.
  for (const { rateUse } of account.requests.reserved)
    for (const { id, parallel } of limitsOf(rateUse)) addRateChange(account, { id, requests: 0, tokens: 0, parallel });
}
