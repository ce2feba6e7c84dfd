// A gateway process on the stage: the real ledger, whose every call to store, database and disk goes through the stage.

import { createMemoryOutbox, type MemoryFolder } from '#adapters/memory/outbox.ts';
import { createLedger, type StartableLedger } from '#core/ledger/ledger.ts';
import type { Books, ErrandBooks } from '#core/ports/books.ts';
import type { Metrics } from '#core/ports/clock.ts';
import { createMemoryLog } from '../../doubles/log.ts';
import type { Process, Stage, Whom } from '../account-schedules/stage.ts';
import type { ForgetfulStore, SharedDatabase } from './parts.ts';

export interface Gateway extends Process {
  readonly ledger: StartableLedger;
  readonly folder: MemoryFolder;
  /** The name by which store and database know it. */
  readonly id: string;
}

export interface Shared {
  readonly stage: Stage;
  readonly store: ForgetfulStore;
  readonly database: SharedDatabase;
  /** The process that runs each errand. */
  readonly errands: Map<string, Process>;
  readonly nextId: () => string;
}

const silentMetrics: Metrics = {
  ...{ add: () => undefined, set: () => undefined, observe: () => undefined, render: () => '' },
};
const START_AGAIN = 300;

/** Starts immediately, and retries until it succeeds. */
export function startGateway(shared: Shared, name: string, folder: MemoryFolder): Gateway {
  const { stage, store, database } = shared;
  const process: Process = { name, isDead: false, isFrozen: false };
  const timer = stage.timerOf(process);
  const id = shared.nextId();
  const ids = [id];
  const ledger = createLedger({
    ...{ instanceUid: 'instance-1', clock: { now: stage.now }, timer, log: createMemoryLog(), metrics: silentMetrics },
    ids: { next: () => ids.pop() ?? shared.nextId() },
    store: through(stage, process, 'store', store.store),
    epochs: through(stage, process, 'database', database.epochs),
    books: booksOf(shared, process),
    outbox: diskOf(stage, process, folder),
  });
  const start = (): void => void ledger.start().catch(() => timer(START_AGAIN, start));
  start();
  return Object.assign(process, { ledger, folder, id });
}

function through<T extends object>(stage: Stage, by: Process, whom: Whom, part: T): T {
  return new Proxy(part, {
    get(_, name) {
      const method: unknown = Reflect.get(part, name);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => stage.through(by, whom, String(name), async () => method.apply(part, args));
    },
  });
}

/** A lock is released with the connection of its holder. */
function booksOf({ stage, database, errands }: Shared, by: Process): Books {
  const { books } = database;
  const reading = through(stage, by, 'database', { sums: books.sums, bookedOf: books.bookedOf });
  const held: ErrandBooks = {
    ...reading,
    book: (uid, entries, marks) =>
      stage.through(by, 'database', `book ${entries.map(({ kind, model }) => `${kind} ${model}`)}`, () =>
        books.book(uid, entries, marks),
      ),
    withLedgerLock: (uid, work) =>
      stage
        .through(by, 'database', 'lock', async () => undefined)
        .then(() => books.withLedgerLock(uid, () => work(reading))),
  };
  return {
    ...held,
    scopesOfOtherInstances: books.scopesOfOtherInstances,
    async tryErrandLock(_, errand, work) {
      const other = errands.get(errand);
      if (other !== undefined && !other.isDead) return undefined;
      errands.set(errand, by);
      return work(held).finally(() => errands.delete(errand));
    },
  };
}

function diskOf(stage: Stage, by: Process, folder: MemoryFolder) {
  const outbox = createMemoryOutbox(folder);
  const written = through(stage, by, 'disk', outbox);
  return {
    append: written.append,
    recover: () => outbox.recover(),
    done: (ids: ReadonlyArray<string>) => (by.isDead ? undefined : outbox.done(ids)),
    close: () => outbox.close(),
  };
}
