// Bookings: charges are written to PostgreSQL in batches, within about 100 ms, and retried until they are there (LEDGER 8).
import type { Entry, Marks } from '../ports/books.ts';
import type { Millis } from '../ports/money.ts';
import type { EntryName, StoreCall } from '../ports/store.ts';
import { createBackOff } from './back-off.ts';
import type { LedgerDependencies } from './deps.ts';
import { besideBooked } from './entry.ts';
import type { Membership } from './membership.ts';
import { withTimeout } from './timeout.ts';

export interface Booking {
  /** Adds an entry that the store has counted, and the epoch of that count (ports/store.ts says why). Adding an entry again changes nothing. */
  add(entry: Entry, epoch: number, isReRegistered?: boolean): void;
  has(entry: Entry): boolean;
  size(): number;
  /** When the oldest unbooked entry was added, on our clock. */
  oldest(): Millis | undefined;
  /** Books all entries added so far; throws when PostgreSQL does not take them. */
  flush(): Promise<void>;
  close(): void;
}

export interface BookingDependencies
  extends Pick<
    LedgerDependencies,
    'instanceUid' | 'books' | 'store' | 'outbox' | 'clock' | 'timer' | 'log' | 'metrics'
  > {
  readonly membership: Membership;
  /** Whether the hold is live in this process: then the outbox keeps its records. */
  readonly isLive: (id: string) => boolean;
  /** Called after each run, booked or failed. */
  readonly onRun: () => void;
  /** Called with booked entries that were counted in an earlier epoch: a counter may have been loaded without them. */
  readonly onBookedAcrossEpochs: (entries: ReadonlyArray<Entry>) => void;
}

interface Waiting {
  readonly entry: Entry;
  /** The epoch in which the store counted the entry. */
  readonly epoch: number;
  /** Whether its hold went through a rebuild (live-holds.ts). */
  readonly isReRegistered: boolean;
  readonly since: Millis;
}

/** Counted under no epoch, so it is always audited after booking. */
export const NO_EPOCH = -1;
const GATHER: Millis = 100;
const BOOKING_TIMEOUT: Millis = 5000;
const MAX_BATCH = 2000;
const MAX_UNACKNOWLEDGED = 10_000;

export function createBooking(deps: BookingDependencies): Booking {
  const { clock, timer, metrics } = deps;
  /** Entries in order of arrival, so the first is the oldest. */
  const waiting = new Map<string, Waiting>();
  /** The first waiting entry, cached until a batch is booked. */
  let oldest: Waiting | undefined;
  /** Booked entries that the store has not been told to forget yet. */
  const unacknowledged: EntryName[] = [];
  const backOff = createBackOff(timer, GATHER, 1000);
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

  /** One run at a time; entries added meanwhile wait for the next one. */
  const run = (): Promise<void> => {
    running ??= bookAll().finally(() => {
      running = undefined;
      deps.onRun();
      gather();
    });
    return running;
  };

  const bookAll = async (): Promise<void> => {
    try {
      for (let left = waiting.size; left > 0; ) left -= await bookNext();
      backOff.succeeded();
    } catch (cause) {
      metrics.add('gateway_operator_ledger_booking_failures_total');
      if (!closed) backOff.failed(() => run().catch(() => undefined));
      throw new Error('booking entries in PostgreSQL', { cause });
    }
  };

  /** Books the oldest entries. Returns how many. */
  const bookNext = async (): Promise<number> => {
    const batch = firstOf(waiting);
    if (batch.length === 0) return Number.POSITIVE_INFINITY;
    const current = await bookBatch(deps, batch);
    for (const { entry } of batch) waiting.delete(keyOf(entry));
    oldest = undefined;
    forget(batch.map(({ entry }) => entry));
    const fromOtherEpoch = batch.filter(({ epoch, isReRegistered }) => isReRegistered || epoch !== current);
    if (fromOtherEpoch.length > 0) deps.onBookedAcrossEpochs(fromOtherEpoch.map(({ entry }) => entry));
    return batch.length;
  };

  /** Tells the store to forget booked entries. A failure is harmless: the next call repeats them, and a drain finds the rest. */
  const forget = (entries: ReadonlyArray<Entry>): void => {
    const names = [...unacknowledged.splice(0), ...entries.map(({ id, kind }) => ({ id, kind }))];
    const forgotten = withTimeout(timer, BOOKING_TIMEOUT, 'the store', deps.store.forget(names));
    forgotten.catch(() => unacknowledged.push(...names.slice(-MAX_UNACKNOWLEDGED)));
  };

  return {
    add(entry, epoch, isReRegistered = false) {
      const key = keyOf(entry);
      if (!waiting.has(key)) waiting.set(key, { entry, epoch, isReRegistered, since: clock.now() });
      gather();
    },
    has: (entry) => waiting.has(keyOf(entry)),
    size: () => waiting.size,
    oldest() {
      oldest ??= waiting.values().next().value;
      return oldest?.since;
    },
    async flush() {
      const keys = [...waiting.keys()];
      while (keys.some((key) => waiting.has(key))) await run();
    },
    close() {
      closed = true;
      cancelGather?.();
      backOff.cancel();
    },
  };
}

/** Returns the epoch of the booking: counters loaded in it may miss entries that were counted in another. */
async function bookBatch(deps: BookingDependencies, batch: ReadonlyArray<Waiting>): Promise<number> {
  const { instanceUid, books, membership, timer } = deps;
  const from = membership.from();
  const marks = from === undefined ? undefined : toMarks(membership.epoch(), from);
  const entries = await correctEnds(deps, batch);
  const { rejected, epoch } = await withTimeout(
    timer,
    BOOKING_TIMEOUT,
    'PostgreSQL',
    books.book(instanceUid, entries, marks),
  );
  if (rejected.length > 0) {
    deps.metrics.add('gateway_operator_ledger_rejected_total', {}, rejected.length);
    deps.log.error('PostgreSQL rejected entries; they are in entry_rejected', { ids: rejected });
  }
  const ids = new Set(entries.map(({ id }) => id));
  deps.outbox.done([...ids].filter((id) => !deps.isLive(id)));
  return epoch ?? (membership.isOpen() ? membership.epoch() : NO_EPOCH);
}

/** Corrects entries of re-registered holds and of ended leases: another process may have booked another end of the same hold. */
async function correctEnds({ books, timer }: BookingDependencies, batch: ReadonlyArray<Waiting>): Promise<Entry[]> {
  const doubtful = batch
    .filter(({ isReRegistered, entry }) => isReRegistered || entry.kind === 'expired')
    .map(({ entry }) => entry.id);
  if (doubtful.length === 0) return batch.map(({ entry }) => entry);
  const booked = await withTimeout(timer, BOOKING_TIMEOUT, 'PostgreSQL', books.bookedOf(doubtful));
  return batch.flatMap(({ entry, isReRegistered }) => {
    const found = booked.get(entry.id);
    if (!isReRegistered || entry.kind !== 'correction') return besideBooked(entry, found);
    const ended = found?.find(({ kind }) => kind === 'expired');
    return ended === undefined ? [] : [{ ...entry, cost: -ended.cost }];
  });
}

const toMarks = (epoch: number, { process, acknowledged }: NonNullable<StoreCall['from']>): Marks => ({
  epoch,
  calls: new Map([[process, acknowledged]]),
});

/** Nearly all entries are settlements, so their id alone is the key: no text is built. */
const keyOf = ({ id, kind }: Entry): string => (kind === 'settled' ? id : `${kind}/${id}`);

function firstOf(waiting: ReadonlyMap<string, Waiting>): Waiting[] {
  const first: Waiting[] = [];
  for (const one of waiting.values()) {
    if (first.length === MAX_BATCH) break;
    first.push(one);
  }
  return first;
}
