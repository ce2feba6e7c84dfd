// The ledger of a gateway: hold before the upstream call, settle or release after it (LEDGER).
import type { Result } from '../failure/result.ts';
import type { LedgerRow } from './ledger-rows.ts';
import type { Millis, Nano } from './money.ts';
import type { ScopePolicy, ScopeSpend, ScopeWindow } from './policy.ts';
import type { RateKind, RateLeft, RateLimit, WindowedRate } from './rates.ts';

export interface ReservationParams {
  /** The request's own UUIDv7, the id of its reservation, entry, log line and trace. Absent: the ledger makes one. */
  readonly id?: string;
  /** All scopes that pay: all or none. */
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /** The upper bound of the request's cost; 0n for a free model. */
  readonly amount: Nano;
  /** The smallest useful amount: the prompt and one token. */
  readonly minAmount: Nano;
  readonly model: string;
  /** `identifier` of the target with the maximum cost. */
  readonly identifier: string;
  /** An estimate of the tokens that the request will use, for limits of tokens per minute; absent: none. */
  readonly tokens?: number;
  /**
   * Rate limits of the candidate model entries, the best first, `undefined` for one without: the first that has room
   * is taken. Absent: none of them is limited, and the reservation never moves to one that is.
   */
  readonly entries?: ReadonlyArray<RateLimit | undefined>;
  /** How long the request has already waited for the database (to look up its key). Absent: not at all. */
  readonly waited?: Millis;
}

/** The tightest limit of requests and of tokens per minute, and what is left of it. */
export type RateView = { readonly [Kind in WindowedRate]?: RateLeft & { readonly limit: number } };

/** Money held for a request. Only the ledger makes one. */
export interface Reservation {
  readonly id: string;
  /** The amount held: less than asked when spend left less (the caller then clamps the output), more after `grow`. */
  readonly amount: Nano;
  readonly scopeWindows: ReadonlyArray<ScopeWindow>;
  /** Index of the entry that was taken, where entries are limited. */
  readonly entry?: number;
  /** Rates with this request counted; absent where nothing is limited. */
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
  /** Spend leaves enough, but requests in flight hold it. */
  | { readonly reason: 'busy'; readonly scope: ScopePolicy; readonly rates?: RateView }
  /** A rate is exhausted. Without a scope, every model entry is full. */
  | {
      readonly reason: 'limited';
      readonly scope?: ScopePolicy;
      readonly rate: RateKind;
      readonly limit: number;
      readonly retryIn: Millis;
      readonly rates: RateView;
    }
  /** Store, database or journal is away. `why` is for the log. */
  | { readonly reason: 'unavailable'; readonly why: string };

export interface Settlement extends Pick<LedgerRow, 'cost' | 'tokens' | 'model' | 'identifier' | 'estimated'> {
  /** Web searches that the provider reports and for which no price is named: they are logged, not booked. */
  readonly unpricedSearches?: number;
}

export interface Ledger {
  /**
   * Waits up to 1 s for live reservations. Whatever store and database do, `unavailable` comes 0.9 s after the request, 1.8 s
   * where the store is rebuilt meanwhile or every question is answered, but slowly (decision 0027).
   */
  reserve(request: ReservationParams): Promise<Result<Reservation, ReservationRefusal>>;
  /**
   * Supplies the reply's cost so far, which is charged if this process dies. `known` is called when it is written down,
   * not for every chunk. `lost` is called once when the lease may have ended, because store and process were apart for
   * too long:
   * other requests may hold the money, and nothing more may be spent from this reservation.
   */
  trackStream(reserve: Reservation, knownSpend: () => Nano, lost?: () => void): void;
  /**
   * Settles once per hold; a repeat changes nothing. Durable in the journal (or booked) when it resolves: await it
   * before the reply's last byte, and withhold that byte when it rejects. After `close` it rejects where the journal
   * does not take it.
   */
  settle(reserve: Reservation, settlement: Settlement): Promise<void>;
  /**
   * Releases a reservation of which nothing was consumed. Changes nothing after a settlement. Never rejects: the release is
   * repeated until the store has it. `called`: a provider was called in vain, so the request counts in rates.
   */
  release(reserve: Reservation, how?: { readonly called: boolean }): Promise<void>;
  /**
   * Moves the reservation to a fallback entry. Refused where that entry is full; the reservation then stays where it was. The store
   * is not called where neither entry is limited.
   */
  move(reserve: Reservation, to: RateLimit | undefined): Promise<Result<void, ReservationRefusal>>;
  /**
   * Makes the reservation larger by the charge of an attempt that broke, before another attempt begins (LEDGER 10): in all of
   * its scopes and in their windows, also those that are over, or not at all. The journal has it when this resolves.
   * Never above a limit, and never queued for other requests' holds: where those leave too little, it is refused as
   * soon as the store answers.
   */
  grow(reserve: Reservation, by: Nano): Promise<Result<void, ReservationRefusal>>;
  /**
   * The spend of each scope in its current window, without reservations; undefined for a scope without a budget. `waited`: as
   * in `HoldRequest`.
   */
  spend(
    scopes: ReadonlyArray<ScopePolicy>,
    waited?: Millis,
  ): Promise<Result<ReadonlyArray<ScopeSpend | undefined>, ReservationRefusal>>;
  /**
   * The same as this process knows it without a call: the store's last answer, and what has ended here since. Undefined
   * also where it has not asked lately.
   */
  knownSpend(scopes: ReadonlyArray<ScopePolicy>): ReadonlyArray<ScopeSpend | undefined>;
  /** Books everything settled so far in PostgreSQL; throws when that fails. */
  flush(): Promise<void>;
  /** Flushes within the grace period of a stop, then stops its timers. The creator of the journal closes it. */
  close(): Promise<void>;
}
