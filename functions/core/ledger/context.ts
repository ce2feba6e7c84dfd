// The context that all parts of a ledger share: its dependencies, its clocks, and its account.

import type { Clock, Ids, Log, Metrics } from '../ports/clock.ts';
import type { AccountCall, AccountReply, CounterStore } from '../ports/counter-store.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Journal } from '../ports/journal.ts';
import type { LedgerDatabase } from '../ports/ledger-database.ts';
import type { LedgerReader } from '../ports/ledger-rows.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Account, LeaveReason, StoreCount, StoreState } from './account.ts';

export interface LedgerDependencies {
  readonly instanceUid: string;
  readonly counterStore: CounterStore;
  readonly database: LedgerDatabase & Pick<LedgerReader, 'scopesOfOtherInstances'>;
  readonly epochs: Epochs;
  readonly journal: Journal;
  readonly clock: Clock;
  /** A clock that nobody sets, for intervals; it may stand still while the machine sleeps. Default: `clock`. */
  readonly monotonic?: Clock | undefined;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly timer: Timer;
  /**
   * Calls back after the requests at hand have been read, so that they share a call. Default: after the current
   * promises.
   */
  readonly tick?: ((callback: () => void) => void) | undefined;
  /**
   * The name of its heartbeat. Default: drawn. One that serves an instance alone has a fixed name: nobody waits for the
   * process before it.
   */
  readonly process?: string | undefined;
  /** Set where a ledger serves one request only (Workers): the next requests reuse what it learned of the store. */
  readonly isolate?: StoreState | undefined;
}

/**
 * The part of it that maintenance needs, also without a ledger. Every answer of `counterStore` and `database` has a
 * timeout.
 */
export interface StoreContext
  extends Pick<LedgerDependencies, 'instanceUid' | 'counterStore' | 'database' | 'timer' | 'log' | 'metrics'> {
  readonly store: StoreCount;
  /** The store's clock. */
  now(): Millis;
}

export interface LedgerContext extends StoreContext, Omit<LedgerDependencies, 'clock' | 'monotonic'> {
  /** For intervals: nobody sets it. */
  readonly clock: Clock;
  readonly wall: Clock;
  readonly account: Account;
  readonly process: string;
  /** A request waits for a call. */
  callNow(): void;
  /** Something changed that nobody waits for. */
  callSoon(): void;
  leaveAccount(why: LeaveReason): void;
  /** The disk refused a record. */
  journalFailed(cause: unknown): void;
  /** One call, outside their turn. */
  callStore(call: AccountCall): Promise<AccountReply>;
}
