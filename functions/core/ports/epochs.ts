// Epochs of an instance, each of which belongs to one store, and the processes that have joined them. PostgreSQL
// remembers, the store may forget (LEDGER 6).
import type { Millis } from './money.ts';

export interface EpochState {
  /** The epoch; 0: none yet. */
  readonly epoch: number;
  /** False from the raise until the live processes have joined. */
  readonly isOpen: boolean;
  /** The time since the raise. */
  readonly age: Millis;
  /** The number of live processes that use the epoch's store and have not joined it. */
  readonly missing: number;
  /**
   * The store's count of all calls in this epoch, as recorded by batches (ledger-database.ts): a store that shows fewer
   * has gone back in time.
   */
  readonly calls: number;
  /** Whether the epoch belongs to another store than the one of this process. */
  readonly isOfOtherStore: boolean;
  /**
   * Whether a live process that has started later than this process has another store, or has joined the epoch: while it
   * lives, this process does not take the epoch to its own store.
   */
  readonly hasSuccessor: boolean;
  /** The number of live processes that are still in an epoch of another store than the current epoch's. */
  readonly liveOnOtherStores: number;
}

/** The process that uses the epochs: its store, and when it started. */
export interface EpochUser {
  /** The address of the store, without user and password (`storeName`). */
  readonly store: string;
  readonly startedAt: Millis;
}

/**
 * One instance's epoch. Every call may be repeated. Throws `DatabaseUnreachable` when PostgreSQL is away, within 2 s.
 */
export interface Epochs {
  /**
   * The heartbeat of a process whose reservations are in the store in the epoch `joinedEpoch` (0: not yet). Returns the
   * current state.
   */
  beat(process: string, joinedEpoch: number): Promise<EpochState>;
  /** The current state, without a heartbeat. */
  state(): Promise<EpochState>;
  /**
   * Raises the number of the epoch above both numbers, if it still is `from`; of many concurrent calls one succeeds. The
   * epoch then belongs to the store of this process. No request is admitted until `open`.
   * `above`: the store's own epoch, which is higher if PostgreSQL was restored. Throws if the instance is deleted.
   * Returns the new epoch if this call has raised it.
   */
  raise(from: number, above: number): Promise<number | undefined>;
  open(epoch: number): Promise<void>;
  /** Ends a process cleanly: no other process waits for it. */
  leave(process: string): Promise<void>;
}
