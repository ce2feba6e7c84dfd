// The context that all parts of a ledger share: its dependencies, its clocks, and its account.

import type { Result } from '../failure/result.ts';
import type { Clock } from '../ports/clock.ts';
import type { AccountCall, AccountReply, CounterStore } from '../ports/counter-store.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Ids } from '../ports/ids.ts';
import type { Journal } from '../ports/journal.ts';
import type { Reservation, ReservationParams, ReservationRefusal, Settlement } from '../ports/ledger.ts';
import type { LedgerDatabase } from '../ports/ledger-database.ts';
import type { LedgerReader } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Log, Metrics } from '../ports/telemetry.ts';
import type { Account, KnownStore, RejoinReason, StoreCalls } from './account.ts';
import type { DoneReply, PendingCall } from './account-call.ts';
import type { CounterState, WaitingRequest } from './counters.ts';

export interface LedgerDependencies {
  readonly instanceUid: string;
  readonly counterStore: CounterStore;
  readonly database: LedgerDatabase & Pick<LedgerReader, 'scopesOfOtherInstances'>;
  readonly epochs: Epochs;
  readonly journal: Journal;
  readonly clock: Clock;
  /** A clock for intervals, which is never set. It may stop while the machine sleeps. Default: `clock`. */
  readonly intervalClock?: Clock | undefined;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly timer: Timer;
  /**
   * Calls back after all requests that have arrived are read, so that they share a call. Default: after the current
   * promises.
   */
  readonly tick?: ((callback: () => void) => void) | undefined;
  /**
   * The name of the process in its heartbeat. Default: drawn at random. The only process of an instance has a fixed
   * name, so that no process waits for its predecessor.
   */
  readonly processName?: string | undefined;
  /**
   * What the isolate knows about the counter store, shared by all its ledgers. Set if each ledger serves one request
   * only (Workers).
   */
  readonly knownStoreOfIsolate?: KnownStore | undefined;
}

/** The dependencies that maintenance needs, also without a ledger. */
export interface StoreContext
  extends Pick<LedgerDependencies, 'instanceUid' | 'counterStore' | 'database' | 'timer' | 'log' | 'metrics'> {
  readonly knownStore: StoreCalls;
  /** The store's clock. */
  now(): Millis;
  /** Whether the ledger has stopped; absent: there is none. */
  readonly isStopped?: (() => boolean) | undefined;
}

/**
 * The shared context of one ledger, with all its parts. Each part is created with this object and calls the other parts
 * through it, but not before all parts are created.
 */
export interface LedgerContext extends StoreContext, Omit<LedgerDependencies, 'clock' | 'intervalClock'> {
  /** The dependency `clock`. */
  readonly wallClock: Clock;
  readonly intervalClock: Clock;
  readonly account: Account;
  readonly processName: string;
  /** Whether the ledger serves one request only (Workers): `knownStoreOfIsolate` is set. */
  readonly isPerRequest: boolean;
  readonly waitQueue: WaitQueue;
  readonly sync: AccountSync;
  readonly loading: CounterLoading;
  readonly reservations: Reservations;
  readonly settlement: Settlements;
  readonly booking: Booking;
  readonly membership: Membership;
  readonly endedAccounts: EndedAccounts;
}

/** Requests between their arrival and their reservation. */
export interface WaitQueue {
  /** Adds a request, which waits for a reply of the store. */
  add(request: Omit<WaitingRequest, 'rateView' | 'queuedIn' | 'isInCall' | 'hasEnded'>): void;
  /** The request waits until reservations in this counter end. */
  waitIn(request: WaitingRequest, counter: CounterState): void;
  /** The next call contains the request again. */
  addToNextCall(request: WaitingRequest): void;
  remove(request: WaitingRequest): void;
  refuse(request: WaitingRequest, refusal: ReservationRefusal): void;
  refuseAll(): void;
  /** The next call contains the first requests of this queue. */
  wakeFront(queue: ReadonlySet<WaitingRequest>): void;
  /** The store has replied for this counter: the next call contains the requests for which enough money is left. */
  wakeAffordable(counter: CounterState): void;
  /**
   * Requests for the next call: those of a namespace in order of arrival, the namespaces in turn. A request is removed
   * when the call contains it.
   */
  requests(): Iterable<WaitingRequest>;
  hasRequests(): boolean;
  /** No call is pending any longer: the next call contains all waiting requests. */
  addAllToNextCall(): void;
  close(): void;
}

/** The calls of the account. */
export interface AccountSync {
  /** Sends a call immediately, since a request waits for it. */
  callNow(): void;
  /** Sends a call soon: something changed that no request waits for. */
  callSoon(): void;
  /** Sends this call, which is not a pending call: the caller handles its failure. */
  call(call: AccountCall): Promise<AccountReply>;
  /** Reports everything that is unreported; throws when the store does not take it, or the ledger has stopped. */
  flush(): Promise<void>;
  /** Drops the pending call, whose account was left; the next call contains its requests again. */
  reset(): void;
  /** Called every quarter of a second: reports idle escrow, and renews the lease if no other call has renewed it. */
  refresh(): void;
  close(): void;
}

/** Counters that the store does not have. */
export interface CounterLoading {
  /** Loads absent counters from PostgreSQL; no call names them meanwhile. */
  load(absent: ReadonlyArray<CounterState>): void;
}

export interface Reservations {
  /** Always resolves: an error becomes a refusal. */
  reserve(request: ReservationParams): Promise<Result<Reservation, ReservationRefusal>>;
  /**
   * Applies the replies to the requests of a call. Requests in a queue are refused if spend leaves too little for them.
   */
  onReply(pending: PendingCall, reply: DoneReply): void;
  /** Escrow became idle in this counter: admits the requests that fit into it. */
  onEscrowFreed(counter: CounterState): void;
}

export interface Settlements {
  /** Ends the waits of replies whose costs are covered now, after a report or in a new epoch. */
  onReported(): void;
  trackStream(reservation: Reservation, costSoFar: () => Nano, onAccountClosed?: () => void): void;
  settle(reservation: Reservation, settlement: Settlement): Promise<void>;
  release(reservation: Reservation, how?: { readonly called: boolean }): Promise<void>;
  /**
   * Called every second: streams report their cost so far, and a request that is an hour old is charged like one of a
   * dead process.
   */
  checkLive(): void;
  /** Resolves when live reservations are charged like the requests of a process that died. */
  chargeLive(): Promise<void>;
}

/** Batches of ledger rows on their way to PostgreSQL. */
export interface Booking {
  /** Starts the timer after which the open batch is sealed and booked: about 100 ms. */
  scheduleBooking(): void;
  /** Sets the gauges of unbooked requests. */
  setGauges(): void;
  /**
   * Reports and books all requests that have ended so far; throws if the store or PostgreSQL refuses them, or the
   * ledger has stopped.
   */
  flush(): Promise<void>;
  close(): void;
}

/** The membership of the process in the epoch of the store. */
export interface Membership {
  /**
   * Reads the journal, whose rows the next batch books, and joins the epoch. Throws if PostgreSQL or the store is
   * unreachable; may be called again.
   */
  start(): Promise<void>;
  /** Admits nothing any more in this account, and joins the epoch again, with a new account. */
  rejoin(why: RejoinReason): void;
  /** Called every two seconds. */
  sendHeartbeat(): void;
  /** Resolves when a ledger that stops opens no account any more. Never rejects. */
  whenJoined(): Promise<void>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** Accounts of other processes whose lease has ended. */
export interface EndedAccounts {
  /** Closes the accounts that the reply names, one after the other. */
  closeNamedIn(reply: DoneReply): void;
  /** Resolves when the account that is being closed is closed, or its closing has failed. */
  stop(): Promise<void>;
}
