// Charges of a request: the scopes that pay, in which windows, and which of them have a limit.
import type { Millis, Window } from '../ports/money.ts';
import type { ScopePolicy, ScopeWindow } from '../ports/policy.ts';
import type { Counter } from '../ports/store.ts';
import { spendWindow } from '../window.ts';

export interface Charges {
  /** All scopes that pay; the entry names each. */
  readonly all: ReadonlyArray<ScopeWindow>;
  /** Counters with a limit, and in the same order the scopes they belong to. */
  readonly counters: ReadonlyArray<Counter>;
  readonly limited: ReadonlyArray<ScopePolicy>;
}

interface Reading {
  readonly charge: ScopeWindow;
  /** The same object for every request that pays from it: a store call names it once. */
  readonly counter: Counter | undefined;
}

/**
 * Reads a policy once per policy object and window; a refreshed policy is another object, so nothing grows stale. The same list of
 * scopes in the same windows returns the same charges, which are therefore encoded once.
 */
export function createCharges(): (scopes: ReadonlyArray<ScopePolicy>, now: Millis) => Charges {
  const readings = new WeakMap<ScopePolicy, Reading>();
  const known = new WeakMap<ReadonlyArray<ScopePolicy>, Charges>();

  const read = (scope: ScopePolicy, now: Millis): Reading => {
    const known = readings.get(scope);
    if (known !== undefined && holds(known.charge.window, now)) return known;
    const charge = { scopeId: scope.scopeId, window: spendWindow(scope, now) };
    const counter = scope.budget === undefined ? undefined : { ...charge, limit: BigInt(scope.budget.limit) };
    const reading = { charge, counter };
    readings.set(scope, reading);
    return reading;
  };

  const readAll = (scopes: ReadonlyArray<ScopePolicy>, now: Millis): Charges => {
    const all: ScopeWindow[] = [];
    const counters: Counter[] = [];
    const limited: ScopePolicy[] = [];
    for (const scope of scopes) {
      const { charge, counter } = read(scope, now);
      all.push(charge);
      if (counter === undefined) continue;
      counters.push(counter);
      limited.push(scope);
    }
    return { all, counters, limited };
  };

  return (scopes, now) => {
    const before = known.get(scopes);
    if (before?.all.every(({ window }) => holds(window, now)) === true) return before;
    const charges = readAll(scopes, now);
    known.set(scopes, charges);
    return charges;
  };
}

const holds = (window: Window, now: Millis): boolean => window.start <= now && now < window.end;
