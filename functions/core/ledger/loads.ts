// Loads: an absent counter gets its PostgreSQL sum. Absent is not zero (LEDGER 6).
import type { ScopeSpend, ScopeWindow } from '../ports/policy.ts';
import { counterKey } from '../ports/store.ts';
import type { Batch } from './batch.ts';
import { readCounterSums } from './counter-sums.ts';
import type { LedgerDependencies } from './deps.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface Loads {
  /**
   * Reads the sums of these counters and sets them in the store where they are still absent; all loads of a tick share
   * one reading. Throws when database or store do not reply. Returns what the counters then show.
   */
  load(counters: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<ScopeSpend>>;
}

export interface LoadsDependencies extends Pick<LedgerDependencies, 'instanceUid' | 'books' | 'store' | 'timer'> {
  readonly batch: Batch;
  readonly tick: (callback: () => void) => void;
}

interface Wanted {
  readonly counter: ScopeWindow;
  readonly loaded: Promise<ScopeSpend>;
  readonly resolve: (loaded: Promise<ScopeSpend>) => void;
}

export function createLoads({ instanceUid, books, store, batch, timer, tick }: LoadsDependencies): Loads {
  const underWay = new Map<string, Wanted>();
  let wanted: Wanted[] = [];

  const read = (): void => {
    const asked = wanted;
    wanted = [];
    const counters = asked.map(({ counter }) => counter);
    // Without the lock, a sum read before a booking and set after it would miss that booking or count it twice.
    const work = books.withLedgerLock(instanceUid, async (reading) => {
      const exact = await readCounterSums(store, reading, counters);
      await Promise.all(exact.map(({ load }) => batch.load(load)));
      return exact;
    });
    const reading = withTimeout(timer, TIMEOUT, 'PostgreSQL or the store', work);
    asked.forEach(({ counter, resolve }, index) => {
      const loading = reading.then((sums) => sums[index] ?? Promise.reject(new Error('PostgreSQL left a sum out')));
      const over = (): unknown => underWay.delete(counterKey(counter));
      loading.then(over, over);
      resolve(loading);
    });
  };

  const want = (counter: ScopeWindow): Promise<ScopeSpend> => {
    const known = underWay.get(counterKey(counter));
    if (known !== undefined) return known.loaded;
    const { promise: loaded, resolve } = Promise.withResolvers<ScopeSpend>();
    const one = { counter, loaded, resolve };
    underWay.set(counterKey(counter), one);
    if (wanted.push(one) === 1) tick(read);
    return loaded;
  };

  return { load: (counters) => Promise.all(counters.map(want)) };
}
