// Loads: absent counters get their PostgreSQL sums. Absent is not zero (LEDGER 6).

import type { ScopeWindow } from '../ports/policy.ts';
import { type Account, change } from './account.ts';
import { createBackOff } from './back-off.ts';
import type { CounterState } from './counters.ts';
import type { LedgerDependencies } from './deps.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface LoadsDependencies extends Pick<LedgerDependencies, 'accounts' | 'books' | 'timer' | 'log'> {
  readonly account: Account;
  /** Counters are loaded, or may be tried again. */
  readonly onLoaded: () => void;
}

/** Reads these sums in PostgreSQL and sets them where they are absent. Throws when store or database do not reply. */
export async function load(
  { accounts, books, timer }: Pick<LedgerDependencies, 'accounts' | 'books' | 'timer'>,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<void> {
  const sums = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.sums(counters));
  await withTimeout(timer, TIMEOUT, 'the store', accounts.load(epoch, sums));
}

/** Loads the counters that a call found absent; no call names them meanwhile. */
export function createLoads(deps: LoadsDependencies) {
  const { account, timer } = deps;
  const backOff = createBackOff(timer, 50, 1000);
  const wanted = new Set<CounterState>();
  let isRunning = false;

  const run = async (): Promise<void> => {
    // A process that has left its account loads nothing: before an epoch is open nobody reads sums.
    const loading = [...wanted].filter(({ isLoading }) => isLoading);
    if (isRunning || loading.length === 0 || backOff.isPending()) return;
    isRunning = true;
    try {
      const counters = loading.map(({ counter }) => counter);
      await load(deps, account.epoch, counters);
      backOff.succeeded();
      for (const counter of loading) over(counter);
    } catch {
      // Requests wait within their deadlines.
      backOff.failed(run);
    }
    isRunning = false;
    deps.onLoaded();
    void run();
  };
  const over = (counter: CounterState): void => {
    wanted.delete(counter);
    counter.isLoading = false;
    change(account, counter);
  };

  return {
    want(counters: ReadonlyArray<CounterState>): void {
      for (const counter of counters) {
        counter.isLoading = true;
        counter.isChanged = false;
        account.changed.delete(counter);
        wanted.add(counter);
      }
      void run();
    },
    close: backOff.cancel,
  };
}
