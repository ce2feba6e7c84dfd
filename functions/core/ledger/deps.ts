// Dependencies of a ledger, and what short-lived ledgers share of a store.
import type { AccountBooks } from '../ports/account-books.ts';
import type { Accounts } from '../ports/accounts.ts';
import type { Books } from '../ports/books.ts';
import type { Clock, Ids, Log, Metrics } from '../ports/clock.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';

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

/** Clocks of a process. */
export interface Clocks {
  /** For intervals: nobody sets it. */
  readonly clock: Clock;
  readonly wall: Clock;
}

/** A process's knowledge of its store, as plain data: on Workers, requests that share no I/O share it (LEDGER 7). */
export interface StoreMemory {
  /** The epoch that was open last. 0: none yet. */
  epoch: number;
  /** The store's count of calls in it, as last answered. */
  calls: number;
  /** How far the store's clock is ahead of ours. */
  ahead: Millis;
}

export type StoreCount = Pick<StoreMemory, 'epoch' | 'calls'>;

/** The store's count of calls never falls within an epoch. */
export function learnCalls(store: StoreCount, epoch: number, calls: number): void {
  if (store.epoch === epoch) store.calls = Math.max(store.calls, calls);
}

export const createStoreMemory = (): StoreMemory => ({ epoch: 0, calls: 0, ahead: 0 });

export const afterPromises = (callback: () => void): void => {
  void Promise.resolve().then(callback);
};
