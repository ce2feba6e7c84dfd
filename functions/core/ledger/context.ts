// The context that all parts of a ledger share: its dependencies, its clocks, and its account.

import type { Result } from '../failure/result.ts';
import type { Clock, Ids, Log, Metrics } from '../ports/clock.ts';
import type { AccountCall, AccountReply, CounterStore } from '../ports/counter-store.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Journal } from '../ports/journal.ts';
import type { Reservation, ReservationParams, ReservationRefusal, Settlement } from '../ports/ledger.ts';
import type { LedgerDatabase } from '../ports/ledger-database.ts';
import type { LedgerReader } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Account, LeaveReason, StoreCount, StoreState } from './account.ts';
import type { DoneReply, PendingCall } from './account-call.ts';
import type { CounterState, WaitingRequest } from './counters.ts';

export interface LedgerDependencies {
  readonly instanceUid: string;
  readonly counterStore: CounterStore;
  readonly database: LedgerDatabase & Pick<LedgerReader, 'scopesOfOtherInstances'>;
  readonly epochs: Epochs;
  readonly journal: Journal;
  readonly clock: Clock;
  /** A clock that nobody sets, for intervals; it may stand still while the machine sleeps. Default: `clock`. */
  readonly monotonic?: Clock | undefined;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly timer: Timer;
  /**
   * Calls back after the requests at hand have been read, so that they share a call. Default: after the current
   * promises.
   */
  readonly tick?: ((callback: () => void) => void) | undefined;
  /**
   * The name of its heartbeat. Default: drawn. One that serves an instance alone has a fixed name: nobody waits for the
   * process before it.
   */
  readonly process?: string | undefined;
  /** Set where a ledger serves one request only (Workers): the next requests reuse what it learned of the store. */
  readonly isolate?: StoreState | undefined;
}

/** The part of it that maintenance needs, also without a ledger. */
export interface StoreContext
  extends Pick<LedgerDependencies, 'instanceUid' | 'counterStore' | 'database' | 'timer' | 'log' | 'metrics'> {
  readonly store: StoreCount;
  /** The store's clock. */
  now(): Millis;
}

/**
 * What the parts of one ledger share, and the parts by name: each is created with this object and calls the others
 * through it, never while the ledger is being created.
 */
export interface LedgerContext extends StoreContext, Omit<LedgerDependencies, 'clock' | 'monotonic'> {
  /** For intervals: nobody sets it. */
  readonly clock: Clock;
  readonly wall: Clock;
  readonly account: Account;
  readonly process: string;
  readonly waitQueue: WaitQueue;
  readonly sync: AccountSync;
  readonly loading: CounterLoading;
  readonly reservations: Reservations;
  readonly settlement: Settlements;
  readonly booking: Booking;
  readonly membership: Membership;
  readonly closing: Closing;
}

/** Requests between their arrival and their reservation. */
export interface WaitQueue {
  /** The request waits for an answer of the store. */
  add(request: Omit<WaitingRequest, 'rateView' | 'busyIn' | 'isAsking' | 'isOver'>): void;
  /** The request waits for reservations in this counter. */
  waitIn(request: WaitingRequest, counter: CounterState): void;
  /** The request asks with the next call. */
  askAgain(request: WaitingRequest): void;
  remove(request: WaitingRequest): void;
  refuse(request: WaitingRequest, refusal: ReservationRefusal): void;
  refuseAll(): void;
  /** The first requests of this line ask with the next call. */
  wakeFront(line: ReadonlySet<WaitingRequest>): void;
  /** The store has answered for this counter: those for whom enough is left ask with the next call. */
  wakeAffordable(counter: CounterState): void;
  /** Requests for the next call, in order of arrival. Each is taken out when the call takes it. */
  requests(): Iterable<WaitingRequest>;
  hasRequests(): boolean;
  /** No call is pending any longer: all ask again. */
  askAll(): void;
  close(): void;
}

/** The calls of the account. */
export interface AccountSync {
  /** A request waits for a call. */
  callNow(): void;
  /** Something changed that nobody waits for. */
  callSoon(): void;
  /** One call, outside their turn. */
  call(call: AccountCall): Promise<AccountReply>;
  /** Reports everything that is unreported; throws when the store does not take it, or the ledger has stopped. */
  flush(): Promise<void>;
  /** The account was left: the pending call is void, and its requests ask again. */
  reset(): void;
  /** Called every quarter of a second: idle escrow is looked at, and the lease renewed if nothing else has. */
  beat(): void;
  close(): void;
}

/** Counters that the store does not have. */
export interface CounterLoading {
  /** Loads them; no call names them meanwhile. */
  load(absent: ReadonlyArray<CounterState>): void;
}

export interface Reservations {
  /** Always resolves: an error becomes a refusal. */
  reserve(request: ReservationParams): Promise<Result<Reservation, ReservationRefusal>>;
  /** The store has answered the requests of a call. */
  onReply(pending: PendingCall, reply: DoneReply): void;
  /** Escrow became idle in this counter. */
  onEscrowFreed(counter: CounterState): void;
}

export interface Settlements {
  /** The store or a new epoch has what was reported: replies that waited for that end. */
  onReported(): void;
  trackStream(reservation: Reservation, costSoFar: () => Nano, onAccountClosed?: () => void): void;
  settle(reservation: Reservation, settlement: Settlement): Promise<void>;
  release(reservation: Reservation, how?: { readonly called: boolean }): Promise<void>;
  /** Called every second: streams report their cost so far, and a request that was never ended is charged. */
  beat(): void;
  /** Resolves when live reservations are charged like the requests of a process that died. */
  chargeLive(): Promise<void>;
}

/** Batches of ledger rows on their way to PostgreSQL. */
export interface Booking {
  /** Requests were reported: they are booked within about 100 ms. */
  gather(): void;
  /** Sets the gauges of what is not booked. */
  report(): void;
  /** Reports and books what has ended so far; throws when store or PostgreSQL do not take it, or the ledger has stopped. */
  flush(): Promise<void>;
  close(): void;
}

/** The process in the epoch of the store. */
export interface Membership {
  /** Books what the journal has, and joins. Throws when PostgreSQL or the store are away; may be called again. */
  start(): Promise<void>;
  /** The account is left, and the process joins with a new one. */
  leave(why: LeaveReason): void;
  /** Called every two seconds. */
  beat(): void;
  /** Never rejects. */
  close(): Promise<void>;
}

/** Ended accounts of other processes. */
export interface Closing {
  /** Closes the accounts that the reply names, one after the other. */
  close(reply: DoneReply): void;
  /** Resolves when the account at hand is closed, or could not be. */
  stop(): Promise<void>;
}
