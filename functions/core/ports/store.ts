// The store of a ledger: one atomic call of settlements, then releases, loads and holds (LEDGER 3 to 5, 11).
import type { Entry } from './books.ts';
import type { Millis, Nano } from './money.ts';
import type { HoldNote } from './outbox.ts';
import type { ScopeSpend, ScopeWindow } from './policy.ts';
import type { MoveAnswer, MoveOperation, RateRefusal, RateReply, RateRequest } from './rates.ts';

/** A counter that may refuse a hold: one scope in one window, with its current limit. */
export interface Counter extends ScopeWindow {
  readonly limit: Nano;
}

/** The text that identifies a counter: a scope in a window. */
export const counterKey = ({ scopeId, window }: ScopeWindow): string => `${window.start}/${window.end}/${scopeId}`;

export type { HoldNote };

export interface HoldOperation {
  /** A UUIDv7 of ours. A repeated operation answers the same and takes nothing more. */
  readonly id: string;
  /** The upper bound of the request's cost. 0n: a free model, refused only by spend that has reached a limit. */
  readonly amount: Nano;
  /** The smallest useful amount (the prompt and one token): spend that leaves less refuses, spend that leaves more clamps. */
  readonly minAmount: Nano;
  /** Counters of the scopes with a limit, possibly none. The hold is taken from all of them or from none. */
  readonly counters: ReadonlyArray<Counter>;
  readonly note: HoldNote;
  /** The deadline on the store's clock: a call that arrives later takes nothing. */
  readonly deadline: Millis;
  /** How long the hold lives without a renewal. */
  readonly lease: Millis;
  /** Rates, taken together with the money or not at all; absent where nothing is limited. */
  readonly rates?: RateRequest;
}

/** The answer to a hold. `rates` are present where rates were asked for. */
export type HoldAnswer =
  /** Taken: `amount` is held (less than asked when clamped). */
  | { readonly outcome: 'held'; readonly amount: Nano; readonly rates?: RateReply }
  /** Spend alone leaves too little in this counter. Takes precedence over `limited` and `busy`. */
  | { readonly outcome: 'exceeded'; readonly counter: number; readonly spent: Nano; readonly rates?: RateReply }
  /** Spend leaves enough, a rate does not. Takes precedence over `busy`. */
  | ({ readonly outcome: 'limited'; readonly rates: RateReply } & RateRefusal)
  /** Spend leaves enough, live holds do not. */
  | { readonly outcome: 'busy'; readonly counter: number; readonly rates?: RateReply }
  /** A window is not current on the store's clock: compute the windows again from the reply's `now`. */
  | { readonly outcome: 'window' }
  /** Counters that are not loaded: absent is not zero. */
  | { readonly outcome: 'absent'; readonly counters: ReadonlyArray<number> }
  /** The deadline passed, the id was released, or its lease has ended: nothing is held. */
  | { readonly outcome: 'late' };

export interface SettleOperation {
  readonly id: string;
  /** The true cost, also above the hold. */
  readonly cost: Nano;
  /**
   * Counters for an id that the store does not know (a hold from before the store began). Absent: such an id counts nowhere, so a
   * call that a frozen store runs long after its repeat was booked and forgotten counts nothing.
   */
  readonly counters?: ReadonlyArray<ScopeWindow>;
  /** For an unknown id: the part of `cost` that PostgreSQL has booked, and the counters therefore contain. */
  readonly counted?: Nano;
  /** The other fields of the entry, so any process can book it if this one dies. */
  readonly note?: SettleNote;
  /** Tokens used, for rates; absent: as many as the hold reserved. */
  readonly tokens?: number;
}

export interface ReleaseOperation {
  readonly id: string;
  readonly lease: Millis;
  /** A provider was called in vain: the request counts in rates, its tokens do not. */
  readonly called?: true;
}

/** The note of a settlement. Its `charges` count only where the store does not know the hold. */
export type SettleNote = Omit<Entry, 'id' | 'cost'>;

/** The answer to a settlement. A repeat answers the same and counts nothing more; the first cost stands. */
export type SettleAnswer =
  /** The cost is counted, and the hold is over. */
  | { readonly outcome: 'settled' }
  /** The lease had ended and `charged` was counted then; the counters now show `cost`: book the difference as a correction. */
  | { readonly outcome: 'expired'; readonly charged: Nano }
  /** The hold was released before: nothing is counted. */
  | { readonly outcome: 'released' }
  /** The id is unknown and no counters were named: nothing is counted. */
  | { readonly outcome: 'unknown' }
  /** The id is unknown and these counters are not loaded: nothing is counted, load and repeat. */
  | { readonly outcome: 'absent'; readonly counters: ReadonlyArray<number> };

/** The answer to a release. A repeat answers the same. */
export type ReleaseAnswer =
  /** The hold is freed. An unknown id is refused for one lease. */
  | { readonly outcome: 'released' }
  /** The hold was settled before: nothing changes. */
  | { readonly outcome: 'settled' }
  /** The lease had ended and `charged` was counted then; the counters no longer show it: book the difference as a correction. */
  | { readonly outcome: 'expired'; readonly charged: Nano };

/** A live hold of an earlier epoch: held again regardless of the limits. */
export interface Registration {
  readonly id: string;
  readonly amount: Nano;
  /** The store's clock when the hold was taken. */
  readonly at: Millis;
  readonly known?: Nano;
  /** The booked charge of a lease that had ended. Sent for a hold that is already registered, it frees that hold. */
  readonly charged?: Nano;
  readonly note: HoldNote;
  readonly lease: Millis;
}

/** `spent`: PostgreSQL's sum. */
export interface Load extends ScopeSpend {
  /** Entries that the store still has (`survey`) and that this sum already contains. Absent: none. */
  readonly booked?: ReadonlyArray<EntryName>;
  /** The deadline on the store's clock: a later load changes nothing. Absent: none. */
  readonly deadline?: Millis;
}

export type EntryName = Pick<Entry, 'id' | 'kind'>;

/** One call of at most 64 operations, so that a script stays short (LEDGER 3). They run in this order, each decided alone, all atomically. */
export interface StoreCall {
  /** The epoch of the caller. A store in another epoch, or in none, does nothing. */
  readonly epoch: number;
  /** The caller, and the calls that the store has answered it in this epoch: a store that shows fewer has gone back in time. */
  readonly from?: { readonly process: string; readonly acknowledged: number } | undefined;
  /** The answered calls of other processes, as recorded in PostgreSQL. */
  readonly marks?: ReadonlyMap<string, number>;
  readonly registers?: ReadonlyArray<Registration>;
  /** Repairs of an audit: changes the spend of loaded counters. */
  readonly adjusts?: ReadonlyArray<ScopeWindow & { readonly by: Nano; readonly deadline: Millis }>;
  readonly settles: ReadonlyArray<SettleOperation>;
  readonly releases: ReadonlyArray<ReleaseOperation>;
  /** Renews leases. `known` is the cost of the reply so far, charged if the lease ends (absent: the hold's size). */
  readonly renewals: ReadonlyArray<{ readonly id: string; readonly known?: Nano; readonly lease: Millis }>;
  /** Sets absent counters to their PostgreSQL sums; loaded counters stay as they are. */
  readonly loads: ReadonlyArray<Load>;
  readonly holds: ReadonlyArray<HoldOperation>;
  /** Moves run last. Absent: none. */
  readonly moves?: ReadonlyArray<MoveOperation>;
}

/** A call without operations, to be spread into others. */
export const EMPTY_CALL = { settles: [], releases: [], renewals: [], loads: [], holds: [] } as const;

/** An expired hold: counted at `charged`, to be booked as `expired`. */
export interface Expired {
  readonly id: string;
  readonly charged: Nano;
  readonly note: HoldNote;
}

export interface StoreReply {
  readonly outcome: 'done';
  /** The store's clock, the only one of leases, deadlines and windows. */
  readonly now: Millis;
  /** Calls of this process that the store has counted in this epoch; 0 without `from`. */
  readonly calls: number;
  readonly settles: ReadonlyArray<SettleAnswer>;
  readonly releases: ReadonlyArray<ReleaseAnswer>;
  readonly holds: ReadonlyArray<HoldAnswer>;
  /** Answers to moves; absent without moves. */
  readonly moves?: ReadonlyArray<MoveAnswer>;
  /** Expired holds, repeated until `forget` acknowledges them. */
  readonly expired: ReadonlyArray<Expired>;
}

/** The answer of a store that went back in time, was wiped or rebuilt: nothing was done. */
export interface StaleEpoch {
  readonly outcome: 'epoch';
  readonly now: Millis;
  /** The store's epoch; 0: none. The caller's own epoch: the store shows fewer calls than it has answered. */
  readonly epoch: number;
}

/** A charge that was counted and may not be in PostgreSQL yet. */
export type Part = Pick<Entry, 'id' | 'kind' | 'cost'>;

export interface Survey {
  readonly now: Millis;
  /** One per requested counter, in order. `parts`: charges that the counter contains, or would contain once loaded, beside PostgreSQL's sum. */
  readonly counters: ReadonlyArray<{ readonly spent: Nano | undefined; readonly parts: ReadonlyArray<Part> }>;
}

/** A charge that was counted and not acknowledged, with the fields of its entry. */
export interface UnbookedRecord extends Part {
  readonly hold: HoldNote;
  /** The note of its settlement. Absent: the lease ended, or the release came too late. */
  readonly settlement?: SettleNote;
  /** The store's clock when the charge was counted. */
  readonly since: Millis;
}

/** Records that wait for a process to book them. */
export interface Unbooked {
  readonly records: ReadonlyArray<UnbookedRecord>;
  /** Calls of each process, for `Marks`. */
  readonly calls: ReadonlyMap<string, number>;
  readonly epoch: number;
}

/**
 * Memory, Redis over TCP, Upstash over HTTPS: one promise suite (store.promises.ts). Throws when the store is away or its
 * answer is lost: then it is unknown whether the call was done, and every call may be repeated.
 *
 * A hold counts in every loaded counter of its scopes (`note.charges`) whose window contains the instant it was taken, not
 * only in those that admitted it: after a `budgetDuration` edit a scope has more than one, and policies of both ages are
 * in use for some seconds. So a counter always shows what PostgreSQL's sum of that window will show.
 *
 * Two rules make loading exact: an entry is booked in PostgreSQL only after its cost was counted here, and a counter is
 * dropped only when its window is long over. A load adds to the sum every hold and every unforgotten charge of the
 * counter's window, except entries that the sum already contains: both are read while nothing is being booked
 * (`Books.withLedgerLock`).
 *
 * Rates are taken in the same step as the money, all or none; a refusal takes nothing. Rates are not money: a wiped
 * store starts them empty.
 */
export interface Store {
  call(call: StoreCall): Promise<StoreReply | StaleEpoch>;
  /** Drops the records of booked entries, not of other entries of the same hold. An expired one is remembered for a day, for a late settlement. */
  forget(entries: ReadonlyArray<EntryName>): Promise<void>;
  /** The spend of these counters without holds; undefined when not loaded. */
  read(counters: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<Nano | undefined>>;
  /** Moves the store to this epoch: empty, unless it is there already. Returns the epoch: a higher one stays. */
  begin(epoch: number): Promise<number>;
  /** The state of these counters at one instant. */
  survey(counters: ReadonlyArray<ScopeWindow>): Promise<Survey>;
  /** Records counted at least `idleFor` ago by processes without a call since, and expired ones; oldest first, at most `max`. One call skips at least two thousand records of live processes. */
  unbooked(idleFor: Millis, max: number): Promise<Unbooked>;
  /** A page of the loaded counters, and the start of the next; counters loaded meanwhile may be missed. */
  loaded(from: number, max: number): Promise<{ readonly counters: ReadonlyArray<ScopeWindow>; readonly next?: number }>;
  /** Deletes everything of the instance. */
  clear(): Promise<void>;
}
