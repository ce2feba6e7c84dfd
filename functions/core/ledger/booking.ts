// When does PostgreSQL learn what was charged? In batches within about 100 ms, tried again until it has them (LEDGER 8).
import type { Books, Entry } from '../ports/books.ts';
import type { Clock, Log, Metrics } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { Store } from '../ports/store.ts';
import { createBackOff } from './back-off.ts';
import { within } from './within.ts';

export interface Booking {
  /** Only what the store has counted (ports/store.ts says why). Adding the same entry again changes nothing. */
  add(entry: Entry): void;
  has(entry: Entry): boolean;
  size(): number;
  /** When the oldest entry that PostgreSQL does not have came here, on our clock. */
  oldest(): Millis | undefined;
  /** Books what is here now; throws when PostgreSQL does not take it. */
  flush(): Promise<void>;
  close(): void;
}

export interface BookingDependencies {
  readonly instanceUid: string;
  readonly books: Books;
  readonly store: Store;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Whether this process still works on the hold: then the outbox keeps its records. */
  readonly isLive: (id: string) => boolean;
}

const GATHER: Millis = 100;
const SILENCE: Millis = 10_000;
const MOST = 1000;

export function createBooking(deps: BookingDependencies): Booking {
  /** In the order in which they came, so the first is the oldest. */
  const waiting = new Map<string, { readonly entry: Entry; readonly since: Millis }>();
  const backOff = createBackOff(deps.timer, GATHER, 5000);
  let cancelGather: (() => void) | undefined;
  let running: Promise<void> | undefined;
  let closed = false;

  const gather = (): void => {
    if (closed || running !== undefined || cancelGather !== undefined || backOff.isPending()) return;
    if (waiting.size === 0) return;
    cancelGather = deps.timer(GATHER, () => {
      cancelGather = undefined;
      run().catch(() => undefined);
    });
  };

  /** One batch after the other, never two at once; what comes meanwhile is for the next run. */
  const run = (): Promise<void> => {
    running ??= bookAll().finally(() => {
      running = undefined;
      deps.metrics.set('gateway_operator_ledger_unbooked', waiting.size, { instance: deps.instanceUid });
      gather();
    });
    return running;
  };

  const bookAll = async (): Promise<void> => {
    let left = waiting.size;
    while (left > 0) {
      const batch = firstOf(waiting, Math.min(MOST, left));
      left -= batch.length;
      try {
        await bookBatch(deps, batch);
      } catch (cause) {
        deps.metrics.add('gateway_operator_ledger_booking_failures_total');
        if (!closed) backOff.failed(() => run().catch(() => undefined));
        throw new Error('booking entries in PostgreSQL', { cause });
      }
      backOff.succeeded();
      for (const entry of batch) waiting.delete(keyOf(entry));
    }
  };

  return {
    add(entry) {
      const key = keyOf(entry);
      if (!waiting.has(key)) waiting.set(key, { entry, since: deps.clock.now() });
      gather();
    },
    has: (entry) => waiting.has(keyOf(entry)),
    size: () => waiting.size,
    oldest: () => waiting.values().next().value?.since,
    async flush() {
      const there = [...waiting.keys()];
      while (there.some((key) => waiting.has(key))) await run();
    },
    close() {
      closed = true;
      cancelGather?.();
      backOff.cancel();
    },
  };
}

async function bookBatch(deps: BookingDependencies, entries: ReadonlyArray<Entry>): Promise<void> {
  const { instanceUid, books, timer } = deps;
  const { rejected } = await within(timer, SILENCE, 'PostgreSQL', books.book(instanceUid, entries));
  if (rejected.length > 0) {
    deps.metrics.add('gateway_operator_ledger_rejected_total', {}, rejected.length);
    deps.log.error('PostgreSQL put entries aside in entry_rejected', { ids: rejected });
  }
  const ids = [...new Set(entries.map(({ id }) => id))];
  // Not awaited: a record that stays in the store is told again, booked again as the same entry, and forgotten then.
  deps.store.forget(ids).catch((error) => deps.log.warn('the store keeps booked records', { error: String(error) }));
  deps.outbox.done(ids.filter((id) => !deps.isLive(id)));
}

const keyOf = ({ id, kind }: Entry): string => `${kind}/${id}`;

function firstOf(waiting: ReadonlyMap<string, { readonly entry: Entry }>, most: number): Entry[] {
  const first: Entry[] = [];
  for (const { entry } of waiting.values()) {
    if (first.length === most) break;
    first.push(entry);
  }
  return first;
}
