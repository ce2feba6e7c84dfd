// The books, in PostgreSQL: append-only entries, and a sum per scope and window in the same transaction (LEDGER 2).
import type { Millis, Nano } from './money.ts';
import type { ScopeId, ScopeSpend, ScopeWindow } from './policy.ts';

export type EntryKind = 'settled' | 'expired' | 'correction';

export interface Tokens {
  readonly input: number;
  readonly output: number;
  /** Part of `input`: tokens read from the provider's cache. */
  readonly cachedInput: number;
  /** Part of `input`: tokens written to the provider's cache. */
  readonly cacheWrite: number;
}

/** One charge. Unique by (id, kind); `id` is the hold's UUIDv7, whose time picks the partition. */
export interface Entry {
  readonly id: string;
  readonly kind: EntryKind;
  /** All scopes that pay, with or without a limit. */
  readonly charges: ReadonlyArray<ScopeWindow>;
  /** The cost; never negative where a request settled it. */
  readonly cost: Nano;
  readonly tokens: Tokens;
  readonly model: string;
  /** `identifier` of the model entry that served. */
  readonly identifier: string;
  /** True when the provider gave no usage and the cost is our estimate. */
  readonly estimated: boolean;
  readonly settledAt: Millis;
}

/** An entry that PostgreSQL has. */
export type Booked = Pick<Entry, 'kind' | 'cost'>;

/** The calls of each process in this epoch when a batch was booked (ports/epochs.ts). */
export interface Marks {
  readonly epoch: number;
  readonly calls: ReadonlyMap<string, number>;
}

export interface Reading {
  /** Sums of these scope windows, in order; a window without entries is 0n. */
  sums(of: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<ScopeSpend>>;
  /** The entries of these ids: kinds, sorted, with their costs. */
  bookedOf(ids: ReadonlyArray<string>): Promise<ReadonlyMap<string, ReadonlyArray<Booked>>>;
}

export interface Books extends Reading {
  /**
   * Inserts new entries and adds them to the sums, in one transaction. Entries that PostgreSQL refuses go to
   * `entry_rejected`. With `marks`, returns the epoch as of that transaction.
   */
  book(
    instanceUid: string,
    entries: ReadonlyArray<Entry>,
    marks?: Marks,
  ): Promise<{ readonly rejected: ReadonlyArray<string>; readonly epoch?: number }>;
  /**
   * Excludes bookings and recounts of the instance while `work` runs, so its reads here and in the store are consistent.
   * When `work` idles for more than 2 s the lock is lost, so its store calls carry a deadline of 1 s.
   */
  withLedgerLock<T>(instanceUid: string, work: (reading: Reading) => Promise<T>): Promise<T>;
  /** The scopes among these that another instance has now: keys that moved there, and their model budgets if the key is among them too. */
  scopesOfOtherInstances(instanceUid: string, scopes: ReadonlyArray<ScopeId>): Promise<ReadonlySet<ScopeId>>;
  /**
   * Runs `work` unless another process runs this errand for the instance: then undefined. Its bookings are committed
   * when this resolves, all or nothing. Bound as `withLedgerLock` is. `work` must be repeatable: a refused batch makes it run again.
   */
  tryErrandLock<T>(
    instanceUid: string,
    errand: 'drain' | 'audit',
    work: (books: ErrandBooks) => Promise<T>,
  ): Promise<T | undefined>;
}

/** Books on the connection with the errand's lock: a process that holds a connection never waits for a second one (LEDGER 8). */
export type ErrandBooks = Pick<Books, keyof Reading | 'book' | 'withLedgerLock'>;
