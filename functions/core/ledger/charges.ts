// Charges of a request: the counters of all scopes that pay, with their limits.
import type { Millis, Nano, Window } from '../ports/money.ts';
import type { ScopePolicy, ScopeWindow } from '../ports/policy.ts';
import { spendWindow } from '../window.ts';
import type { CounterState, Counters } from './counters.ts';

export interface Charges {
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /** All scopes that pay, with or without a limit; the entry names each. The same list for the same scopes and windows: it is encoded once. */
  readonly all: ReadonlyArray<ScopeWindow>;
  /** Their counters and limits, in the same order. */
  readonly counters: ReadonlyArray<CounterState>;
  readonly limits: ReadonlyArray<Nano | undefined>;
}

/** Reads a list of policies once per list and window; refreshed policies are another list, so nothing grows stale. */
export function createCharges(counters: Counters): (scopes: ReadonlyArray<ScopePolicy>, now: Millis) => Charges {
  const known = new WeakMap<ReadonlyArray<ScopePolicy>, Charges>();
  return (scopes, now) => {
    const before = known.get(scopes);
    if (before !== undefined && isCurrent(before, now)) return before;
    const all = scopes.map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now) }));
    const charges = {
      ...{ scopes, all, counters: all.map(counters.of) },
      limits: scopes.map(({ budget }) => (budget === undefined ? undefined : BigInt(budget.limit))),
    };
    known.set(scopes, charges);
    return charges;
  };
}

function isCurrent({ counters }: Charges, now: Millis): boolean {
  for (const { isDropped, counter } of counters) if (isDropped || !contains(counter.window, now)) return false;
  return true;
}

const contains = ({ start, end }: Window, now: Millis): boolean => start <= now && now < end;

/** The policies of this request are the latest known: their limits decide from now on. */
export function adoptLimits({ counters, limits }: Charges): void {
  for (let at = 0; at < counters.length; at += 1) {
    const state = counters[at];
    if (state !== undefined) state.limit = limits[at];
  }
}

/** Counters that are new, since a window has begun, have the limits that were known last in the one before; where our clock is set back, the lower ones. */
export function keepLimits({ counters }: Charges, before: Charges): void {
  for (const [at, state] of counters.entries()) {
    const { limit, counter } = before.counters[at] ?? state;
    const isBack = counter.window.start > state.counter.window.start;
    if (state.limit === undefined || (isBack && limit !== undefined && limit < state.limit)) state.limit = limit;
  }
}
