// The books, in PostgreSQL: append-only entries, and a sum per scope and window in the same transaction (LEDGER 2).
import type { Millis, Nano } from './money.ts';
import type { ScopeId, ScopeSpend, ScopeWindow } from './policy.ts';

export type EntryKind = 'settled' | 'expired' | 'correction';

export interface Tokens {
  readonly input: number;
  readonly output: number;
  /** Of the input: read from the provider's cache. */
  readonly cachedInput: number;
  /** Of the input: written to the provider's cache. */
  readonly cacheWrite: number;
}

/** One charge. Unique by (id, kind); `id` is the hold's UUIDv7, whose time picks the partition. */
export interface Entry {
  readonly id: string;
  readonly kind: EntryKind;
  readonly charges: ReadonlyArray<ScopeWindow>;
  /** May be negative for a correction only. */
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
export interface Booked {
  readonly kind: EntryKind;
  readonly cost: Nano;
}

/** How many calls each process had made under this epoch when a batch was booked (ports/epochs.ts). */
export interface Marks {
  readonly epoch: number;
  readonly calls: ReadonlyMap<string, number>;
}

export interface Reading {
  /** Sums of these scope windows, in order; a window without entries is 0n. */
  sums(of: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<ScopeSpend>>;
  /** Which of these ids have an entry: of which kinds, sorted, at what cost. */
  bookedOf(ids: ReadonlyArray<string>): Promise<ReadonlyMap<string, ReadonlyArray<Booked>>>;
}

export interface Books extends Reading {
  /**
   * Inserts what is not there yet and adds it to the sums, all in one transaction. Entries PostgreSQL refuses are put aside
   * in `entry_rejected`. With `marks`, answers the epoch that holds in that transaction.
   */
  book(
    instanceUid: string,
    entries: ReadonlyArray<Entry>,
    marks?: Marks,
  ): Promise<{ readonly rejected: ReadonlyArray<string>; readonly epoch?: number }>;
  /**
   * Nothing of the instance is booked or recounted while `work` runs: what `work` reads here and in the store fits
   * together. When `work` idles for more than 2 s the lock is gone, so what it tells the store carries a deadline of 1 s.
   */
  withLedgerLock<T>(instanceUid: string, work: (reading: Reading) => Promise<T>): Promise<T>;
  /** Which of these scopes another instance has now: keys that were moved there, and their budgets for models where the key is asked for too. */
  scopesOfOtherInstances(instanceUid: string, scopes: ReadonlyArray<ScopeId>): Promise<ReadonlySet<ScopeId>>;
  /**
   * Runs `work` unless another process is at this errand for the instance already: then undefined. What it books is there
   * when this resolves, all or nothing. Bound as `withLedgerLock` is, and repeatable: a batch that is refused makes it run again.
   */
  tryErrandLock<T>(
    instanceUid: string,
    errand: 'drain' | 'audit',
    work: (books: ErrandBooks) => Promise<T>,
  ): Promise<T | undefined>;
}

/** The books on the connection that has the errand's lock: a process that holds a connection never waits for a second one (LEDGER 8). */
export type ErrandBooks = Pick<Books, keyof Reading | 'book' | 'withLedgerLock'>;
