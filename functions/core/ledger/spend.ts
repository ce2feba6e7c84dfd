// Spend of scopes in their current windows, as the store counts it, holds left out.
import type { HoldRefusal } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { ScopePolicy, ScopeSpend, ScopeWindow } from '../ports/policy.ts';
import type { Store } from '../ports/store.ts';
import { reasonOf } from '../reason.ts';
import { err, ok, type Result } from '../result.ts';
import { spendWindow } from '../window.ts';
import type { Batch } from './batch.ts';
import type { Loads } from './loads.ts';
import {
  extend,
  openRequestDeadline,
  type RequestDeadline,
  type RequestDeadlineDependencies,
  type Watch,
  withDeadline,
} from './request-deadline.ts';
import type { StoreClock } from './store-clock.ts';

export interface SpendDependencies extends RequestDeadlineDependencies {
  readonly store: Store;
  readonly batch: Batch;
  readonly loads: Loads;
  readonly storeClock: StoreClock;
  readonly watch: Watch;
}

export type Spend = (
  scopes: ReadonlyArray<ScopePolicy>,
  waited?: Millis,
) => Promise<Result<ReadonlyArray<ScopeSpend | undefined>, HoldRefusal>>;

export function createSpend(deps: SpendDependencies): Spend {
  return async (scopes, waited) => {
    const requestDeadline = openRequestDeadline(deps, waited);
    try {
      return ok(await withDeadline(deps.watch, requestDeadline, readSpend(deps, scopes, requestDeadline)));
    } catch (error) {
      return err({ reason: 'unavailable', why: reasonOf(error) });
    }
  };
}

async function readSpend(
  { store, batch, loads, storeClock, clock }: SpendDependencies,
  scopes: ReadonlyArray<ScopePolicy>,
  requestDeadline: RequestDeadline,
): Promise<ReadonlyArray<ScopeSpend | undefined>> {
  // Settlements that wait for the next call count too.
  await batch.flush();
  extend(requestDeadline, clock.now());
  const now = storeClock.now();
  const limited = scopes.filter(({ budget }) => budget !== undefined);
  const counters: ScopeWindow[] = limited.map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now) }));
  const read = await store.read(counters);
  extend(requestDeadline, clock.now());
  const absent = counters.filter((_, index) => read[index] === undefined);
  const loaded = new Map(absent.length === 0 ? [] : await loadedBy(loads, absent));
  const spends = new Map<ScopePolicy, ScopeSpend>();
  counters.forEach((counter, index) => {
    const scope = limited[index];
    const spent = read[index] ?? loaded.get(counter.scopeId);
    if (scope !== undefined && spent !== undefined) spends.set(scope, { ...counter, spent });
  });
  return scopes.map((scope) => spends.get(scope));
}

async function loadedBy(loads: Loads, absent: ReadonlyArray<ScopeWindow>): Promise<Array<[string, Nano]>> {
  const sums = await loads.load(absent);
  return sums.map(({ scopeId, spent }) => [scopeId, spent]);
}
