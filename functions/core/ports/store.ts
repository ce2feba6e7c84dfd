// The store as the ledger asks it: one atomic call, settlements first, then releases, loads and holds (LEDGER 3 to 5, 11).
import type { Entry, EntryKind } from './books.ts';
import type { Millis, Nano } from './money.ts';
import type { ScopeWindow } from './policy.ts';
import type { MoveAnswer, MoveOperation, RateRefusal, RateReply, RateRequest } from './rates.ts';

/** What decides about a hold: the spend of one scope in one window, and the limit that holds now. */
export interface Counter extends ScopeWindow {
  readonly limit: Nano;
}

/** One text per counter: a scope in a window. */
export const counterKey = ({ scopeId, window }: ScopeWindow): string => `${window.start}/${window.end}/${scopeId}`;

/** What an entry needs besides the cost. Kept with the hold, so that any process can book it when its lease ends. */
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
  /** The minimum that makes sense (the prompt and one token): spend that leaves less refuses, spend that leaves more clamps. */
  readonly minAmount: Nano;
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
  /** What the entry needs besides, so that any process can book it should this one be gone. */
  readonly note?: SettleNote;
  /** What it used, for rates; absent: what the hold expected. */
  readonly tokens?: number;
}

export interface ReleaseOperation {
  readonly id: string;
  readonly lease: Millis;
  /** Somebody was called, and nothing came of it: the request counts in rates all the same, its tokens do not. */
  readonly called?: true;
}

/** `charges` count only where the store does not know the hold. */
export type SettleNote = Omit<Entry, 'id' | 'cost'>;

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

/** A hold from an earlier epoch that is still under way: it is set aside whatever the limits say. */
export interface Registration {
  readonly id: string;
  readonly amount: Nano;
  /** When it was taken, on the store's clock. */
  readonly at: Millis;
  readonly known?: Nano;
  /** Its lease had ended, and PostgreSQL has been told that it cost so much. Told of one that is registered and held, it frees that. */
  readonly charged?: Nano;
  readonly note: HoldNote;
  readonly lease: Millis;
}

export interface Load extends ScopeWindow {
  /** PostgreSQL's sum. */
  readonly spent: Nano;
  /** Entries that the store still has (`survey`) and that are in this sum already. Absent: none. */
  readonly booked?: ReadonlyArray<EntryName>;
  /** On the store's clock: a load that comes later changes nothing. Absent: never too late. */
  readonly deadline?: Millis;
}

export interface EntryName {
  readonly id: string;
  readonly kind: EntryKind;
}

/** At most 64 operations in all, so that a script stays short (LEDGER 3). Done in this order, each judged alone, all in one step. */
export interface StoreCall {
  /** A store that lives under another epoch, or under none, does nothing at all. */
  readonly epoch: number;
  /** Who calls, and how many calls the store has answered it under this epoch: a store that shows fewer has gone back in time. */
  readonly from?: { readonly process: string; readonly acknowledged: number } | undefined;
  /** The same of other processes, as PostgreSQL knows it. */
  readonly marks?: ReadonlyMap<string, number>;
  readonly registers?: ReadonlyArray<Registration>;
  /** Changes the spend of counters that are loaded: what an audit found. */
  readonly adjusts?: ReadonlyArray<ScopeWindow & { readonly by: Nano; readonly deadline: Millis }>;
  readonly settles: ReadonlyArray<SettleOperation>;
  readonly releases: ReadonlyArray<ReleaseOperation>;
  /** Keeps holds alive; `known` is what the reply has cost so far, charged should the lease end (absent: the hold's size). */
  readonly renewals: ReadonlyArray<{ readonly id: string; readonly known?: Nano; readonly lease: Millis }>;
  /** Sets counters that are absent to their PostgreSQL sums; a counter that is there stays as it is. */
  readonly loads: ReadonlyArray<Load>;
  readonly holds: ReadonlyArray<HoldOperation>;
  /** Done last. Absent: none. */
  readonly moves?: ReadonlyArray<MoveOperation>;
}

/** A call that asks for nothing: to be spread into one that does. */
export const EMPTY_CALL = { settles: [], releases: [], renewals: [], loads: [], holds: [] } as const;

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
  /** How many calls of this process the store has counted under this epoch; 0 where the caller was not named. */
  readonly calls: number;
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
  /** 0: none. The one that was named: it shows less than it has answered. */
  readonly epoch: number;
}

/** Something that was counted and may not be in PostgreSQL yet. */
export interface Part extends EntryName {
  readonly cost: Nano;
}

export interface Survey {
  readonly now: Millis;
  /** In the order of the question. `parts`: what this counter counts, or would count when it is loaded, beside PostgreSQL's sum. */
  readonly counters: ReadonlyArray<{ readonly spent: Nano | undefined; readonly parts: ReadonlyArray<Part> }>;
}

/** A charge that was counted and not acknowledged, with what its entry needs. */
export interface UnbookedRecord extends Part {
  readonly hold: HoldNote;
  /** What its settlement said. Absent: its lease ended, or it was released too late. */
  readonly said?: SettleNote;
  /** When it was counted. */
  readonly since: Millis;
}

/** What the store keeps for the process that books it. */
export interface Unbooked {
  readonly records: ReadonlyArray<UnbookedRecord>;
  /** How many calls each process has made, for `Marks`. */
  readonly calls: ReadonlyMap<string, number>;
  readonly epoch: number;
}

/**
 * Memory, Redis over TCP, Upstash over HTTPS: one promise suite (store.promises.ts). Throws when the store cannot be
 * asked or its answer is lost: then it is not known whether the call was done, and every call may be repeated.
 *
 * A hold counts in every loaded counter of its scopes (`note.charges`) whose window holds the instant it was taken, not
 * only in those it was judged by: after a `budgetDuration` edit a scope has more than one, and policies of both ages are
 * in use for some seconds. So a counter always shows what PostgreSQL's sum of that window will show.
 *
 * Two rules make loading exact: an entry is booked in PostgreSQL only after its cost was counted here, and a counter is
 * dropped only when its window is long over. A counter that is loaded takes in what is held, or counted and not
 * forgotten, and falls into its window, except what its sum has already: both are read while nothing is being booked
 * (`Books.withLedgerLock`).
 *
 * Rates are taken in the same step as the money, all or none; what is refused takes nothing. They are no money: a store
 * that was wiped starts them empty.
 */
export interface Store {
  call(call: StoreCall): Promise<StoreReply | StaleEpoch>;
  /** These entries are in PostgreSQL: records of theirs may go, not another entry's of the same hold. An expired one is remembered for a day, for a settlement that comes late. */
  forget(entries: ReadonlyArray<EntryName>): Promise<void>;
  /** Spend of these counters as the store has it, holds left out; undefined when not loaded. */
  read(counters: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<Nano | undefined>>;
  /** Lives under this epoch from now on: empty, unless it does already. Answers the epoch: a higher one stays. */
  begin(epoch: number): Promise<number>;
  /** All of it is seen at one instant. */
  survey(counters: ReadonlyArray<ScopeWindow>): Promise<Survey>;
  /** Counted so long ago by a process that has been silent as long, or expired; oldest first, at most `max`. Those of the living are passed over: two thousand in a call at least. */
  unbooked(silence: Millis, max: number): Promise<Unbooked>;
  /** Loaded counters, some at a time, and where to go on; a counter may be missed that is loaded meanwhile. */
  loaded(from: number, max: number): Promise<{ readonly counters: ReadonlyArray<ScopeWindow>; readonly next?: number }>;
  /** Nothing of the instance is left. */
  clear(): Promise<void>;
}
