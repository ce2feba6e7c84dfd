// What does the ledger ask of the key-value store? One atomic call: settles first, then releases, loads and holds (LEDGER 3 to 5, 11).
import type { Millis, Nano } from './money.ts';
import type { ScopeWindow } from './policy.ts';
import type { MoveAnswer, MoveOperation, RateRefusal, RateReply, RateRequest } from './rates.ts';

/** What decides about a hold: the spend of one scope in one window, and the limit that holds now. */
export interface Counter extends ScopeWindow {
  readonly limit: Nano;
}

/** What an entry needs besides the cost. Kept with the hold, so that anybody can book it when its lease ends. */
export interface HoldNote {
  /** Every scope that pays, those without a limit too. */
  readonly charges: ReadonlyArray<ScopeWindow>;
  readonly model: string;
  readonly identifier: string;
}

export interface HoldOperation {
  /** A UUIDv7 of ours. Repeating the operation answers the same and takes nothing more. */
  readonly id: string;
  /** Upper bound of what the request can cost. 0n: a free model, refused only by spend that has reached a limit. */
  readonly amount: Nano;
  /** The least that makes sense (the prompt and one token): spend that leaves less refuses, spend that leaves more clamps. */
  readonly least: Nano;
  /** Only scopes with a limit; none is legal. All or none is taken from them. */
  readonly counters: ReadonlyArray<Counter>;
  readonly note: HoldNote;
  /** On the store's clock: a call that arrives later takes nothing. */
  readonly deadline: Millis;
  /** How long the hold lives without renewal. */
  readonly lease: Millis;
  /** Taken with the money or not at all; absent where nothing is limited. */
  readonly rates?: RateRequest;
}

/** `rates` are told where any were asked for. */
export type HoldAnswer =
  /** Taken: `amount` is what was set aside (less than asked when clamped). */
  | { readonly outcome: 'held'; readonly amount: Nano; readonly rates?: RateReply }
  /** Spend alone leaves too little in this counter. Wins over `limited` and `busy`. */
  | { readonly outcome: 'exceeded'; readonly counter: number; readonly spent: Nano; readonly rates?: RateReply }
  /** Spend leaves enough, a rate does not. Wins over `busy`. */
  | ({ readonly outcome: 'limited'; readonly rates: RateReply } & RateRefusal)
  /** Spend leaves enough, live holds do not. */
  | { readonly outcome: 'busy'; readonly counter: number; readonly rates?: RateReply }
  /** Some window is not current on the store's clock: compute them again from the reply's `now`. */
  | { readonly outcome: 'window' }
  /** These counters are not loaded: absent is not zero. */
  | { readonly outcome: 'absent'; readonly counters: ReadonlyArray<number> }
  /** The deadline passed, or the id was released, or its lease has ended: nothing is set aside. */
  | { readonly outcome: 'late' };

export interface SettleOperation {
  readonly id: string;
  /** The truth, also above the hold. */
  readonly cost: Nano;
  /**
   * Where to count it if the store does not know the id (a hold from before the store began). Absent: then nowhere, so
   * that a call that a frozen store runs long after its repeat was booked and forgotten counts nothing.
   */
  readonly counters?: ReadonlyArray<ScopeWindow>;
  /** Then: how much of `cost` PostgreSQL has been told already and the counters therefore hold. */
  readonly counted?: Nano;
  /** What it used, for rates; absent: what the hold expected. */
  readonly tokens?: number;
}

export interface ReleaseOperation {
  readonly id: string;
  readonly lease: Millis;
  /** Somebody was called, and nothing came of it: the request counts in rates all the same, its tokens do not. */
  readonly called?: true;
}

/** A repeat answers the same and counts nothing more; the first cost stands. */
export type SettleAnswer =
  /** Counted, the hold is over. */
  | { readonly outcome: 'settled' }
  /** Its lease had ended and `charged` was counted then; the counters now show `cost`: book the difference as a correction. */
  | { readonly outcome: 'expired'; readonly charged: Nano }
  /** It was released before: nothing is counted. */
  | { readonly outcome: 'released' }
  /** The id is unknown and no counters were named: nothing is counted. */
  | { readonly outcome: 'unknown' }
  /** The id is unknown and these counters are not loaded: nothing is counted, load and repeat. */
  | { readonly outcome: 'absent'; readonly counters: ReadonlyArray<number> };

/** A repeat answers the same. */
export type ReleaseAnswer =
  /** Freed. An unknown id is forbidden for one lease. */
  | { readonly outcome: 'released' }
  /** It was settled before: nothing changes. */
  | { readonly outcome: 'settled' }
  /** Its lease had ended and `charged` was counted then; the counters no longer show it: book the difference as a correction. */
  | { readonly outcome: 'expired'; readonly charged: Nano };

/** At most 64 operations in all, so that a script stays short (LEDGER 3). Done in this order, each judged alone, all in one step. */
export interface StoreCall {
  /** A store that lives under another epoch does nothing at all. */
  readonly epoch: number;
  readonly settles: ReadonlyArray<SettleOperation>;
  readonly releases: ReadonlyArray<ReleaseOperation>;
  /** Keeps holds alive; `known` is what the reply has cost so far, charged should the lease end (absent: the hold's size). */
  readonly renewals: ReadonlyArray<{ readonly id: string; readonly known?: Nano; readonly lease: Millis }>;
  /** Sets counters that are absent to their PostgreSQL sums; a counter that is there stays as it is. */
  readonly loads: ReadonlyArray<ScopeWindow & { readonly spent: Nano }>;
  readonly holds: ReadonlyArray<HoldOperation>;
  /** Done last. Absent: none. */
  readonly moves?: ReadonlyArray<MoveOperation>;
}

/** A hold whose lease ended: counted at `charged`, to be booked as `expired`. */
export interface Expired {
  readonly id: string;
  readonly charged: Nano;
  readonly note: HoldNote;
}

export interface StoreReply {
  readonly outcome: 'done';
  /** The store's clock: the only one that leases, deadlines and windows go by. */
  readonly now: Millis;
  readonly settles: ReadonlyArray<SettleAnswer>;
  readonly releases: ReadonlyArray<ReleaseAnswer>;
  readonly holds: ReadonlyArray<HoldAnswer>;
  /** Absent where none were asked for. */
  readonly moves?: ReadonlyArray<MoveAnswer>;
  /** Told again until `forget` acknowledges them. */
  readonly expired: ReadonlyArray<Expired>;
}

/** The store went back in time, was wiped or rebuilt: nothing was done. */
export interface StaleEpoch {
  readonly outcome: 'epoch';
  readonly now: Millis;
  readonly epoch: number;
}

/**
 * Memory, Redis over TCP, Upstash over HTTPS: one promise suite (store.promises.ts). Throws when the store cannot be
 * asked or its answer is lost: then nobody knows whether the call was done, and every call may be repeated.
 *
 * A hold counts in every loaded counter of its scopes (`note.charges`) whose window holds the instant it was taken, not
 * only in those it was judged by: after a `budgetDuration` edit a scope has more than one, and policies of both ages are
 * in use for some seconds. So a counter always shows what PostgreSQL's sum of that window will show.
 *
 * Two rules make loading exact: an entry is booked in PostgreSQL only after its cost was counted here, and a counter is
 * dropped only when its window is long over. A counter that is loaded takes in what is held, or settled and not
 * forgotten, and falls into its window: a sum must therefore be read and loaded while nothing is being booked.
 *
 * Rates are taken in the same step as the money, all or none; what is refused takes nothing. They are no money: a store
 * that was wiped starts them empty.
 */
export interface Store {
  call(call: StoreCall): Promise<StoreReply | StaleEpoch>;
  /** These ids are in PostgreSQL: their records may go. An expired one is remembered for a day, for a settlement that comes late. */
  forget(ids: ReadonlyArray<string>): Promise<void>;
  /** Spend of these counters as the store has it, holds left out; undefined when not loaded. */
  read(counters: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<Nano | undefined>>;
}
