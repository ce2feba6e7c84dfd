// The scenario of the ledger's tests: processes over parts in memory that can hang, lose answers and forget, and die
// between any two steps.
import { createMemoryJournal, type MemoryFolder } from '#adapters/memory/journal.ts';
import { withTimeouts } from '../../../../test/doubles/answer-timeouts.ts';
import { createMemoryEpochs, type MemoryEpochs } from '../../../../test/doubles/epochs.ts';
import { createMemoryLedgerDatabase, type MemoryLedgerDatabase } from '../../../../test/doubles/ledger-database.ts';
import { createMemoryLedgerRows, type MemoryLedgerRows } from '../../../../test/doubles/ledger-rows.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { createManualTime } from '../../../../test/doubles/time.ts';
import { checkLabels } from '../../../../test/support/metric-labels.ts';
import type { Result } from '../../failure/result.ts';
import type { AccountCall, CounterStore } from '../../ports/counter-store.ts';
import type { Epochs, EpochUser } from '../../ports/epochs.ts';
import type { Ids } from '../../ports/ids.ts';
import type { Reservation, ReservationParams, ReservationRefusal, Settlement } from '../../ports/ledger.ts';
import type { Nano } from '../../ports/money.ts';
import type { Timer } from '../../ports/platform.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import { createLedger, type StartableLedger } from '../ledger.ts';
import {
  type Behaviour,
  IMMORTAL,
  INJECTED,
  type Part,
  type Process,
  record,
  whileItLives,
  withBehaviour,
} from './processes.fixture.ts';

export type Scenario = ReturnType<typeof createScenario>;

/** One database and one store, which processes share, each with a journal folder. */
export function createScenario() {
  const time = createManualTime(Date.UTC(2026, 0, 10));
  const ledgerRows = createMemoryLedgerRows();
  const epochs = createMemoryEpochs(time);
  const database = createMemoryLedgerDatabase({ epochs, ledgerRows: ledgerRows });
  const folder: MemoryFolder = { records: [] };
  const [counted, gauges] = [new Map<string, number>(), new Map<string, number>()];
  const calls: AccountCall[] = [];
  let made = 0;
  let recorded = record(time);
  /** The epochs for the user of another store; without one, the scenario's. */
  const epochsFor = (user?: EpochUser): Readonly<Part<Epochs>> =>
    user === undefined
      ? scenario.epochs
      : {
          part: epochs.of(user),
          get behaviour() {
            return scenario.epochs.behaviour;
          },
        };
  const scenario = {
    /** The lead of wall clocks over interval clocks. */
    wallAhead: 0,
    time,
    ledgerRows: ledgerRows,
    folder,
    log: createMemoryLog(),
    counted,
    gauges,
    /** All numbered calls. */
    calls,
    /** Ids of all processes and of their callers. */
    ids: { next: () => idAt(time.clock.now(), made++) } satisfies Ids,
    store: { part: recorded.accounts, behaviour: 'up' } as Part<CounterStore>,
    database: {
      part: Object.assign(database, { scopesOfOtherInstances: ledgerRows.scopesOfOtherInstances }),
      behaviour: 'up',
    } as Part<MemoryLedgerDatabase & Pick<MemoryLedgerRows, 'scopesOfOtherInstances'>>,
    epochs: { part: epochs, behaviour: 'up' } as Part<MemoryEpochs>,
    journal: { behaviour: 'up' as Behaviour },
    setPostgres(behaviour: Behaviour): void {
      scenario.database.behaviour = behaviour;
      scenario.epochs.behaviour = behaviour;
    },
    /** The store loses everything. */
    wipe(): void {
      recorded = record(time);
      scenario.store.part = recorded.accounts;
    },
    /** Remembers the store as it is now; the result brings it back. */
    snapshot(): () => void {
      const copy = recorded.copy();
      return () => {
        recorded = copy();
        scenario.store.part = recorded.accounts;
      };
    },
    /** A ledger in a new process, on the scenario's journal folder unless another is given; not started. */
    process(process: Process = IMMORTAL, on: MemoryFolder = folder): StartableLedger {
      const { store, user } = process.otherStore ?? { store: scenario.store };
      const accounts = withBehaviour(store, process, time);
      const journal = {
        part: createMemoryJournal(on),
        get behaviour() {
          return scenario.journal.behaviour;
        },
      };
      const timer: Timer = (millis, callback) => time.timer(millis, whileItLives(process, time, callback));
      return createLedger({
        instanceUid: 'instance-1',
        knownStoreOfIsolate: process.isolate,
        ids: scenario.ids,
        log: scenario.log,
        clock: { now: () => time.clock.now() + scenario.wallAhead },
        intervalClock: time.clock,
        counterStore: withTimeouts(
          timer,
          'the store',
          new Proxy(accounts, {
            get(_, name) {
              if (name === 'call') return (call: AccountCall) => calls.push(call) && accounts.call(call);
              return Reflect.get(accounts, name);
            },
          }),
        ),
        database: withTimeouts(timer, 'PostgreSQL', withBehaviour(scenario.database, process, time)),
        epochs: withTimeouts(timer, 'PostgreSQL', withBehaviour(epochsFor(user), process, time)),
        journal: withBehaviour(journal, process, time),
        timer,
        metrics: {
          add: (name, labels, by = 1) => {
            checkLabels(name, labels);
            counted.set(name, (counted.get(name) ?? 0) + by);
          },
          set(name, value) {
            if (process.failureOf?.('set') !== undefined) throw new Error(INJECTED);
            gauges.set(name, value);
          },
          observe: () => undefined,
        },
      });
    },
    /** A process with an empty store of its own, at this address, which starts now. */
    createOtherStore(address = `store of ${time.clock.now()}`): Process {
      const store: Part<CounterStore> = { part: record(time).accounts, behaviour: 'up' };
      return { ...IMMORTAL, otherStore: { store, user: { store: address, startedAt: time.clock.now() } } };
    },
    /** A started ledger in a new process with a disk of its own. */
    async start(process: Process = IMMORTAL, on: MemoryFolder = { records: [] }): Promise<StartableLedger> {
      const ledger = scenario.process(process, on);
      await scenario.ended(ledger.start());
      return ledger;
    },
    /**
     * Advances the clock until the promise has settled; its value, and how long that took. `meanwhile`: events by
     * instant.
     */
    async ended<T>(promise: Promise<T>, meanwhile: Readonly<Record<number, () => unknown>> = {}) {
      const began = time.clock.now();
      let done: { readonly millis: number } | undefined;
      const isDone = () => {
        done = { millis: time.clock.now() - began };
      };
      promise.then(isDone, isDone);
      await time.settle();
      for (let waited = 0; done === undefined && waited < 10_000; waited += 5) {
        meanwhile[waited]?.();
        await time.advance(5);
      }
      if (done === undefined) throw new Error('nothing came in 10 s');
      return { value: await promise, millis: done.millis };
    },
    /** The answer to a reservation, and how long it took. */
    async tryReservation(
      ledger: StartableLedger,
      request: ReservationParams,
      meanwhile?: Readonly<Record<number, () => unknown>>,
    ) {
      const { value, millis } = await scenario.ended(ledger.reserve(request), meanwhile);
      return { value, outcome: outcome(value), millis };
    },
    async take(ledger: StartableLedger, amount: Nano, ...scopes: ReadonlyArray<ScopePolicy>): Promise<Reservation> {
      return heldOf((await scenario.tryReservation(ledger, requestOf(amount, ...scopes))).value);
    },
    /** Spend of this scope, reservations left out. */
    async spent(ledger: StartableLedger, scope: ScopePolicy): Promise<Nano | string | undefined> {
      const { value } = await scenario.ended(ledger.spend([scope]));
      return value.ok ? value.value[0]?.spent : value.failure.reason;
    },
  };
  return scenario;
}

/** A UUIDv7 of that instant. */
function idAt(time: number, made: number): string {
  const head = time.toString(16).padStart(12, '0');
  return `${head.slice(0, 8)}-${head.slice(8)}-7000-8000-${made.toString(16).padStart(12, '0')}`;
}

export function scopeOf(scopeId: string, limit?: Nano, more: Partial<ScopePolicy> = {}): ScopePolicy {
  const budget = { duration: '30d', alignment: 'Rolling' as const };
  return {
    scopeId,
    kind: 'key',
    name: scopeId,
    blocked: false,
    models: [],
    anchor: Date.UTC(2026, 0, 1),
    ...(limit === undefined ? {} : { budget: { ...budget, limit: `${limit}` } }),
    ...more,
  };
}

export function requestOf(amount: Nano, ...scopes: ReadonlyArray<ScopePolicy>): ReservationParams {
  return { scopes, amount, minAmount: amount, model: 'small', identifier: 'small-1' };
}

export function settlementOf(cost: Nano): Settlement {
  const tokens = { input: 1, output: 2, cachedInput: 0, cacheWrite: 0 };
  return { cost, tokens, model: 'small', identifier: 'small-1', estimated: false };
}

/** `held`, or the reason of the refusal. */
export const outcome = (result: Result<Reservation, ReservationRefusal>): string =>
  result.ok ? 'reserved' : result.failure.reason;

/** The reservation; a refusal fails the test. */
export function heldOf(result: Result<Reservation, ReservationRefusal>): Reservation {
  if (!result.ok) throw new Error(`refused: ${result.failure.reason}`);
  return result.value;
}
