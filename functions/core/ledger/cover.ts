// Replies that wait for their last byte until the store could charge them if process and disk were lost (LEDGER 3).
import type { Context } from './context.ts';
import { type CounterState, isCovered } from './counters.ts';
import { withTimeout } from './timeout.ts';

/** When the store is silent for so long, a reply ends all the same. */
const SILENT = 2000;

export type Cover = ReturnType<typeof createCover>;

export function createCover({ timer, urgent }: Context) {
  const waiting = new Map<PromiseWithResolvers<void>, ReadonlyArray<CounterState>>();
  return {
    /** Undefined: covered already. */
    wait(counters: ReadonlyArray<CounterState>): Promise<void> | undefined {
      if (counters.every(isCovered)) return undefined;
      const covered = Promise.withResolvers<void>();
      waiting.set(covered, counters);
      urgent();
      const silent = withTimeout(timer, SILENT, 'the store', covered.promise).catch(() => undefined);
      return silent.then(() => void waiting.delete(covered));
    },
    /** An answer came: those whose counters are covered now go on. */
    check(): void {
      for (const [covered, counters] of waiting) if (counters.every(isCovered)) covered.resolve();
    },
  };
}
