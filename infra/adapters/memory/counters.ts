// Counters: what each scope has spent in each window, and what is set aside.
import type { Millis, Nano, Window } from '#core/ports/money.ts';
import type { ScopeId, ScopeWindow } from '#core/ports/policy.ts';

export interface CounterState {
  readonly scopeId: ScopeId;
  readonly window: Window;
  spent: Nano;
  held: Nano;
  /** Live holds; a counter is not dropped under them. */
  holds: number;
}

export interface Counters {
  find(counter: ScopeWindow): CounterState | undefined;
  /** Adds every loaded counter of the scope whose window holds this instant: more than one after a budget's duration was edited. */
  at(scopeId: ScopeId, instant: Millis, to: CounterState[]): void;
  /** Sets a counter that is absent and answers it; one that is there knows better: undefined. */
  load(counter: ScopeWindow & { readonly spent: Nano }): CounterState | undefined;
  all(): CounterState[];
  /** Drops counters whose window has long ended. */
  sweep(now: Millis): void;
}

/** A clock that is set back by less than this meets its old counters again. */
const KEEP: Millis = 600_000;

const NONE: ReadonlyArray<CounterState> = [];

export function createCounters(): Counters {
  const scopes = new Map<ScopeId, CounterState[]>();
  let nextSweep = 0;

  const find = ({ scopeId, window: { start, end } }: ScopeWindow): CounterState | undefined => {
    for (const state of scopes.get(scopeId) ?? NONE) {
      if (state.window.start === start && state.window.end === end) return state;
    }
    return undefined;
  };

  return {
    find,
    at: (scopeId, instant, to) => {
      for (const state of scopes.get(scopeId) ?? NONE) if (isInside(instant, state.window)) to.push(state);
    },
    load(counter) {
      if (find(counter) !== undefined) return undefined;
      const { scopeId, window, spent } = counter;
      const state = { scopeId, window, spent, held: 0n, holds: 0 };
      const states = scopes.get(scopeId);
      if (states === undefined) scopes.set(scopeId, [state]);
      else states.push(state);
      return state;
    },
    all: () => [...scopes.values()].flat(),
    sweep(now) {
      if (now < nextSweep) return;
      nextSweep = now + KEEP / 10;
      for (const [scopeId, states] of scopes) {
        const kept = states.filter(({ holds, window }) => holds > 0 || window.end + KEEP > now);
        if (kept.length === 0) scopes.delete(scopeId);
        else if (kept.length < states.length) scopes.set(scopeId, kept);
      }
    },
  };
}

export const isInside = (instant: Millis, { start, end }: Window): boolean => start <= instant && instant < end;
