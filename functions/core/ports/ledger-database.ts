// The ledger database of one instance, in PostgreSQL: numbered batches, and one closing per account (LEDGER 2, 3, 8).
import type { AccountFigures, AccountRow } from './counter-store.ts';
import type { LedgerQueries, LedgerRow } from './ledger-rows.ts';
import type { Millis } from './money.ts';
import type { ScopeSpend } from './policy.ts';
import type { Recount } from './registry.ts';

export interface Batch {
  readonly epoch: number;
  /**
   * The account of the batch. `batch`: the number of the batch, from 1; a repeated number has the same rows.
   * `callNumber`: the number of the account's last call with a reply. Absent: rows of a process that is between two
   * accounts, booked by their ids alone; only while the epoch is not open.
   */
  readonly account?: { readonly id: string; readonly batch: number; readonly callNumber: number } | undefined;
  /**
   * Whether to close the account in the same transaction, with nothing charged: a clean stop. Then its epoch does not
   * matter. A closing that another process has begun ends: it charges no further page.
   */
  readonly closesAccount?: boolean | undefined;
  /** The store's count of all calls, as of the last reply to the account. */
  readonly storeCalls: number;
  readonly rows: ReadonlyArray<LedgerRow>;
}

/**
 * `tooLate`: another process has closed the account, or the epoch of a batch without an account is open already.
 * `epoch`: the batch is of another epoch. Nothing is booked unless `booked`.
 */
export type BatchOutcome = 'booked' | 'tooLate' | 'epoch';

export interface AccountClosing {
  readonly epoch: number;
  readonly account: string;
  /** A page of the figures as frozen in the store. */
  readonly figures: ReadonlyArray<AccountFigures>;
  /** Whether all figures are charged after this page, so that the closing ends. */
  readonly isLast: boolean;
  /** The number of the last call in the store. Absent: the store has none, or it need not be compared. */
  readonly callNumber?: number | undefined;
  /** The store's count of all calls when the account was frozen. */
  readonly storeCalls: number;
  /** Whether the closing is only done before the epoch is open, while no process reads sums. */
  readonly isRebuild?: boolean | undefined;
  /** The store's clock: the time of the charge. If the counter's window is over, the charge gets a time inside it. */
  readonly at: Millis;
}

/** The ledger row of kind `expired` that charges an account in one counter. */
export interface ExpiredRow extends ScopeSpend {
  readonly id: string;
}

/**
 * The rows of one instance. Every call may be repeated. Throws `DatabaseUnreachable` if PostgreSQL is unreachable:
 * within 2 s; a booking, and a count that has begun, within 5 s.
 */
export interface LedgerDatabase extends LedgerQueries {
  /**
   * Counts, of these counters, those that were never counted, as a recount does (LEDGER 5): those with neither a sum nor
   * an earlier recount of their scope. Their sums are read as usual then. Concurrent calls count once.
   */
  countFirst(counters: ReadonlyArray<Recount>): Promise<void>;
  /**
   * Books rows and their sums in one transaction, each (id, kind) once, and records the batch in the account's row:
   * only in its epoch and while the account is not closed. A batch that was booked before is done again without effect,
   * and is still `booked` if the account was closed afterwards.
   */
  bookBatch(batch: Batch): Promise<{ readonly outcome: BatchOutcome; readonly rejected: ReadonlyArray<string> }>;
  /**
   * Closes an account, page by page, each in a transaction of its own: from the first page on no batch of the account
   * is booked. Each counter is charged once, whoever repeats its page: by one `expired` row for its risk and its
   * unbooked spend beyond the batches that PostgreSQL has. Returns the account's row, and the ledger rows of this page:
   * none if another closing has charged them, or the account closed itself. `epoch`: the closing is of another epoch,
   * or came too late for a rebuild; `wentBack`: the row is open and has a later call than `callNumber`, so the store
   * has gone back in time. In both cases nothing was done.
   */
  close(
    closing: AccountClosing,
  ): Promise<
    | { readonly outcome: 'closed'; readonly row: AccountRow; readonly ledgerRows: ReadonlyArray<LedgerRow> }
    | { readonly outcome: 'epoch' }
    | { readonly outcome: 'wentBack' }
  >;
  /** Reads the rows of these accounts; unknown accounts are left out. */
  accountRows(accounts: ReadonlyArray<string>): Promise<ReadonlyMap<string, AccountRow>>;
  /**
   * Reads the expired rows of these accounts that are not corrected yet. Negative if unbooked corrections were larger
   * than the rest.
   */
  uncorrectedRows(accounts: ReadonlyArray<string>): Promise<ReadonlyArray<ExpiredRow>>;
}
