// The ledger of a gateway: reserve before the upstream call, settle or release after it (LEDGER).
import type { Result } from '../failure/result.ts';
import type { LedgerRow } from './ledger-rows.ts';
import type { Millis, Nano } from './money.ts';
import type { ScopePolicy, ScopeSpend, ScopeWindow } from './policy.ts';
import type { RateEstimates, RateKind, RateLimit, RateRemainder, WindowedRate } from './rates.ts';

/** A request for a reservation. An absent estimate of a rate is 0. */
export interface ReservationParams extends Partial<RateEstimates> {
  /**
   * The request's own UUIDv7, the id of its reservation, ledger row, log line and trace. Absent: the ledger makes one.
   */
  readonly id?: string;
  /**
   * The namespace of the VirtualKey: if many requests wait for the counter store, those of different namespaces take
   * turns. Absent: `''`.
   */
  readonly namespace?: string;
  /** All scopes that are charged: all or none. */
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /** The upper bound of the request's cost; 0n for a free model. */
  readonly amount: Nano;
  /** The smallest useful amount: the prompt and the shortest useful answers. */
  readonly minAmount: Nano;
  readonly model: string;
  /** `identifier` of the target with the maximum cost. */
  readonly identifier: string;
  /**
   * Rate limits of the candidate model entries, the best first, `undefined` for a model entry without limits: the first
   * one with room is taken. Absent: none is limited, and the reservation never moves to a limited model entry.
   */
  readonly modelEntryLimits?: ReadonlyArray<RateLimit | undefined> | undefined;
  /** How long the request has already waited for the database (to look up its key). Absent: not at all. */
  readonly waited?: Millis;
}

/** For each kind of rate with a window: the limit with the smallest remainder, and this remainder. */
export type RateView = { readonly [Kind in WindowedRate]?: RateRemainder & { readonly limit: number } };

/** Money that is reserved for a request. Only the ledger makes a reservation. */
export interface Reservation {
  readonly id: string;
  /**
   * The reserved amount: less than requested if spend left less (the caller then limits the output), more after `grow`.
   */
  readonly amount: Nano;
  readonly scopeWindows: ReadonlyArray<ScopeWindow>;
  /** Index of the model entry that was chosen, if model entries are limited. */
  readonly modelEntryIndex?: number;
  /** Rates with this request counted; absent if nothing is limited. */
  readonly rates?: RateView;
}

export type ReservationRefusal =
  /** Spend alone leaves too little, until `resetAt`. */
  | {
      readonly reason: 'exceeded';
      readonly scope: ScopePolicy;
      readonly spent: Nano;
      readonly limit: Nano;
      readonly resetAt: Millis;
      readonly rates?: RateView;
    }
  /** Spend leaves enough, but requests in flight have reserved it. */
  | { readonly reason: 'held'; readonly scope: ScopePolicy; readonly rates?: RateView }
  /** A rate is exhausted. Without a scope, every model entry is full. */
  | {
      readonly reason: 'limited';
      readonly scope?: ScopePolicy;
      readonly rate: RateKind;
      readonly limit: number;
      readonly retryIn: Millis;
      readonly rates: RateView;
    }
  /** The store, the database or the journal is unreachable. `why` is for the log. */
  | { readonly reason: 'unavailable'; readonly why: string };

export interface Settlement extends Pick<LedgerRow, 'cost' | 'tokens' | 'model' | 'identifier' | 'estimated'> {
  /** Web searches that the provider reports and for which no price is named: they are logged, not booked. */
  readonly unpricedSearches?: number;
}

export interface Ledger {
  /**
   * Reserves money. A request that does not get it is refused 0.9 s after its arrival: `held` if live reservations did
   * not end, `unavailable` if the store or the database did not reply. After 1.8 s if the store is rebuilt meanwhile,
   * or replies slowly to each of several calls (decision 0027).
   */
  reserve(request: ReservationParams): Promise<Result<Reservation, ReservationRefusal>>;
  /**
   * Supplies the reply's cost so far, which is charged if this process dies. `costSoFar` is called when the cost is
   * recorded, not for every chunk. `onAccountClosed` is called once if another process has closed the account, because
   * this process got no reply for 20 s: other requests may have reserved the money, and nothing more may be spent from
   * this reservation.
   */
  trackStream(reservation: Reservation, costSoFar: () => Nano, onAccountClosed?: () => void): void;
  /**
   * Settles a reservation once; a repetition changes nothing. Durable in the journal (or booked) when it resolves:
   * await it before the reply's last byte, and withhold that byte if it rejects. After `close` it rejects if the
   * journal does not take the record.
   */
  settle(reservation: Reservation, settlement: Settlement): Promise<void>;
  /**
   * Releases a reservation of which nothing was consumed. Changes nothing after a settlement. Never rejects: if a call
   * fails, the next one contains the release. `called`: a provider was called without success, so the request counts in
   * rates.
   */
  release(reservation: Reservation, how?: { readonly called: boolean }): Promise<void>;
  /**
   * Moves the reservation to a fallback model entry. Refused if that model entry is full; then the reservation does not
   * change. The store is not called if neither model entry is limited. `estimates`: those for the limits of the
   * model entry, if they are less than those for the limits of scopes.
   */
  moveToModelEntry(
    reservation: Reservation,
    to: RateLimit | undefined,
    estimates?: RateEstimates,
  ): Promise<Result<void, ReservationRefusal>>;
  /**
   * Makes the reservation larger by the charge of an attempt that broke, before another attempt begins (LEDGER 10): in
   * all of its scopes and in their windows, also those that are over, or not at all. The journal has it when this
   * resolves. Never above a limit, and never queued behind other requests' reservations: if those leave too little, it
   * is refused as soon as the store replies.
   */
  grow(reservation: Reservation, by: Nano): Promise<Result<void, ReservationRefusal>>;
  /**
   * Reads the spend of each scope in its current window, without reservations; undefined for a scope without a budget.
   * `waited`: as in `ReservationParams`.
   */
  spend(
    scopes: ReadonlyArray<ScopePolicy>,
    waited?: Millis,
  ): Promise<Result<ReadonlyArray<ScopeSpend | undefined>, ReservationRefusal>>;
  /**
   * Returns the same from memory, without a call: the store's last reply, and what has ended here since. Also undefined
   * for a scope of which this process has no recent reply.
   */
  knownSpend(scopes: ReadonlyArray<ScopePolicy>): ReadonlyArray<ScopeSpend | undefined>;
  /** Books everything settled so far in PostgreSQL; throws when that fails. */
  flush(): Promise<void>;
  /** Books what it can within the grace period of a stop, then stops. The creator of the journal closes the journal. */
  close(): Promise<void>;
}
