// Dependencies of a ledger, and its memory of a store.
import type { Books } from '../ports/books.ts';
import type { Clock, Ids, Log, Metrics } from '../ports/clock.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { Store } from '../ports/store.ts';

export interface LedgerDependencies {
  readonly instanceUid: string;
  readonly store: Store;
  readonly books: Books;
  /** Absent where the store never forgets while this process lives, and no other process uses it. */
  readonly epochs?: Epochs;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly timer: Timer;
  /** Calls back after the requests at hand have been read, so that they share a store call. Default: after the current promises. */
  readonly tick?: (callback: () => void) => void;
  /** Set where a ledger serves one request only (Workers): the next requests reuse what it learned of the store. */
  readonly isolate?: StoreMemory | undefined;
}

/** A process's knowledge of its store, as plain data: on Workers, requests that share no I/O share it (LEDGER 7). */
export interface StoreMemory {
  /** The caller's name. Several ledgers may share it, each with the highest count that it was answered. */
  readonly process: string;
  /** The epoch that was open last. 0: none yet. */
  epoch: number;
  counted: { readonly epoch: number; readonly acknowledged: number };
  /** The last answer to any ledger that shares this: a store that answers others is alive. */
  readonly last: LastAnswer;
}

export interface LastAnswer {
  heardAt: Millis;
  sentAt: Millis;
}
