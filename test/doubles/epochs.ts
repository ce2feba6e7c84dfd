// The double of epochs: the epoch of an instance, as PostgreSQL keeps it.
import type { Clock } from '#core/ports/clock.ts';
import type { Epochs } from '#core/ports/epochs.ts';
import type { Millis } from '#core/ports/money.ts';

const ALIVE: Millis = 5000;

/** The epochs of one instance, shared by its processes. */
export function createMemoryEpochs({ clock }: { readonly clock: Clock }): Epochs {
  const processes = new Map<string, { readonly joined: number; readonly seenAt: Millis }>();
  let current = { epoch: 0, isOpen: false, raisedAt: clock.now() };
  const state = async () => {
    const now = clock.now();
    const { epoch, isOpen, raisedAt } = current;
    const living = [...processes.values()].filter(({ seenAt }) => seenAt > now - ALIVE);
    const awaited = living.filter((each) => each.joined < epoch).length;
    return { epoch, isOpen, age: now - raisedAt, awaited, marks: new Map(), calls: 0 };
  };
  return {
    beat(process, joined) {
      processes.set(process, { joined, seenAt: clock.now() });
      return state();
    },
    state,
    async raise(from, above) {
      if (current.epoch !== from) return;
      current = { epoch: Math.max(from, above) + 1, isOpen: false, raisedAt: clock.now() };
    },
    async open(epoch) {
      if (current.epoch === epoch) current = { ...current, isOpen: true };
    },
    async leave(process) {
      processes.delete(process);
    },
  };
}
