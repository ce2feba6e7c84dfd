// Parts that processes share: a counter store that can be wiped and restored to any earlier step, and PostgreSQL.

import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import type { CounterStore } from '#core/ports/counter-store.ts';
import type { Epochs } from '#core/ports/epochs.ts';
import type { Millis } from '#core/ports/money.ts';
import { counterKey } from '#core/ports/policy.ts';
import { createMemoryEpochs } from '../../doubles/epochs.ts';
import { createMemoryLedgerDatabase, type MemoryLedgerDatabase } from '../../doubles/ledger-database.ts';
import { createMemoryLedgerRows, type MemoryLedgerRows } from '../../doubles/ledger-rows.ts';

export interface RestorableStore {
  readonly counterStore: CounterStore;
  wipe(): void;
  /** The number of steps that it can be restored by. */
  steps(): number;
  /** Restores the state before the last `steps` steps. */
  restore(steps: number): void;
  now(): Millis;
  /** Changes its clock by so many milliseconds. */
  set(by: Millis): void;
}

interface Step {
  readonly at: Millis;
  readonly isStep: boolean;
  repeat(counterStore: CounterStore): unknown;
}

/**
 * The store has pages of one figure, and rebuilds an earlier state by replaying all calls up to it, at the same times.
 * `onFrozen`: an account was frozen because its lease had ended.
 */
export function createRestorableStore(now: () => Millis, onFrozen: (account: string) => void): RestorableStore {
  let ahead = 0;
  let replayed: Millis | undefined;
  // A clock that is set back stands still: the script keeps the latest time.
  let latest = 0;
  const clock = {
    now() {
      latest = Math.max(latest, now() + ahead);
      return replayed ?? latest;
    },
  };
  let inner = createMemoryCounterStore({ clock, epoch: 0, figuresPage: 1 });
  let done: Step[] = [];
  const run = <T>(isStep: boolean, work: (counterStore: CounterStore) => Promise<T>): Promise<T> => {
    done.push({ at: clock.now(), isStep, repeat: work });
    return work(inner);
  };
  const counterStore: CounterStore = {
    call: (call) => run(true, (store) => store.call(call)),
    load: (epoch, sums) => run(true, (store) => store.load(epoch, sums)),
    async freeze(epoch, account, isOwn) {
      const reply = await run(true, (store) => store.freeze(epoch, account, isOwn));
      if (!isOwn && reply.outcome === 'frozen') onFrozen(account);
      return reply;
    },
    figures: (epoch, account, cursor) => run(false, (store) => store.figures(epoch, account, cursor)),
    forget: (...of) => run(true, (store) => store.forget(...of)),
    audit: (epoch, sums, rows, terms) => run(true, (store) => store.audit(epoch, sums, rows, terms)),
    begin: (epoch, isNew) => run(true, (store) => store.begin(epoch, isNew)),
    reconnect: () => undefined,
    clear: () => run(true, (store) => store.clear()),
    read: (counters) => run(false, (store) => store.read(counters)),
    accounts: (isEnded, max) => run(false, (store) => store.accounts(isEnded, max)),
    loaded: (from, max) => run(false, (store) => store.loaded(from, max)),
  };
  return {
    counterStore,
    now: clock.now,
    wipe() {
      done = [];
      inner = createMemoryCounterStore({ clock, epoch: 0, figuresPage: 1 });
    },
    steps: () => done.filter(({ isStep }) => isStep).length,
    restore(steps) {
      const indexes = done.flatMap(({ isStep }, index) => (isStep ? [index] : []));
      done = done.slice(0, indexes.at(-steps) ?? 0);
      inner = createMemoryCounterStore({ clock, epoch: 0, figuresPage: 1 });
      for (const { at, repeat: again } of done) {
        replayed = at;
        void again(inner);
      }
      replayed = undefined;
    },
    set(by) {
      ahead += by;
    },
  };
}

export interface SharedDatabase {
  readonly database: MemoryLedgerDatabase;
  readonly epochs: Epochs;
  readonly ledgerRows: MemoryLedgerRows['all'];
  /** Whether the epoch is open. */
  isOpen(): boolean;
  /** The epoch that each process has joined. */
  readonly joinedEpochs: ReadonlyMap<string, number>;
  /** What counters had spent when they were counted for the first time, by `counterKey`. */
  readonly countedSpend: ReadonlyMap<string, bigint>;
}

/** `onOpen`: an epoch is open. */
export function createSharedDatabase(now: () => Millis, onOpen: (epoch: number) => void): SharedDatabase {
  const ledgerRows = createMemoryLedgerRows();
  const epochs = createMemoryEpochs({ clock: { now } });
  const joinedEpochs = new Map<string, number>();
  const countedSpend = new Map<string, bigint>();
  const database = createMemoryLedgerDatabase({ epochs, ledgerRows });
  return {
    joinedEpochs,
    countedSpend,
    ledgerRows: ledgerRows.all,
    isOpen: () => epochs.current().isOpen,
    database: {
      ...database,
      async countFirst(counters) {
        await database.countFirst(counters);
        const sums = await database.sums(counters);
        for (const sum of sums) if (!countedSpend.has(counterKey(sum))) countedSpend.set(counterKey(sum), sum.spent);
      },
    },
    epochs: {
      ...epochs,
      heartbeat(process, epoch) {
        joinedEpochs.set(process, epoch);
        return epochs.heartbeat(process, epoch);
      },
      async open(epoch) {
        if (epochs.current().epoch === epoch && !epochs.current().isOpen) onOpen(epoch);
        await epochs.open(epoch);
      },
    },
  };
}
