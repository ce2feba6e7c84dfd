// The account of a process: live reservations, ended requests on their way to PostgreSQL, and the numbers of its calls (LEDGER
// 3, 8).

import type { Clock } from '../ports/clock.ts';
import type { RateChange } from '../ports/counter-store.ts';
import type { Reservation } from '../ports/ledger.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { ScopePolicy } from '../ports/policy.ts';
import { type CounterState, type Counters, createCounters, NOTHING_REPORTED } from './counters.ts';

/** A reservation in flight; its caller has the same object. */
export interface LiveReservation extends Reservation {
  /** Larger where it has grown. */
  amount: Nano;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  readonly counters: ReadonlyArray<CounterState>;
  readonly model: string;
  readonly identifier: string;
  readonly reservedAt: Millis;
  /** The cost of the reply so far, of a stream. */
  costSoFar: (() => Nano) | undefined;
  /** Called when others may hold its money: another process has closed the account. */
  onAccountClosed: (() => void) | undefined;
  /** The last `known` in the journal; undefined: none, so that a restart charges its size. */
  writtenCost: Nano | undefined;
  /** Its part of the risk: its size; of a stream that has been told of, what it has produced. */
  atRisk: Nano;
  isStream: boolean;
  /** The rates it counts in; undefined without any. */
  readonly rateUse: RateUse | undefined;
  /** Set when it settles or releases: resolves when that is durable. */
  ending: Promise<void> | undefined;
  /** Its index among the live reservations. */
  index: number;
}

export interface RateUse {
  readonly limits: ReadonlyArray<TakenLimit>;
  entry: TakenLimit | undefined;
  /** Tokens that were asked for. */
  readonly tokens: number;
}

/** The part of one limit that a request has taken. Absent members are not limited, and so not counted. */
export interface TakenLimit {
  readonly id: string;
  readonly requests: number | undefined;
  /** At most the limit. */
  readonly tokens: number | undefined;
  readonly parallel: number;
  /** Where it was taken: a later epoch knows nothing of it. */
  readonly minute: number;
  readonly epoch: number;
}

/** An entry that PostgreSQL does not have yet. */
export interface EndedRequest {
  readonly row: LedgerRow;
  readonly counters: ReadonlyArray<CounterState>;
  /** The charge that the store must be able to make for it until it is told. */
  readonly guaranteed: Nano;
  readonly endedAt: Millis;
}

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
  /**
   * In no order. Not a `Set`: a table that has grown old keeps what its successors hold, so that whole requests outlive
   * young garbage collections.
   */
  readonly live: LiveReservation[];
  /**
   * Ended requests: not told, in the pending call, told in the batch that collects, in the batch that is being booked.
   */
  unreported: EndedRequest[];
  inFlight: EndedRequest[];
  openBatch: EndedRequest[];
  sealedBatch: EndedRequest[];
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
  unreported: [],
  inFlight: [],
  openBatch: [],
  sealedBatch: [],
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
  live: [],
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
  reservation.index = account.live.push(reservation) - 1;
  for (const counter of reservation.counters) {
    counter.reservations += 1;
    counter.live += reservation.amount;
    counter.atRisk += reservation.atRisk;
    markChanged(account, counter);
  }
}

/** The reservation takes more escrow. A stream's risk is what it has produced, whatever its size. */
export function enlargeReservation(account: Account, reservation: LiveReservation, by: Nano): void {
  const risk = reservation.isStream ? 0n : by;
  reservation.amount += by;
  reservation.atRisk += risk;
  for (const counter of reservation.counters) {
    counter.live += by;
    counter.atRisk += risk;
    markChanged(account, counter);
  }
}

/** The reservation ends: it takes nothing any more. */
export function removeReservation(account: Account, reservation: LiveReservation): void {
  const { live } = account;
  if (live[reservation.index] !== reservation) return;
  const last = live.pop();
  if (last !== undefined && last !== reservation) {
    live[reservation.index] = last;
    last.index = reservation.index;
  }
  for (const counter of reservation.counters) {
    counter.reservations -= 1;
    counter.live -= reservation.amount;
    counter.atRisk -= reservation.atRisk;
    markChanged(account, counter);
  }
}

/** A stream has produced more: the risk is what it cost so far, never less than before. */
export function recordStreamCost(account: Account, reservation: LiveReservation, cost: Nano): void {
  if (reservation.isStream && cost <= reservation.atRisk) return;
  for (const counter of reservation.counters) {
    counter.atRisk += cost - reservation.atRisk;
    markChanged(account, counter);
  }
  reservation.atRisk = cost;
  reservation.isStream = true;
}

/** An entry waits to be told. */
export function addPendingCharge(account: Account, ended: EndedRequest): void {
  account.unreported.push(ended);
  for (const counter of ended.counters) {
    counter.pending += ended.row.cost;
    counter.unguaranteed += ended.guaranteed;
    markChanged(account, counter);
  }
}

/** An entry without a reservation. Its counters may have been dropped since it was made, when nothing was in them. */
export const requeue = (
  account: Account,
  { row, guaranteed = 0n, endedAt }: Partial<EndedRequest> & Pick<EndedRequest, 'row' | 'endedAt'>,
): void => addPendingCharge(account, { row, counters: row.scopeWindows.map(account.counters.of), guaranteed, endedAt });

/** The next call tells it. */
export function sendCharge(account: Account, ended: EndedRequest): void {
  account.inFlight.push(ended);
  for (const counter of ended.counters) {
    counter.pendingInFlight += ended.row.cost;
    counter.unguaranteedInFlight += ended.guaranteed;
  }
}

export function addRateChange(account: Account, { id, minute, requests, tokens, parallel }: RateChange): void {
  if (requests === 0 && tokens === 0 && parallel === 0) return;
  const key = `${minute ?? ''} ${id}`;
  const before = account.rateChanges.get(key) ?? { requests: 0, tokens: 0, parallel: 0 };
  const sum = { requests: before.requests + requests, tokens: before.tokens + tokens };
  account.rateChanges.set(key, { id, minute, ...sum, parallel: before.parallel + parallel });
}

/** Entries that PostgreSQL is not known to have, the oldest first. */
export const unbookedRequests = ({
  sealedBatch,
  openBatch,
  inFlight,
  unreported,
}: Account): ReadonlyArray<EndedRequest> => [...sealedBatch, ...openBatch, ...inFlight, ...unreported];

/** The account is left: what PostgreSQL is not known to have is told again by the next one. */
export function resetAccount(account: Account): void {
  const unbooked = unbookedRequests(account);
  Object.assign(account, newAccount());
  for (const counter of account.counters.all()) Object.assign(counter, NOTHING_REPORTED);
  for (const ended of unbooked) requeue(account, ended);
  account.rateChanges.clear();
  // The store counts requests in flight by account.
  for (const { rateUse } of account.live)
    for (const { id, parallel } of limitsOf(rateUse)) addRateChange(account, { id, requests: 0, tokens: 0, parallel });
}

/** The ledger's own object behind a reservation. The caller has only the type of the port; every reservation is made in reservations.ts. */
export const liveOf = (reservation: Reservation): LiveReservation | undefined =>
  'counters' in reservation ? (reservation as LiveReservation) : undefined;

/** All limits that a reservation counts in. */
export function limitsOf(counted: RateUse | undefined): ReadonlyArray<TakenLimit> {
  if (counted === undefined) return [];
  return counted.entry === undefined ? counted.limits : [...counted.limits, counted.entry];
}
