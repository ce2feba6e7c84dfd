// Epochs of an instance, each of which belongs to one store, and the processes that have joined them. They are in
// PostgreSQL; a store may lose its record of an epoch (LEDGER 6).
import type { Millis } from './money.ts';

export interface EpochState {
  /** The epoch; 0: none yet. */
  readonly epoch: number;
  /** False from the raise until the live processes have joined. */
  readonly isOpen: boolean;
  /** The time since the raise. */
  readonly age: Millis;
  /** The number of live processes that use the epoch's store and have not joined it. */
  readonly notJoined: number;
  /**
   * The store's count of all calls in this epoch, as recorded by batches (ledger-database.ts): a store that shows fewer
   * has gone back in time.
   */
  readonly storeCalls: number;
  /** Whether the epoch belongs to another store than the one of this process. */
  readonly isOfOtherStore: boolean;
  /**
   * Whether a live process that has started later than this process has another store, or has joined the epoch: while
   * it lives, this process does not take the epoch to its own store.
   */
  readonly hasLaterProcess: boolean;
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
 * The epochs of one instance. Every call may be repeated. Throws `DatabaseUnreachable` within 2 s if PostgreSQL does
 * not reply.
 */
export interface Epochs {
  /**
   * The heartbeat of a process whose reservations are in the store in the epoch `joinedEpoch` (0: not yet). Returns the
   * current state.
   */
  heartbeat(process: string, joinedEpoch: number): Promise<EpochState>;
  /** The current state, without a heartbeat. */
  state(): Promise<EpochState>;
  /**
   * Raises the epoch above both numbers, if it still is `from`; of many concurrent calls one succeeds, and returns the
   * new epoch. It belongs to the store of this process, and no request is admitted until `open`. `above`: the epoch in
   * the store, which is higher if PostgreSQL was restored. Throws if the instance is deleted.
   */
  raise(from: number, above: number): Promise<number | undefined>;
  open(epoch: number): Promise<void>;
  /** Ends a process cleanly: no other process waits for it. */
  leave(process: string): Promise<void>;
}
