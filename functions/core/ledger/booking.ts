// Bookings: PostgreSQL learns what was charged in batches, within about 100 ms, tried again until it has them (LEDGER 8).
import type { Books, Entry, Marks } from '../ports/books.ts';
import type { Clock, Log, Metrics } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { EntryName, Store, StoreCall } from '../ports/store.ts';
import { createBackOff } from './back-off.ts';
import { besideBooked } from './entry.ts';
import type { Membership } from './membership.ts';
import { withTimeout } from './timeout.ts';

export interface Booking {
  /** Only what the store has counted, under which epoch (ports/store.ts says why). Adding the same entry again changes nothing. */
  add(entry: Entry, epoch: number, isReRegistered?: boolean): void;
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
  readonly membership: Membership;
  /** Whether this process still works on the hold: then the outbox keeps its records. */
  readonly isLive: (id: string) => boolean;
  /** Something was booked, or could not be. */
  readonly onRun: () => void;
  /** These were counted under an epoch that is over, and are in PostgreSQL now: a counter may have been loaded without them. */
  readonly onBookedAcrossEpochs: (entries: ReadonlyArray<Entry>) => void;
}

interface Waiting {
  readonly entry: Entry;
  /** Under which the store counted it. */
  readonly epoch: number;
  /** Its hold went through a rebuild (live-holds.ts). */
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
  /** In the order in which they came, so the first is the oldest. */
  const waiting = new Map<string, Waiting>();
  /** The first of them, where it was asked for since it became that. */
  let oldest: Waiting | undefined;
  /** PostgreSQL has them, and the store was not there to hear it. */
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

  /** One run at a time; what comes meanwhile is for the next one. */
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

  /** The oldest entries first. Answers how many. */
  const bookNext = async (): Promise<number> => {
    const batch = firstOf(waiting);
    if (batch.length === 0) return Number.POSITIVE_INFINITY;
    const current = await bookBatch(deps, batch);
    for (const { entry } of batch) waiting.delete(keyOf(entry));
    oldest = undefined;
    forget(batch.map(({ entry }) => entry));
    const straight = batch.filter(({ epoch, isReRegistered }) => isReRegistered || epoch !== current);
    if (straight.length > 0) deps.onBookedAcrossEpochs(straight.map(({ entry }) => entry));
    return batch.length;
  };

  /** What the store keeps longer is harmless, and a drain takes it; it is told again with the next ones. */
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

/** Answers the epoch that held when they were booked: what was counted under another may be missing in counters that were loaded since. */
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
    deps.log.error('PostgreSQL put entries aside in entry_rejected', { ids: rejected });
  }
  const ids = new Set(entries.map(({ id }) => id));
  deps.outbox.done([...ids].filter((id) => !deps.isLive(id)));
  return epoch ?? (membership.isOpen() ? membership.epoch() : NO_EPOCH);
}

/** Holds that went through a rebuild, and ends of leases, may have ended otherwise meanwhile, and another process may have booked that. */
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

/** Nearly all are settlements, whose ids need no text of their own. */
const keyOf = ({ id, kind }: Entry): string => (kind === 'settled' ? id : `${kind}/${id}`);

function firstOf(waiting: ReadonlyMap<string, Waiting>): Waiting[] {
  const first: Waiting[] = [];
  for (const one of waiting.values()) {
    if (first.length === MAX_BATCH) break;
    first.push(one);
  }
  return first;
}
