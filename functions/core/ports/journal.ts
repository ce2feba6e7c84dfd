// The journal: an append-only file of reservations and settlements (LEDGER 6). It outlives its process and its
// container, but not its Pod: on Kubernetes it is in an `emptyDir`, which is deleted with the Pod.
import type { LedgerRow } from './ledger-rows.ts';
import type { Nano } from './money.ts';

/** The fields of a ledger row other than its cost: with them a reservation that is never settled can be booked. */
export type ReservationRecord = Pick<LedgerRow, 'scopeWindows' | 'model' | 'identifier'>;

export type JournalRecord =
  /**
   * An account of the process, written before its first call; dropped when PostgreSQL has it closed and its
   * charges corrected.
   */
  | { readonly type: 'account'; readonly id: string }
  /**
   * Written when the reservation is made; the upstream is called without waiting for the disk. Written again, and
   * awaited, if the reservation has grown: the largest amount counts.
   */
  | ({ readonly type: 'reserve'; readonly id: string; readonly amount: Nano } & ReservationRecord)
  /** The cost streamed so far: the charge of a stream that is never settled. */
  | { readonly type: 'progress'; readonly id: string; readonly cost: Nano }
  /** Written before the reply's last byte. */
  | { readonly type: 'settle'; readonly row: LedgerRow }
  | { readonly type: 'release'; readonly id: string };

/** Records are durable against the death of the process when `append` resolves, against power loss within a second. */
export interface Journal {
  /** Appends a record. Rejects if it cannot be written (a full disk): then it may or may not be on disk. */
  append(record: JournalRecord): Promise<void>;
  /**
   * Reads the records of an earlier process on the same folder, oldest first, once at start. A record may come twice,
   * and some dropped records may come too.
   */
  replay(): Promise<ReadonlyArray<JournalRecord>>;
  /**
   * Drops the records of these ids, which nobody needs any more: PostgreSQL has the requests, or they were released.
   * The disk may have them until later.
   */
  drop(ids: ReadonlyArray<string>): void;
  /**
   * Deletes all records and takes no more. A journal that lacks records is worse than no journal: a restart would
   * correct the charges of the account, and not book the requests whose records are missing.
   */
  discard(): void;
  close(): Promise<void>;
}
