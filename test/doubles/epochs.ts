// The double of epochs: the epoch of an instance, as PostgreSQL keeps it.
import type { Clock } from '#core/ports/clock.ts';
import type { Epochs, EpochUser } from '#core/ports/epochs.ts';
import type { Millis } from '#core/ports/money.ts';

const ALIVE: Millis = 5000;

export interface MemoryEpochs extends Epochs {
  /** The same epochs for a process with this store; the others have one store, and started at the same time. */
  of(user: EpochUser): Epochs;
  /** The epoch as a transaction of the same database sees it. */
  current(): { readonly epoch: number; readonly isOpen: boolean };
  /** A booking's count of the store's calls. */
  record(epoch: number, storeCalls: number): void;
}

interface GatewayProcess extends EpochUser {
  readonly joined: number;
  readonly seenAt: Millis;
}

/** The epochs of one instance, shared by its processes. */
export function createMemoryEpochs({ clock }: { readonly clock: Clock }): MemoryEpochs {
  const processes = new Map<string, GatewayProcess>();
  const first: EpochUser = { store: 'store', startedAt: 0 };
  let current = { epoch: 0, store: '', isOpen: false, raisedAt: clock.now(), storeCalls: 0 };
  const of = (user: EpochUser): Epochs => {
    const state = async () => {
      const now = clock.now();
      const { epoch, isOpen, raisedAt, storeCalls } = current;
      const store = current.store || user.store;
      const live = [...processes.values()].filter(({ seenAt }) => seenAt > now - ALIVE);
      return {
        epoch,
        isOpen,
        age: now - raisedAt,
        storeCalls,
        notJoined: live.filter((each) => each.store === store && each.joined < epoch).length,
        isOfOtherStore: store !== user.store,
        hasLaterProcess: live.some(
          (each) =>
            (each.store !== user.store || (epoch > 0 && each.joined === epoch)) && each.startedAt > user.startedAt,
        ),
        liveOnOtherStores: live.filter((each) => each.store !== store && each.joined > 0).length,
      };
    };
    return {
      heartbeat(process, joined) {
        processes.set(process, { ...user, joined, seenAt: clock.now() });
        return state();
      },
      state,
      async raise(from, above) {
        if (current.epoch !== from) return undefined;
        const epoch = Math.max(from, above) + 1;
        current = { epoch, store: user.store, isOpen: false, raisedAt: clock.now(), storeCalls: 0 };
        return epoch;
      },
      async open(epoch) {
        if (current.epoch === epoch) current = { ...current, isOpen: true };
      },
      async leave(process) {
        processes.delete(process);
      },
    };
  };
  return {
    ...of(first),
    of,
    current: () => current,
    record(epoch, storeCalls) {
      if (current.epoch === epoch) current = { ...current, storeCalls: Math.max(current.storeCalls, storeCalls) };
    },
  };
}
