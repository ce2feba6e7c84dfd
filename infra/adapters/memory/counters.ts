// How much has each scope spent in each window, and how much of the rest is set aside?
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';

export interface CounterState {
  spent: Nano;
  held: Nano;
  /** Live holds; a counter is not dropped under them. */
  holds: number;
  readonly end: Millis;
}

export interface Counters {
  find(counter: ScopeWindow): CounterState | undefined;
  /** Sets a counter that is absent; one that is there knows better. */
  load(counter: ScopeWindow & { readonly spent: Nano }): void;
  /** Drops counters whose window has long ended. */
  sweep(now: Millis): void;
}

/** A clock that is set back by less than this meets its old counters again. */
const KEEP: Millis = 600_000;

export function createCounters(): Counters {
  const states = new Map<string, CounterState>();
  let nextSweep = 0;
  return {
    find: (counter) => states.get(keyOf(counter)),
    load(counter) {
      const key = keyOf(counter);
      if (!states.has(key)) states.set(key, { spent: counter.spent, held: 0n, holds: 0, end: counter.window.end });
    },
    sweep(now) {
      if (now < nextSweep) return;
      nextSweep = now + KEEP / 10;
      for (const [key, state] of states) {
        if (state.holds === 0 && state.end + KEEP <= now) states.delete(key);
      }
    },
  };
}

const keyOf = ({ scopeId, window }: ScopeWindow): string => `${window.start}/${window.end}/${scopeId}`;
