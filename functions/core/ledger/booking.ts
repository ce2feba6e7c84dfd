// When does PostgreSQL learn what was charged? In batches within about 100 ms, tried again until it has them (LEDGER 8).
import type { Books, Entry } from '../ports/books.ts';
import type { Clock, Log, Metrics } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { Store } from '../ports/store.ts';
import { createBackOff } from './back-off.ts';
import { createLane } from './lane.ts';
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
  /** Does the work while nothing is being booked, and every batch so far is known to be in PostgreSQL or not. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
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
const SILENCE: Millis = 5000;
const MOST = 1000;

export function createBooking(deps: BookingDependencies): Booking {
  const { instanceUid, clock, timer, metrics } = deps;
  /** In the order in which they came, so the first is the oldest. */
  const waiting = new Map<string, { readonly entry: Entry; readonly since: Millis }>();
  const lane = createLane();
  const backOff = createBackOff(timer, GATHER, 1000);
  /** The last batch failed: PostgreSQL may have it all the same. */
  let inDoubt = false;
  let cancelGather: (() => void) | undefined;
  let running: Promise<void> | undefined;
  let closed = false;

  const gather = (): void => {
    if (closed || running !== undefined || cancelGather !== undefined || backOff.isPending()) return;
    if (waiting.size === 0) return;
    cancelGather = timer(GATHER, () => {
      cancelGather = undefined;
      run().catch(() => undefined);
    });
  };

  /** One run at a time; what comes meanwhile is for the next one. */
  const run = (): Promise<void> => {
    running ??= bookAll().finally(() => {
      running = undefined;
      metrics.set('gateway_operator_ledger_unbooked', waiting.size, { instance: instanceUid });
      gather();
    });
    return running;
  };

  const bookAll = async (): Promise<void> => {
    try {
      for (let left = waiting.size; left > 0; ) left -= await lane(bookNext);
      backOff.succeeded();
    } catch (cause) {
      metrics.add('gateway_operator_ledger_booking_failures_total');
      if (!closed) backOff.failed(() => run().catch(() => undefined));
      throw new Error('booking entries in PostgreSQL', { cause });
    }
  };

  /** The oldest entries first, so a batch in doubt is part of the next one. Answers how many. */
  const bookNext = async (): Promise<number> => {
    const batch = firstOf(waiting);
    if (batch.length === 0) return Number.POSITIVE_INFINITY;
    inDoubt = true;
    await bookBatch(deps, batch);
    inDoubt = false;
    for (const entry of batch) waiting.delete(keyOf(entry));
    return batch.length;
  };

  return {
    add(entry) {
      const key = keyOf(entry);
      if (!waiting.has(key)) waiting.set(key, { entry, since: clock.now() });
      gather();
    },
    has: (entry) => waiting.has(keyOf(entry)),
    size: () => waiting.size,
    oldest: () => waiting.values().next().value?.since,
    async flush() {
      const there = [...waiting.keys()];
      while (there.some((key) => waiting.has(key))) await run();
    },
    exclusively: (work) =>
      lane(async () => {
        if (inDoubt) await bookNext();
        return work();
      }),
    close() {
      closed = true;
      cancelGather?.();
      backOff.cancel();
    },
  };
}

async function bookBatch(deps: BookingDependencies, entries: ReadonlyArray<Entry>): Promise<void> {
  const { instanceUid, books, store, timer } = deps;
  const { rejected } = await within(timer, SILENCE, 'PostgreSQL', books.book(instanceUid, entries));
  if (rejected.length > 0) {
    deps.metrics.add('gateway_operator_ledger_rejected_total', {}, rejected.length);
    deps.log.error('PostgreSQL put entries aside in entry_rejected', { ids: rejected });
  }
  const ids = [...new Set(entries.map(({ id }) => id))];
  // A store that keeps them would count them again with the next load: the batch is repeated, PostgreSQL has it once.
  await within(timer, SILENCE, 'the store', store.forget(ids));
  deps.outbox.done(ids.filter((id) => !deps.isLive(id)));
}

const keyOf = ({ id, kind }: Entry): string => `${kind}/${id}`;

function firstOf(waiting: ReadonlyMap<string, { readonly entry: Entry }>): Entry[] {
  const first: Entry[] = [];
  for (const { entry } of waiting.values()) {
    if (first.length === MOST) break;
    first.push(entry);
  }
  return first;
}
