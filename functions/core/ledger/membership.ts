// Membership of a process in an epoch of the store, closed while the store is rebuilt (LEDGER 6).
import type { StoreCall } from '../ports/store.ts';
import type { StoreMemory } from './deps.ts';
import { noAnswer } from './store-clock.ts';

export interface Membership {
  /** The epoch that was open last. */
  epoch(): number;
  isOpen(): boolean;
  /** Whether this epoch is the open one. */
  isIn(epoch: number): boolean;
  /** The caller and its acknowledged calls; undefined where calls are not counted. */
  from(): StoreCall['from'];
  /** Records how many calls of this process the store has counted. */
  answered(epoch: number, calls: number): void;
  /** Leaves `epoch`, because the store is in `storeEpoch`: nothing is sent until an epoch is open again. */
  leave(epoch: number, storeEpoch: number): void;
  /** Why the store cannot be rebuilt now; undefined while it is being rebuilt, or open. */
  whyAway(): unknown;
  /** Resolves when an epoch is open. */
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
      throw new Error(`the store is in epoch ${storeEpoch}, not ${epoch}`);
    },
    whyAway: () => undefined,
    opened: async () => undefined,
  };
}

export interface OpenableMembership extends Membership {
  open(epoch: number): void;
  fail(why: unknown): void;
  /** The caller in this epoch; the count restarts with a new epoch. */
  count(epoch: number): NonNullable<StoreCall['from']>;
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
