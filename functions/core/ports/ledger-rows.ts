// Ledger rows, in PostgreSQL: append-only, with a sum per scope and window in the same transaction (LEDGER 2).
import type { Millis, Nano } from './money.ts';
import type { ScopeId, ScopeSpend, ScopeWindow } from './policy.ts';

/**
 * `settled`: the charge of one request. `expired`: the charge of a closed account in one counter, for all of its
 * requests that PostgreSQL did not have. It is named after the account, whose lease has ended, or which its own process
 * has closed at a restart. `correction`: the same amount taken back, because the requests are booked one by one.
 */
export type LedgerRowKind = 'settled' | 'expired' | 'correction';

export interface Tokens {
  readonly input: number;
  readonly output: number;
  /** Part of `input`: tokens read from the provider's cache. */
  readonly cachedInput: number;
  /** Part of `input`: tokens written to the provider's cache. */
  readonly cacheWrite: number;
}

/** One charge. Unique by (id, kind); `id` is the reservation's UUIDv7, whose time decides the partition. */
export interface LedgerRow {
  readonly id: string;
  readonly kind: LedgerRowKind;
  /** All scopes that are charged, with or without a limit. */
  readonly scopeWindows: ReadonlyArray<ScopeWindow>;
  /** The cost; never negative if a request settled it. */
  readonly cost: Nano;
  readonly tokens: Tokens;
  readonly model: string;
  /** `identifier` of the model entry that served. */
  readonly identifier: string;
  /** True when the provider gave no usage and the cost is our estimate. */
  readonly estimated: boolean;
  readonly settledAt: Millis;
}

/** A row that PostgreSQL has. */
export type BookedLedgerRow = Pick<LedgerRow, 'kind' | 'cost'>;

export interface LedgerQueries {
  /**
   * Reads the sums of these scope windows, in order; a window without rows is 0n. A row in the table `entry_rejected`
   * counts as spent until a person decides (LEDGER 6): in the window that it charged, and in one that an edit has put
   * in its place.
   */
  sums(counters: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<ScopeSpend>>;
  /** Reads the rows of these ids: kinds, sorted, with their costs. */
  bookedOf(ids: ReadonlyArray<string>): Promise<ReadonlyMap<string, ReadonlyArray<BookedLedgerRow>>>;
}

export interface LedgerReader extends LedgerQueries {
  /**
   * The scopes among these that another instance has now: keys that moved there, and their model budgets if the key is
   * among them too.
   */
  scopesOfOtherInstances(instanceUid: string, scopes: ReadonlyArray<ScopeId>): Promise<ReadonlySet<ScopeId>>;
}
