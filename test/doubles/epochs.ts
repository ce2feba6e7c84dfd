// The double of epochs: the epoch of an instance, as PostgreSQL keeps it.
import type { Clock } from '#core/ports/clock.ts';
import type { Epochs } from '#core/ports/epochs.ts';
import type { Millis } from '#core/ports/money.ts';

const ALIVE: Millis = 5000;

export interface MemoryEpochs extends Epochs {
  /** The epoch as a transaction of the same database sees it. */
  current(): { readonly epoch: number; readonly isOpen: boolean };
  /** A booking's count of the store's calls. */
  record(epoch: number, calls: number): void;
}

/** The epochs of one instance, shared by its processes. */
export function createMemoryEpochs({ clock }: { readonly clock: Clock }): MemoryEpochs {
  const processes = new Map<string, { readonly joined: number; readonly seenAt: Millis }>();
  let current = { epoch: 0, isOpen: false, raisedAt: clock.now(), calls: 0 };
  const state = async () => {
    const now = clock.now();
    const { epoch, isOpen, raisedAt, calls } = current;
    const living = [...processes.values()].filter(({ seenAt }) => seenAt > now - ALIVE);
    const missing = living.filter((each) => each.joined < epoch).length;
    return { epoch, isOpen, age: now - raisedAt, missing, calls };
  };
  return {
    beat(process, joined) {
      processes.set(process, { joined, seenAt: clock.now() });
      return state();
    },
    state,
    current: () => current,
    record(epoch, calls) {
      if (current.epoch === epoch) current = { ...current, calls: Math.max(current.calls, calls) };
    },
    async raise(from, above) {
      if (current.epoch !== from) return;
      current = { epoch: Math.max(from, above) + 1, isOpen: false, raisedAt: clock.now(), calls: 0 };
    },
    async open(epoch) {
      if (current.epoch === epoch) current = { ...current, isOpen: true };
    },
    async leave(process) {
      processes.delete(process);
    },
  };
}
