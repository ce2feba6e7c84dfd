// The context that all parts of a ledger share: its dependencies, its clocks, and its account.

import type { Clock, Ids, Log, Metrics } from '../ports/clock.ts';
import type { AccountCall, AccountReply, Accounts } from '../ports/counter-store.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Outbox } from '../ports/journal.ts';
import type { AccountBooks } from '../ports/ledger-database.ts';
import type { Books } from '../ports/ledger-rows.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Account, Loss, StoreCount, StoreMemory } from './account.ts';

export interface LedgerDependencies {
  readonly instanceUid: string;
  readonly accounts: Accounts;
  readonly books: AccountBooks & Pick<Books, 'scopesOfOtherInstances'>;
  readonly epochs: Epochs;
  readonly outbox: Outbox;
  readonly clock: Clock;
  /** A clock that nobody sets, for intervals; it may stand still while the machine sleeps. Default: `clock`. */
  readonly monotonic?: Clock | undefined;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly timer: Timer;
  /** Calls back after the requests at hand have been read, so that they share a call. Default: after the current promises. */
  readonly tick?: ((callback: () => void) => void) | undefined;
  /** The name of its heartbeat. Default: drawn. One that serves an instance alone has a fixed name: nobody waits for the process before it. */
  readonly process?: string | undefined;
  /** Set where a ledger serves one request only (Workers): the next requests reuse what it learned of the store. */
  readonly isolate?: StoreMemory | undefined;
}

/** The part of it that maintenance needs, also without a ledger. Every answer of `accounts` and `books` has a timeout. */
export interface StoreContext
  extends Pick<LedgerDependencies, 'instanceUid' | 'accounts' | 'books' | 'timer' | 'log' | 'metrics'> {
  readonly store: StoreCount;
  /** The store's clock. */
  now(): Millis;
}

export interface Context extends StoreContext, Omit<LedgerDependencies, 'clock' | 'monotonic'> {
  /** For intervals: nobody sets it. */
  readonly clock: Clock;
  readonly wall: Clock;
  readonly account: Account;
  readonly process: string;
  /** A request waits for a call. */
  urgent(): void;
  /** Something changed that nobody waits for. */
  news(): void;
  leave(why: Loss): void;
  /** The disk refused a record. */
  refused(cause: unknown): void;
  /** One call, outside their turn. */
  ask(call: AccountCall): Promise<AccountReply>;
}
