// Dependencies of a ledger.
import type { Books } from '../ports/books.ts';
import type { Clock, Ids, Log, Metrics } from '../ports/clock.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { Store } from '../ports/store.ts';
import type { StoreMemory } from './membership.ts';

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
