// Parts that processes share: a store that can be wiped and set back to any earlier step, and books with epochs.

import { createMemoryStore } from '#adapters/memory/store.ts';
import type { Books } from '#core/ports/books.ts';
import type { Epochs } from '#core/ports/epochs.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';
import type { Store } from '#core/ports/store.ts';
import { createMemoryBooks, type MemoryBooks } from '../../doubles/books.ts';
import { createMemoryEpochs } from '../../doubles/epochs.ts';

export interface ForgetfulStore {
  readonly store: Store;
  wipe(): void;
  /** The number of steps that it can be set back. */
  steps(): number;
  /** Sets the store back by `steps` steps, as if they never happened. */
  restore(steps: number): void;
}

interface Done {
  readonly at: Millis;
  readonly isStep: boolean;
  again(store: Store): unknown;
}

/** The store rebuilds an earlier state by replaying all calls up to it, at the same times. */
export function createForgetfulStore(now: () => Millis): ForgetfulStore {
  let replayed: Millis | undefined;
  const clock = { now: () => replayed ?? now() };
  let inner = createMemoryStore({ clock, epoch: 0 });
  let done: Done[] = [];
  const run = <T>(isStep: boolean, work: (store: Store) => Promise<T>): Promise<T> => {
    done.push({ at: now(), isStep, again: work });
    return work(inner);
  };
  return {
    store: {
      call: (call) => run(true, (store) => store.call(call)),
      forget: (entries) => run(true, (store) => store.forget(entries)),
      begin: (epoch) => run(true, (store) => store.begin(epoch)),
      clear: () => run(true, (store) => store.clear()),
      read: (of) => run(false, (store) => store.read(of)),
      survey: (of) => run(false, (store) => store.survey(of)),
      unbooked: (idleFor, max) => run(false, (store) => store.unbooked(idleFor, max)),
      loaded: (from, most) => run(false, (store) => store.loaded(from, most)),
    },
    wipe() {
      done = [];
      inner = createMemoryStore({ clock, epoch: 0 });
    },
    steps: () => done.filter(({ isStep }) => isStep).length,
    restore(steps) {
      const places = done.flatMap(({ isStep }, place) => (isStep ? [place] : []));
      done = done.slice(0, places.at(-steps) ?? 0);
      inner = createMemoryStore({ clock, epoch: 0 });
      for (const { at, again } of done) {
        replayed = at;
        void again(inner);
      }
      replayed = undefined;
    },
  };
}

export interface SharedDatabase {
  readonly books: Books;
  readonly epochs: Epochs;
  readonly entries: MemoryBooks['entries'];
  /** The epoch in which each process has registered its holds. */
  readonly joined: ReadonlyMap<string, number>;
}

/** Books that also record the marks of bookings and return the current epoch, which the double does not. */
export function createSharedDatabase(now: () => Millis, timer: Timer, onOpen: (epoch: number) => void): SharedDatabase {
  const books = createMemoryBooks(timer);
  const epochs = createMemoryEpochs({ clock: { now } });
  const joined = new Map<string, number>();
  const marks = new Map<string, number>();
  const state = async () => {
    const seen = await epochs.state();
    const ofEpoch = [...marks].filter(([process, calls]) => calls > 0 && joined.get(process) === seen.epoch);
    return { ...seen, marks: new Map(ofEpoch) };
  };
  const book: Books['book'] = async (uid, entries, counts) => {
    const booked = await books.book(uid, entries);
    for (const [process, calls] of counts?.calls ?? []) {
      if (joined.get(process) === counts?.epoch) marks.set(process, Math.max(calls, marks.get(process) ?? 0));
    }
    return { ...booked, epoch: (await epochs.state()).epoch };
  };
  return {
    joined,
    entries: () => books.entries(),
    books: {
      sums: (of) => books.sums(of),
      bookedOf: (ids) => books.bookedOf(ids),
      withLedgerLock: (uid, work) => books.withLedgerLock(uid, work),
      tryErrandLock: (uid, errand, work) => books.tryErrandLock(uid, errand, (held) => work({ ...held, book })),
      scopesOfOtherInstances: (uid, scopes) => books.scopesOfOtherInstances(uid, scopes),
      book,
    },
    epochs: {
      state,
      async beat(process, of) {
        if (joined.get(process) !== of) marks.set(process, 0);
        joined.set(process, of);
        await epochs.beat(process, of);
        return state();
      },
      raise: (from, above) => epochs.raise(from, above),
      async open(epoch) {
        onOpen(epoch);
        await epochs.open(epoch);
      },
      leave: (process) => epochs.leave(process),
    },
  };
}
