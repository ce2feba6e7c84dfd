// Which scopes pay for a request, in which windows, and which of them have a limit?
import type { Millis, Nano, Window } from '../ports/money.ts';
import type { ScopePolicy, ScopeWindow } from '../ports/policy.ts';
import type { Counter } from '../ports/store.ts';
import { spendWindow } from '../window.ts';

export interface Charges {
  /** Every scope; the entry names them all. */
  readonly all: ReadonlyArray<ScopeWindow>;
  /** Those that can refuse, and beside them whose they are. */
  readonly counters: ReadonlyArray<Counter>;
  readonly limited: ReadonlyArray<ScopePolicy>;
}

interface Reading {
  readonly limit: Nano | undefined;
  readonly charge: ScopeWindow;
}

/**
 * Reads a policy once per policy object and window; a refreshed policy is another object, so nothing grows stale. The same list of
 * scopes in the same windows is answered with the same charges: whoever writes them down encodes them once.
 */
export function createCharges(): (scopes: ReadonlyArray<ScopePolicy>, now: Millis) => Charges {
  const readings = new WeakMap<ScopePolicy, Reading>();
  const known = new WeakMap<ReadonlyArray<ScopePolicy>, Charges>();

  const read = (scope: ScopePolicy, now: Millis): Reading => {
    const known = readings.get(scope);
    if (known !== undefined && holds(known.charge.window, now)) return known;
    const reading = {
      limit: scope.budget === undefined ? undefined : BigInt(scope.budget.limit),
      charge: { scopeId: scope.scopeId, window: spendWindow(scope, now) },
    };
    readings.set(scope, reading);
    return reading;
  };

  const readAll = (scopes: ReadonlyArray<ScopePolicy>, now: Millis): Charges => {
    const all: ScopeWindow[] = [];
    const counters: Counter[] = [];
    const limited: ScopePolicy[] = [];
    for (const scope of scopes) {
      const { limit, charge } = read(scope, now);
      all.push(charge);
      if (limit === undefined) continue;
      counters.push({ ...charge, limit });
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
