// The scene of the ledger's tests: a ledger over parts in memory that can hang, lose answers, and die between any two steps.
import { createMemoryAccounts } from '#adapters/memory/accounts.ts';
import { createMemoryOutbox, type MemoryFolder } from '#adapters/memory/outbox.ts';
import { createMemoryAccountBooks, type MemoryAccountBooks } from '../../../test/doubles/account-books.ts';
import { createMemoryBooks, type MemoryBooks } from '../../../test/doubles/books.ts';
import { createMemoryEpochs, type MemoryEpochs } from '../../../test/doubles/epochs.ts';
import { createMemoryLog, type MemoryLog } from '../../../test/doubles/log.ts';
import { createManualTime, type ManualTime } from '../../../test/doubles/time.ts';
import { type Behaviour, IMMORTAL, type Part, type Process, withBehaviour } from '../ledger/scene.promises.ts';
import type { AccountCall, Accounts } from '../ports/accounts.ts';
import type { Ids } from '../ports/clock.ts';
import type { StoreMemory } from './deps.ts';
import { createLedger, type StartableLedger } from './ledger.ts';

export {
  type Behaviour,
  heldOf,
  IMMORTAL,
  type Process,
  requestOf,
  scopeOf,
  settlementOf,
} from '../ledger/scene.promises.ts';

export interface Scene {
  readonly time: ManualTime;
  /** Ids of all processes and of their callers. */
  readonly ids: Ids;
  readonly books: Part<MemoryBooks>;
  readonly accountBooks: Part<MemoryAccountBooks>;
  readonly store: Part<Accounts>;
  readonly folder: MemoryFolder;
  readonly outbox: { behaviour: Behaviour };
  readonly epochs: Part<MemoryEpochs>;
  readonly log: MemoryLog;
  /** Counter metrics by name. */
  readonly counted: Map<string, number>;
  /** Gauges by name. */
  readonly gauges: Map<string, number>;
  /** All calls. */
  readonly calls: AccountCall[];
  /** A ledger in a new process, on the scene's outbox folder unless another is given; not started. */
  process(process?: Process & { readonly memory?: StoreMemory }, folder?: MemoryFolder): StartableLedger;
}

/** One database, one folder and one store, which `process` shares between ledgers. */
export function createScene(): Scene {
  const time = createManualTime(Date.UTC(2026, 0, 10));
  const counted = new Map<string, number>();
  const gauges = new Map<string, number>();
  const calls: AccountCall[] = [];
  let made = 0;
  const books = createMemoryBooks(time.timer);
  const epochs = createMemoryEpochs(time);
  const scene: Scene = {
    ids: { next: () => idAt(time.clock.now(), made++) },
    ...{ time, counted, gauges, calls, folder: { records: [] }, log: createMemoryLog(), outbox: { behaviour: 'up' } },
    epochs: { part: epochs, behaviour: 'up' },
    books: { part: books, behaviour: 'up' },
    accountBooks: { part: createMemoryAccountBooks({ epochs, books }), behaviour: 'up' },
    store: { part: createMemoryAccounts({ clock: time.clock, epoch: 0 }), behaviour: 'up' },
    process(process = IMMORTAL, folder = scene.folder) {
      const outbox = { part: createMemoryOutbox(folder), behaviour: 'up' as Behaviour };
      const accounts = withBehaviour(
        {
          get part() {
            return scene.store.part;
          },
          set part(_) {},
          get behaviour() {
            return scene.store.behaviour;
          },
        },
        process,
        time,
      );
      const accountBooks = withBehaviour(scene.accountBooks, process, time);
      return createLedger({
        instanceUid: 'instance-1',
        accounts: new Proxy(accounts, {
          get(target, name) {
            const method: unknown = Reflect.get(target, name);
            if (name !== 'call') return method;
            return (call: AccountCall) => {
              calls.push(call);
              return target.call(call);
            };
          },
        }),
        books: new Proxy(accountBooks, {
          get: (target, name) =>
            name === 'scopesOfOtherInstances' ? scene.books.part.scopesOfOtherInstances : Reflect.get(target, name),
        }) as typeof accountBooks & Pick<MemoryBooks, 'scopesOfOtherInstances'>,
        isolate: process.memory,
        epochs: withBehaviour(scene.epochs, process, time),
        outbox: withBehaviour(
          {
            part: outbox.part,
            get behaviour() {
              return scene.outbox.behaviour;
            },
          },
          process,
          time,
        ),
        clock: time.clock,
        timer: (millis, callback) => time.timer(millis, whileItLives(process, time, callback)),
        ids: scene.ids,
        log: scene.log,
        metrics: {
          add: (name, _labels, by = 1) => counted.set(name, (counted.get(name) ?? 0) + by),
          set: (name, value) => void gauges.set(name, value),
          observe: () => undefined,
          render: () => '',
        },
      });
    },
  };
  return scene;
}

function whileItLives(process: Process, time: ManualTime, callback: () => void): () => void {
  const fire = (): void => {
    if (process.isFrozen?.()) time.timer(10, fire);
    else if (!process.isDead()) callback();
  };
  return fire;
}

/** A UUIDv7 of that instant. */
function idAt(time: number, made: number): string {
  const head = time.toString(16).padStart(12, '0');
  return `${head.slice(0, 8)}-${head.slice(8)}-7000-8000-${made.toString(16).padStart(12, '0')}`;
}
