// Loads: absent counters get their PostgreSQL sums. Absent is not zero (LEDGER 6).

import type { ScopeWindow } from '../ports/policy.ts';
import { change } from './account.ts';
import type { Context, StoreContext } from './context.ts';
import type { CounterState } from './counters.ts';
import { pause } from './timeout.ts';

/** Reads these sums in PostgreSQL and sets them where they are absent. Throws when store or database do not reply. */
export async function load(
  { accounts, books }: Pick<StoreContext, 'accounts' | 'books'>,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<void> {
  const sums = await books.sums(counters);
  await accounts.load(epoch, sums);
}

/** Pauses between attempts: each is twice the one before. */
const FIRST_PAUSE = 50;
const MAX_PAUSE = 1000;

/** Loads the counters that a call found absent; no call names them meanwhile. */
export function createLoads(context: Context) {
  const { account, timer, urgent } = context;
  let isRunning = false;

  const run = async (): Promise<void> => {
    isRunning = true;
    for (let wait = FIRST_PAUSE; !account.isOver; ) {
      // A process that has left its account loads nothing: before an epoch is open nobody reads sums.
      const loading = [...account.counters.all()].filter(({ isLoading }) => isLoading);
      if (loading.length === 0) break;
      try {
        const counters = loading.map(({ counter }) => counter);
        await load(context, account.epoch, counters);
        wait = FIRST_PAUSE;
        for (const counter of loading) {
          counter.isLoading = false;
          change(account, counter);
        }
        urgent();
      } catch {
        // Requests wait within their deadlines.
        await pause(timer, wait);
        wait = Math.min(MAX_PAUSE, wait * 2);
      }
    }
    isRunning = false;
  };

  return (absent: ReadonlyArray<CounterState>): void => {
    for (const counter of absent) {
      account.changed.delete(counter);
      Object.assign(counter, { isLoading: true, isChanged: false });
    }
    if (!isRunning) void run();
  };
}
