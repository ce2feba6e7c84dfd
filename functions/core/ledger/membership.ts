// Membership: the epoch under which this process speaks to the store, closed while the store is rebuilt (LEDGER 6).
import type { StoreCall } from '../ports/store.ts';
import { type LastAnswer, noAnswer } from './store-clock.ts';

export interface Membership {
  /** The last one that was open. */
  epoch(): number;
  isOpen(): boolean;
  /** Open, and under this one. */
  isIn(epoch: number): boolean;
  /** The caller, and what the store must remember of it; undefined where nothing is counted. */
  from(): StoreCall['from'];
  /** The store has counted so many calls of ours. */
  answered(epoch: number, calls: number): void;
  /** The store that lived under `of` lives under `storeEpoch` now: nothing is sent until it is open again. */
  leave(epoch: number, storeEpoch: number): void;
  /** Why it cannot be rebuilt now; undefined while it is being rebuilt, or open. */
  whyAway(): unknown;
  /** Resolves when it is open. */
  opened(): Promise<void>;
}

/** A store that never forgets while its process lives: always open. */
export function createFixedMembership(epoch: number): Membership {
  return {
    epoch: () => epoch,
    isOpen: () => true,
    isIn: () => true,
    from: () => undefined,
    answered: () => undefined,
    leave(_, storeEpoch) {
      throw new Error(`the store lives under epoch ${storeEpoch}, not ${epoch}`);
    },
    whyAway: () => undefined,
    opened: async () => undefined,
  };
}

export interface OpenableMembership extends Membership {
  open(epoch: number): void;
  fail(why: unknown): void;
  /** Counts anew: another epoch, another store. */
  count(epoch: number): NonNullable<StoreCall['from']>;
}

/** What a process knows of its store, as plain data: on Workers requests that share no I/O share it (LEDGER 7). */
export interface StoreMemory {
  /** The caller; many may call by one name, each with the highest count that it was answered. */
  readonly process: string;
  /** The epoch that was open last. 0: none yet. */
  epoch: number;
  counted: { readonly epoch: number; readonly acknowledged: number };
  /** To any of those who share it: a store that answers others is not silent. */
  readonly last: LastAnswer;
}

export const createStoreMemory = (process: string): StoreMemory => ({
  ...{ process, epoch: 0 },
  counted: { epoch: 0, acknowledged: 0 },
  last: noAnswer(),
});

export function createMembership(memory: StoreMemory, onLeave: (storeEpoch: number) => void): OpenableMembership {
  let epoch = 0;
  let isOpen = false;
  let why: unknown;
  let waiting = Promise.withResolvers<void>();

  const count = (of: number) => {
    if (memory.counted.epoch !== of) memory.counted = { epoch: of, acknowledged: 0 };
    return { process: memory.process, acknowledged: memory.counted.acknowledged };
  };

  return {
    epoch: () => epoch,
    isOpen: () => isOpen,
    isIn: (of) => isOpen && of === epoch,
    from: () => count(epoch),
    count,
    answered(of, calls) {
      const { counted } = memory;
      if (of !== counted.epoch || calls <= counted.acknowledged) return;
      memory.counted = { epoch: of, acknowledged: calls };
    },
    leave(of, storeEpoch) {
      if (!isOpen || of !== epoch) return;
      isOpen = false;
      waiting = Promise.withResolvers();
      onLeave(storeEpoch);
    },
    whyAway: () => why,
    opened: () => waiting.promise,
    open(of) {
      epoch = of;
      memory.epoch = of;
      isOpen = true;
      why = undefined;
      waiting.resolve();
    },
    fail(error) {
      why = error;
    },
  };
}
