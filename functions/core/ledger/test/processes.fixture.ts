// Processes of the ledger's tests, and the parts that they use: both can fail, hang and die between any two steps.
import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import type { ManualTime } from '../../../../test/doubles/time.ts';
import type { CounterStore } from '../../ports/counter-store.ts';
import type { EpochUser } from '../../ports/epochs.ts';
import type { KnownStore } from '../account.ts';

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
  readonly otherStore?: { readonly store: Part<CounterStore>; readonly user: EpochUser };
  /** Memory shared with other short-lived ledgers (Workers). */
  readonly isolate?: KnownStore;
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

/** A store in memory that can go back to an earlier state. */
export function record(time: ManualTime, before: ReadonlyArray<readonly [number, (of: CounterStore) => unknown]> = []) {
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

/** A part with a behaviour, as this process sees it. The part continues when a process dies. */
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

export function whileItLives(process: Process, time: ManualTime, callback: () => void): () => void {
  const fire = (): void => {
    if (process.isFrozen?.()) time.timer(10, fire);
    else if (!process.isDead()) callback();
  };
  return fire;
}

/** A part of which every reply takes this long. */
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
