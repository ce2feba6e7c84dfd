// What has been charged? PostgreSQL: append-only entries, and a sum per scope and window in the same transaction (LEDGER 2).
import type { Millis, Nano } from './money.ts';
import type { ScopeSpend, ScopeWindow } from './policy.ts';

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

export interface Books {
  /** Sums of these scope windows, in order; a window without entries is 0n. */
  sums(of: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<ScopeSpend>>;
  /** Inserts what is not there yet and adds it to the sums, all in one transaction. Entries PostgreSQL refuses are put aside in `entry_rejected`. */
  book(instanceUid: string, entries: ReadonlyArray<Entry>): Promise<{ readonly rejected: ReadonlyArray<string> }>;
  /** Which of these ids have an entry, and of which kinds. */
  kindsOf(ids: ReadonlyArray<string>): Promise<ReadonlyMap<string, ReadonlyArray<EntryKind>>>;
}
