// Bookings by numbered batches: told first, then booked; one is under way while the next collects (LEDGER 8).

import type { Millis } from '../ports/money.ts';
import { type Account, type Loss, unbookedOf } from './account.ts';
import { createBackOff } from './back-off.ts';
import type { LedgerDependencies } from './deps.ts';
import { withTimeout } from './timeout.ts';

export interface BookingDependencies
  extends Pick<
    LedgerDependencies,
    'instanceUid' | 'books' | 'outbox' | 'clock' | 'timer' | 'log' | 'metrics' | 'isolate'
  > {
  readonly account: Account;
  /** Tells everything that is not told. */
  readonly tell: () => Promise<void>;
  /** Resolves when the account is open. */
  readonly opened: () => Promise<void>;
  /** The account is closed in PostgreSQL, or of another epoch. */
  readonly onLost: (why: Loss) => void;
  /** A batch is booked: the next call says so. */
  readonly onBooked: () => void;
}

/** Entries of many ticks share a transaction. */
const GATHER: Millis = 100;
const BOOKING_TIMEOUT: Millis = 5000;
/** Unbooked entries beyond this, or older, mean that PostgreSQL is away (LEDGER 6). */
const MAX_UNBOOKED = 100_000;
export const MAX_UNBOOKED_AGE: Millis = 30_000;

export type Booking = ReturnType<typeof createBooking>;

export function createBooking(deps: BookingDependencies) {
  const { account, clock, timer, metrics } = deps;
  const labels = { instance: deps.instanceUid };
  const backOff = createBackOff(timer, GATHER, 1000);
  let cancelGather: (() => void) | undefined;
  let running: Promise<void> | undefined;
  /** The batch that collects is to be sealed as soon as no call may add to it. */
  let isDue = false;

  /** Seals the batch that collects, unless one is under way or the pending call may add to it; then its answer comes first. */
  const seal = (): boolean => {
    if (account.sealed.length > 0) return true;
    if (account.collecting.length === 0 || account.sent.length > 0) return false;
    account.sealed = account.collecting;
    account.collecting = [];
    account.batch += 1;
    return true;
  };

  const bookSealed = async (): Promise<void> => {
    const { id, epoch, answered, sealed, batch, store } = account;
    const entries = sealed.map(({ entry }) => entry);
    const work = deps.books.bookBatch({
      ...{ epoch, account: { id, batch: batch - 1, number: answered } },
      ...{ calls: store.calls, entries },
    });
    const { outcome, rejected } = await withTimeout(timer, BOOKING_TIMEOUT, 'PostgreSQL', work);
    if (account.id !== id) return;
    if (outcome !== 'booked') return deps.onLost(outcome);
    reportRejected(deps, rejected);
    account.sealed = [];
    account.booked = batch - 1;
    deps.outbox.done(entries.map((entry) => entry.id));
    deps.onBooked();
  };

  const run = (): Promise<void> => {
    if (running !== undefined) return running;
    if (!account.isOpen || !seal()) return Promise.resolve();
    isDue = false;
    running = bookSealed()
      .then(backOff.succeeded, (cause) => {
        metrics.add('gateway_operator_ledger_booking_failures_total');
        backOff.failed(runInBackground);
        throw new Error('booking entries in PostgreSQL', { cause });
      })
      .finally(() => {
        running = undefined;
        report();
        gather();
      });
    return running;
  };
  const runInBackground = (): void => void run().catch(() => undefined);

  const gather = (): void => {
    // A visit books and closes its account together, when its request has ended.
    if (deps.isolate !== undefined) return;
    if (cancelGather !== undefined || running !== undefined || backOff.isPending()) return;
    if (!account.isOpen || account.collecting.length + account.sealed.length === 0) return;
    // A batch that met a pending call is sealed with its answer.
    if (isDue) runInBackground();
    else
      cancelGather = timer(GATHER, () => {
        cancelGather = undefined;
        isDue = true;
        runInBackground();
      });
  };

  const report = (): void => {
    metrics.set('gateway_operator_ledger_unbooked', sizeOf(account), labels);
    metrics.set('gateway_operator_ledger_unbooked_age_seconds', ageOf(account, clock.now()) / 1000, labels);
  };

  return {
    /** Entries were told: they are booked within about 100 ms. */
    gather,
    report,
    size: (): number => sizeOf(account),
    /** Tells and books everything that has ended so far; throws when store or PostgreSQL do not take it. */
    async flush(): Promise<void> {
      const owed = new Set(unbookedOf(account).map(({ entry }) => entry));
      const isOwed = (): boolean => unbookedOf(account).some(({ entry }) => owed.has(entry));
      while (isOwed()) {
        await deps.opened();
        await deps.tell();
        if (!isOwed()) return;
        await (running ?? run());
        // A call is under way that may add to the batch.
        if (running === undefined && isOwed()) await new Promise<void>((next) => timer(1, next));
      }
    },
    /** Whether new requests are refused. */
    isOverLimit: (): boolean => sizeOf(account) > MAX_UNBOOKED || ageOf(account, clock.now()) > MAX_UNBOOKED_AGE,
    close(): void {
      cancelGather?.();
      backOff.cancel();
    },
  };
}

const sizeOf = ({ untold, sent, collecting, sealed }: Account): number =>
  untold.length + sent.length + collecting.length + sealed.length;

function ageOf({ untold, sent, collecting, sealed }: Account, now: Millis): Millis {
  const oldest = sealed[0] ?? collecting[0] ?? sent[0] ?? untold[0];
  return oldest === undefined ? 0 : Math.max(0, now - oldest.since);
}

export function reportRejected(
  { metrics, log }: Pick<LedgerDependencies, 'metrics' | 'log'>,
  rejected: ReadonlyArray<string>,
): void {
  if (rejected.length === 0) return;
  metrics.add('gateway_operator_ledger_rejected_total', {}, rejected.length);
  log.error('PostgreSQL rejected entries; they are in entry_rejected', { ids: rejected });
}
