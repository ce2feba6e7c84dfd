// The scenario of the ledger's tests: processes over parts in memory that can hang, lose answers and forget, and die
// between any two steps.
import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import { createMemoryJournal, type MemoryFolder } from '#adapters/memory/journal.ts';
import { withTimeouts } from '../../../../test/doubles/answer-timeouts.ts';
import { createMemoryEpochs, type MemoryEpochs } from '../../../../test/doubles/epochs.ts';
import { createMemoryLedgerDatabase, type MemoryLedgerDatabase } from '../../../../test/doubles/ledger-database.ts';
import { createMemoryLedgerRows, type MemoryLedgerRows } from '../../../../test/doubles/ledger-rows.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { createManualTime, type ManualTime } from '../../../../test/doubles/time.ts';
import { checkLabels } from '../../../../test/support/metric-labels.ts';
import type { Result } from '../../failure/result.ts';
import type { Ids } from '../../ports/clock.ts';
import type { AccountCall, CounterStore } from '../../ports/counter-store.ts';
import type { Epochs } from '../../ports/epochs.ts';
import type { Reservation, ReservationParams, ReservationRefusal, Settlement } from '../../ports/ledger.ts';
import type { Millis, Nano } from '../../ports/money.ts';
import type { Timer } from '../../ports/platform.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StoreState } from '../account.ts';
import { createLedger, type StartableLedger } from '../ledger.ts';

/**
 * Behaviour of a part. `loses`: does what is asked, but the answer never arrives. `hangs`: does it when it is up again.
 */
export type Behaviour = 'up' | 'refuses' | 'loses' | 'hangs';

/** A process. Once dead, its calls have no effect, and its promises never settle. */
export interface Process {
  /** Called before each step outside the process; false: the process died before the step. */
  readonly before: () => boolean;
  /** Called after each step; false: the process died before it learned the result. */
  readonly after: () => boolean;
  readonly isDead: () => boolean;
  /** While true the process does nothing; then it continues where it was. */
  readonly isFrozen?: () => boolean;
  /** Another store than the scenario's, as a rollout to another Redis gives it to new processes. */
  readonly otherStore?: { readonly store: Part<CounterStore>; readonly startedAt: Millis };
  /** Memory shared with other short-lived ledgers (Workers). */
  readonly isolate?: StoreState;
  /** Called before each step; how this step fails. */
  readonly failureOf?: (method: string) => Failure | undefined;
}

/** `throws`: synchronously, nothing is done. `rejects`: nothing is done. `loses`: it is done, and then rejected. */
export type Failure = 'throws' | 'rejects' | 'loses';

/** The error of every injected failure. */
export const INJECTED = 'an injected failure';

export const IMMORTAL: Process = { before: () => true, after: () => true, isDead: () => false };

/** A process that the test can freeze at any step, and kill. */
export function createProcess() {
  const is = { frozen: false, dead: false };
  const isAlive = (): boolean => !is.dead;
  return { is, before: isAlive, after: isAlive, isDead: () => is.dead, isFrozen: () => is.frozen };
}

export interface Part<T extends object> {
  part: T;
  behaviour: Behaviour;
}

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
  /** These epochs, with the behaviour of the scenario's. */
  const epochsOf = (part: Epochs): Part<Epochs> => ({
    get part() {
      return part === epochs ? scenario.epochs.part : part;
    },
    set part(_) {},
    get behaviour() {
      return scenario.epochs.behaviour;
    },
    set behaviour(_) {},
  });
  const scenario = {
    /** Wall clocks are ahead by so much. */
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
      const { store, startedAt } = process.otherStore ?? { store: scenario.store };
      const accounts = withBehaviour(store, process, time);
      const user = startedAt === undefined ? epochs : epochs.of({ store: `store of ${startedAt}`, startedAt });
      const journal = {
        part: createMemoryJournal(on),
        get behaviour() {
          return scenario.journal.behaviour;
        },
      };
      const timer: Timer = (millis, callback) => time.timer(millis, whileItLives(process, time, callback));
      return createLedger({
        instanceUid: 'instance-1',
        sharedStore: process.isolate,
        ids: scenario.ids,
        log: scenario.log,
        clock: { now: () => time.clock.now() + scenario.wallAhead },
        monotonic: time.clock,
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
        epochs: withTimeouts(timer, 'PostgreSQL', withBehaviour(epochsOf(user), process, time)),
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
    /** A process with an empty store of its own, which starts now. */
    createOtherStore(): Process {
      const store: Part<CounterStore> = { part: record(time).accounts, behaviour: 'up' };
      return { ...IMMORTAL, otherStore: { store, startedAt: time.clock.now() } };
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

/** A store in memory that can go back to what it was. */
function record(time: ManualTime, before: ReadonlyArray<readonly [number, (of: CounterStore) => unknown]> = []) {
  const steps = [...before];
  let at: number | undefined = 0;
  const part = createMemoryCounterStore({ clock: { now: () => at ?? time.clock.now() }, epoch: 0 });
  for (const [then, step] of before) {
    at = then;
    void step(part);
  }
  at = undefined;
  const remembered = (name: keyof CounterStore) => {
    const run = (...args: unknown[]) => {
      const step = (of: CounterStore): unknown => Reflect.apply(of[name], of, args);
      steps.push([time.clock.now(), step]);
      return step(part);
    };
    return [name, run] as const;
  };
  const names = Object.keys(part) as (keyof CounterStore)[];
  const accounts = Object.fromEntries(names.map(remembered)) as unknown as CounterStore;
  return {
    accounts,
    copy() {
      const known = [...steps];
      return () => record(time, known);
    },
  };
}

const never = new Promise<never>(() => undefined);

/** A part with a behaviour, as seen by this process. The part lives on when a process dies. */
export function withBehaviour<T extends object>(of: Readonly<Part<T>>, process: Process, time: ManualTime): T {
  const pause = (): Promise<void> => new Promise((resolve) => time.timer(10, resolve));
  const step = (name: string, work: () => unknown): unknown => {
    if (!process.before()) return never;
    const failure = process.failureOf?.(name);
    if (failure === 'throws') throw new Error(INJECTED);
    const run = async (): Promise<unknown> => {
      if (failure === 'rejects') throw new Error(INJECTED);
      if (of.behaviour === 'refuses') throw new Error('refused');
      while (of.behaviour === 'hangs' || process.isFrozen?.()) await pause();
      const answer = await work();
      while (process.isFrozen?.()) await pause();
      if (!process.after()) return never;
      if (of.behaviour === 'loses') throw new Error('the answer was lost');
      if (failure === 'loses') throw new Error(INJECTED);
      return answer;
    };
    return run();
  };
  return new Proxy(of.part, {
    get(_, name) {
      const method: unknown = Reflect.get(of.part, name);
      // These have no answer; a dead process does not call them either.
      if (name === 'drop' || name === 'discard')
        return (...args: unknown[]) => {
          if (!process.before()) return;
          if (process.failureOf?.(name) !== undefined) throw new Error(INJECTED);
          Reflect.apply(Object(method), of.part, args);
        };
      return typeof method === 'function'
        ? (...args: unknown[]) => step(String(name), () => method.apply(of.part, args))
        : method;
    },
  });
}

function whileItLives(process: Process, time: ManualTime, callback: () => void): () => void {
  const fire = (): void => {
    if (process.isFrozen?.()) time.timer(10, fire);
    else if (!process.isDead()) callback();
  };
  return fire;
}

/** A part whose every answer takes so long. */
export function slow<T extends object>(
  part: T,
  time: ManualTime,
  millis: (method: string, args: ReadonlyArray<unknown>) => number,
): T {
  const later = (wait: number): Promise<void> => new Promise((resolve) => time.timer(wait, resolve));
  return new Proxy(part, {
    get(_, name) {
      const method: unknown = Reflect.get(part, name);
      if (typeof method !== 'function') return method;
      return async (...args: unknown[]) => {
        const wait = millis(String(name), args);
        await later(wait / 2);
        const answer: unknown = await method.apply(part, args);
        await later(wait / 2);
        return answer;
      };
    },
  });
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
