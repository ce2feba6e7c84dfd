// The scene of the ledger's tests: a ledger over parts in memory that can hang, lose answers, and die between any two steps.
import { createMemoryOutbox, type MemoryFolder } from '#adapters/memory/outbox.ts';
import { createMemoryStore } from '#adapters/memory/store.ts';
import { createMemoryBooks, type MemoryBooks } from '../../../test/doubles/books.ts';
import { createMemoryLog, type MemoryLog } from '../../../test/doubles/log.ts';
import { createManualTime, type ManualTime } from '../../../test/doubles/time.ts';
import type { Ids } from '../ports/clock.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Hold, HoldRefusal, HoldRequest, Settlement } from '../ports/ledger.ts';
import type { Nano } from '../ports/money.ts';
import type { ScopePolicy } from '../ports/policy.ts';
import type { Store } from '../ports/store.ts';
import type { Result } from '../result.ts';
import type { StoreMemory } from './deps.ts';
import { createLedger, type StartableLedger } from './ledger.ts';

/** Behaviour of a part. `loses`: does what is asked, but the answer never arrives. `hangs`: does it when it is up again. */
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
  /** Memory shared with other short-lived ledgers (Workers). */
  readonly isolate?: StoreMemory;
}

export const IMMORTAL: Process = { before: () => true, after: () => true, isDead: () => false };

export interface Part<T extends object> {
  part: T;
  behaviour: Behaviour;
}

const never = new Promise<never>(() => undefined);

/** A part with a behaviour, as seen by this process. The part lives on when a process dies. */
export function withBehaviour<T extends object>(of: Part<T>, process: Process, time: ManualTime): T {
  const step = (work: () => unknown): unknown => {
    if (!process.before()) return never;
    const run = async (): Promise<unknown> => {
      if (of.behaviour === 'refuses') throw new Error('refused');
      while (of.behaviour === 'hangs') await new Promise<void>((resolve) => time.timer(10, resolve));
      const pause = (): Promise<void> => new Promise((resolve) => time.timer(10, resolve));
      while (process.isFrozen?.()) await pause();
      const answer = await work();
      while (process.isFrozen?.()) await pause();
      if (!process.after()) return never;
      if (of.behaviour === 'loses') throw new Error('the answer was lost');
      return answer;
    };
    return run();
  };
  return new Proxy(of.part, {
    get(_, name) {
      const method: unknown = Reflect.get(of.part, name);
      // `done` has no answer, so it cannot fail; a dead process does not call it either.
      if (name === 'done')
        return (...args: unknown[]) => process.before() && Reflect.apply(Object(method), of.part, args);
      return typeof method === 'function' ? (...args: unknown[]) => step(() => method.apply(of.part, args)) : method;
    },
  });
}

export interface Scene {
  readonly time: ManualTime;
  /** Ids of all processes and of their callers. */
  readonly ids: Ids;
  readonly books: Part<MemoryBooks>;
  readonly store: Part<Store>;
  readonly folder: MemoryFolder;
  readonly outbox: { behaviour: Behaviour };
  /** Set before a process is made where the store may forget or several processes use it. */
  epochs: Part<Epochs> | undefined;
  readonly log: MemoryLog;
  /** Counter metrics by name. */
  readonly counted: Map<string, number>;
  /** Gauges by name. */
  readonly gauges: Map<string, number>;
  /** The number of holds in each store call. */
  readonly calls: number[];
  /** A ledger in a new process, on the scene's outbox folder unless another is given; not started. */
  process(process?: Process, folder?: MemoryFolder): StartableLedger;
}

/** One database, one folder and one store, which `process` shares between ledgers. */
export function createScene(): Scene {
  const time = createManualTime(Date.UTC(2026, 0, 10));
  const counted = new Map<string, number>();
  const gauges = new Map<string, number>();
  const calls: number[] = [];
  let made = 0;
  const scene: Scene = {
    ids: { next: () => idAt(time.clock.now(), made++) },
    ...{ time, counted, gauges, calls, folder: { records: [] }, log: createMemoryLog(), outbox: { behaviour: 'up' } },
    epochs: undefined,
    books: { part: createMemoryBooks(time.timer), behaviour: 'up' },
    store: { part: createMemoryStore(time), behaviour: 'up' },
    process(process = IMMORTAL, folder = scene.folder) {
      const outbox = { part: createMemoryOutbox(folder), behaviour: 'up' as Behaviour };
      const store = withBehaviour(scene.store, process, time);
      return createLedger({
        instanceUid: 'instance-1',
        store: {
          ...{ forget: (entries) => store.forget(entries), read: (of) => store.read(of) },
          ...{ begin: (epoch) => store.begin(epoch), survey: (of) => store.survey(of), clear: () => store.clear() },
          unbooked: (idleFor, max) => store.unbooked(idleFor, max),
          loaded: (from, max) => store.loaded(from, max),
          call(call) {
            calls.push(call.holds.length);
            return store.call(call);
          },
        },
        books: withBehaviour(scene.books, process, time),
        isolate: process.isolate,
        ...(scene.epochs === undefined ? {} : { epochs: withBehaviour(scene.epochs, process, time) }),
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

export function scopeOf(scopeId: string, limit?: Nano, more: Partial<ScopePolicy> = {}): ScopePolicy {
  const budget = { duration: '30d', alignment: 'Rolling' as const };
  return {
    ...{ scopeId, kind: 'key', name: scopeId, blocked: false, models: [], anchor: Date.UTC(2026, 0, 1) },
    ...(limit === undefined ? {} : { budget: { ...budget, limit: `${limit}` } }),
    ...more,
  };
}

export function requestOf(amount: Nano, ...scopes: ReadonlyArray<ScopePolicy>): HoldRequest {
  return { scopes, amount, minAmount: amount, model: 'small', identifier: 'small-1' };
}

export function settlementOf(cost: Nano): Settlement {
  const tokens = { input: 1, output: 2, cachedInput: 0, cacheWrite: 0 };
  return { cost, tokens, model: 'small', identifier: 'small-1', estimated: false };
}

/** The hold; a refusal fails the test. */
export function heldOf(result: Result<Hold, HoldRefusal>): Hold {
  if (!result.ok) throw new Error(`refused: ${result.failure.reason}`);
  return result.value;
}
