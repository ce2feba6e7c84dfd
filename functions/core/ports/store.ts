// What does the ledger ask of the key-value store? One atomic call: settles first, then releases, loads and holds (LEDGER 3 to 5, 11).
import type { Millis, Nano, Window } from './money.ts';
import type { ScopeId } from './policy.ts';

/** A counter of one scope and window, with the limit that holds now. `limit` absent: counted, never refused. */
export interface Counter {
  readonly scopeId: ScopeId;
  readonly window: Window;
  readonly limit?: Nano;
}

export interface HoldOperation {
  readonly id: string;
  /** Upper bound of what the request can cost. 0n: a free model, refused only by spend that has reached a limit. */
  readonly amount: Nano;
  /** The least that makes sense (the prompt and one token): spend that leaves less refuses, spend that leaves more clamps. */
  readonly least: Nano;
  readonly counters: ReadonlyArray<Counter>;
  /** On the store's clock: a call that arrives later takes nothing. */
  readonly deadline: Millis;
  /** How long the hold lives without renewal. */
  readonly lease: Millis;
}

export type HoldAnswer =
  /** Taken: `amount` is what was set aside (less than asked when clamped). Repeating the call answers the same. */
  | { readonly outcome: 'held'; readonly amount: Nano; readonly now: Millis }
  /** Spend alone leaves too little in this counter. */
  | { readonly outcome: 'exceeded'; readonly counter: number; readonly spent: Nano }
  /** Spend leaves enough, live holds do not. */
  | { readonly outcome: 'busy'; readonly counter: number }
  /** These windows are not current on the store's clock: compute them again from `now`. */
  | { readonly outcome: 'window'; readonly now: Millis }
  /** These counters are not loaded: absent is not zero. */
  | { readonly outcome: 'absent'; readonly counters: ReadonlyArray<number> }
  /** The deadline passed, or the id was released before it was held. */
  | { readonly outcome: 'late' }
  /** The store went back in time or was wiped: a rebuild is due. */
  | { readonly outcome: 'epoch' };

export interface StoreCall {
  readonly epoch: number;
  /** What held ids cost in the end. Once: a second settle of an id changes nothing; one after expiry answers the difference as due. */
  readonly settles: ReadonlyArray<{ readonly id: string; readonly cost: Nano }>;
  /** Frees holds. An unknown id is forbidden for one lease. */
  readonly releases: ReadonlyArray<{ readonly id: string; readonly lease: Millis }>;
  /** Keeps holds alive; `known` is what has been streamed so far, charged should the lease end. */
  readonly renewals: ReadonlyArray<{ readonly id: string; readonly known: Nano; readonly lease: Millis }>;
  /** Sets counters that are absent from their PostgreSQL sums. */
  readonly loads: ReadonlyArray<{ readonly scopeId: ScopeId; readonly window: Window; readonly spent: Nano }>;
  readonly holds: ReadonlyArray<HoldOperation>;
}

export interface StoreReply {
  readonly now: Millis;
  readonly holds: ReadonlyArray<HoldAnswer>;
  /** Per settle: `settled` now, `repeated`, `expired` (charged `charged` at expiry: book the difference as a correction), or `unknown`. */
  readonly settles: ReadonlyArray<
    { readonly outcome: 'settled' | 'repeated' | 'unknown' } | { readonly outcome: 'expired'; readonly charged: Nano }
  >;
  /** Holds whose lease ended since the last call: to be booked as `expired` at `charged`. Told until `forget` acknowledges them. */
  readonly expired: ReadonlyArray<{ readonly id: string; readonly charged: Nano }>;
}

/** Memory, Redis over TCP, Upstash over HTTPS: one promise suite (store.promises.ts). Throws when the store cannot be asked. */
export interface Store {
  call(call: StoreCall): Promise<StoreReply>;
  /** These ids are in PostgreSQL: their records may go. */
  forget(ids: ReadonlyArray<string>): Promise<void>;
  /** Spend of these counters as the store has it; undefined when not loaded. */
  read(counters: ReadonlyArray<Counter>): Promise<ReadonlyArray<Nano | undefined>>;
}
