// Epochs of a store, and the processes that have joined each: PostgreSQL remembers, the store may forget (LEDGER 6).
import type { Millis } from './money.ts';

export interface EpochState {
  /** 0: none yet. */
  readonly epoch: number;
  /** False from the moment it is raised until the processes that live have joined it. */
  readonly isOpen: boolean;
  /** How long ago it was raised. */
  readonly age: Millis;
  /** Processes that live and have not joined. */
  readonly awaited: number;
  /** How many calls each process had made, as far as bookings said: a store that shows fewer has gone back in time. */
  readonly marks: ReadonlyMap<string, number>;
}

/** One instance's epoch. Every call may be repeated. Throws `DatabaseUnreachable` when PostgreSQL is away. */
export interface Epochs {
  /** This process lives, and what it has is in the store under the epoch `joined` (0: not yet). Answers what holds now. */
  beat(process: string, joined: number): Promise<EpochState>;
  /** The same without a heartbeat. */
  state(): Promise<EpochState>;
  /**
   * Raises the epoch above both numbers, if it still is `from`; of many processes that try, one does. No request is admitted until `open`.
   * `above`: what the store itself says, should PostgreSQL be the one that was restored.
   */
  raise(from: number, above: number): Promise<void>;
  open(epoch: number): Promise<void>;
  /** This process ends in order: no other waits for it. */
  leave(process: string): Promise<void>;
}
