// Replies that wait for their last byte until the store could charge them if process and disk were lost (LEDGER 3).
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import { type CounterState, isCovered } from './counters.ts';

/** When the store is silent for so long, a reply ends all the same. */
const SILENT: Millis = 2000;

export type Cover = ReturnType<typeof createCover>;

export function createCover({ timer, onWait }: { readonly timer: Timer; readonly onWait: () => void }) {
  const waiting = new Map<ReadonlyArray<CounterState>, () => void>();
  return {
    /** Undefined: covered already. */
    wait(counters: ReadonlyArray<CounterState>): Promise<void> | undefined {
      if (counters.every(isCovered)) return undefined;
      return new Promise((resolve) => {
        const own = [...counters];
        const over = (): void => {
          waiting.delete(own);
          cancel();
          resolve();
        };
        const cancel = timer(SILENT, over);
        waiting.set(own, over);
        onWait();
      });
    },
    /** An answer came: those whose counters are covered now go on. */
    check(): void {
      for (const [counters, over] of waiting) if (counters.every(isCovered)) over();
    },
    isWaiting: (): boolean => waiting.size > 0,
  };
}
