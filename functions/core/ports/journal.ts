// The outbox: an append-only file of holds and settlements, which outlives its process (LEDGER 6).
import type { Entry } from './ledger-rows.ts';
import type { Nano } from './money.ts';

/** The fields of an entry besides its cost: with them a hold that is never settled can be booked. */
export type HoldNote = Pick<Entry, 'charges' | 'model' | 'identifier'>;

export type OutboxRecord =
  /** An account of the process, written before its first call; done when PostgreSQL has it closed and its charges corrected. */
  | { readonly type: 'account'; readonly id: string }
  /** Written before the upstream is called, and again where the hold has grown: the largest amount counts. */
  | ({ readonly type: 'hold'; readonly id: string; readonly amount: Nano } & HoldNote)
  /** The cost streamed so far: the charge of a hold that is never settled. */
  | { readonly type: 'progress'; readonly id: string; readonly known: Nano }
  /** Written before the reply's last byte. */
  | { readonly type: 'settle'; readonly entry: Entry }
  /** The charge of a lease that ended while the request ran; a settlement that follows is a correction of it. */
  | { readonly type: 'expired'; readonly entry: Entry }
  | { readonly type: 'release'; readonly id: string };

/** Records are durable against the death of the process when `append` resolves, against power loss within a second. */
export interface Outbox {
  /** Appends a record. Rejects when it cannot be written (a full disk): nothing is promised of it. */
  append(record: OutboxRecord): Promise<void>;
  /** The unfinished records of an earlier process on the same folder, oldest first; read once at start. A record may come twice. */
  recover(): Promise<ReadonlyArray<OutboxRecord>>;
  /** Drops the records of ids that are in PostgreSQL or released. */
  done(ids: ReadonlyArray<string>): void;
  /** Deletes all records and takes no more. One that lacks records is worse than none: it would take back what was charged for them. */
  discard(): void;
  close(): Promise<void>;
}
