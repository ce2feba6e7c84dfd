// The end of a hold: settled, released, or expired; once in the outbox, once in the store, once in PostgreSQL (LEDGER 1, 2).
import type { Entry } from '../ports/books.ts';
import type { Settlement } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type {
  Expired,
  HoldNote,
  HoldOperation,
  ReleaseOperation,
  SettleAnswer,
  SettleOperation,
} from '../ports/store.ts';
import type { Batch } from './batch.ts';
import { type Booking, NO_EPOCH } from './booking.ts';
import type { LedgerDependencies } from './deps.ts';
import { toCorrection, toExpired, toRefund, toSettled } from './entry.ts';
import type { HoldQueue } from './hold-queue.ts';
import { LEASE, type LiveHold, type LiveHolds } from './live-holds.ts';
import type { Loads } from './loads.ts';
import type { Membership } from './membership.ts';
import type { StoreClock } from './store-clock.ts';

export interface Settlements {
  settle(id: string, settlement: Settlement): Promise<void>;
  release(id: string, how?: { readonly called: boolean }): Promise<void>;
  /** Releases a hold that the store may have taken, after its request gave up. */
  releaseUnknown(operation: HoldOperation, written: boolean): void;
  expired(ended: ReadonlyArray<Expired>): void;
  /** When the oldest settlement or release began that the store does not have, on our clock. */
  oldest(): Millis | undefined;
  size(): number;
  /** Resolves when the store has every settlement and release begun so far. */
  counted(): Promise<void>;
}

export interface SettlementsDependencies
  extends Pick<LedgerDependencies, 'outbox' | 'clock' | 'timer' | 'log' | 'metrics'> {
  readonly liveHolds: LiveHolds;
  readonly batch: Batch;
  readonly loads: Loads;
  readonly booking: Booking;
  readonly membership: Membership;
  readonly storeClock: StoreClock;
  readonly queue: HoldQueue;
}

const LOAD_AGAIN: Millis = 1000;
/** Labels that come in the same object cost nothing (ports/clock.ts). */
const KINDS = { settled: { kind: 'settled' }, released: { kind: 'released' }, expired: { kind: 'expired' } };

export function createSettlements(deps: SettlementsDependencies): Settlements {
  const { liveHolds, outbox, batch, booking, membership, storeClock, queue, log, metrics } = deps;
  const counting = new Map<Promise<void>, Millis>();

  const track = (work: Promise<void>): Promise<void> => {
    counting.set(work, deps.clock.now());
    const over = (): unknown => counting.delete(work);
    work.then(over, over);
    return work;
  };

  const settleOnce = (live: LiveHold, entry: Entry): Promise<void> => {
    const written = outbox.append({ type: 'settle', entry });
    const counted = track(countSettled(deps, live, entry, written));
    return written.catch(async (error) => {
      log.error('the outbox cannot be written: waiting for PostgreSQL instead', { error: String(error) });
      await counted;
      await booking.flush();
    });
  };

  const writeRelease = (id: string): Promise<void> =>
    outbox
      .append({ type: 'release', id })
      .catch((error) => log.warn('the outbox misses a release', { id, error: String(error) }));

  const releaseInStore = async (operation: ReleaseOperation, note: HoldNote, written: Promise<void>): Promise<void> => {
    await written;
    const answer = await batch.release(operation);
    const epoch = membership.epoch();
    const { id } = operation;
    const live = liveHolds.get(id);
    markSettledInStore(live);
    queue.freed(note.charges);
    liveHolds.delete(id);
    metrics.add('gateway_operator_ledger_settles_total', KINDS.released);
    if (answer.outcome === 'expired') {
      const now = storeClock.now();
      // The process that corrects an expiry also books it: the store may forget the expiry before reporting it.
      booking.add(toExpired(id, note, answer.charged, now), epoch);
      booking.add(toRefund(id, note, answer.charged, now), epoch);
    } else if (live?.isReRegistered === true) {
      // Another process may have booked the expiry before the store forgot the hold.
      booking.add(toRefund(id, note, 0n, storeClock.now()), epoch, true);
    } else outbox.done([id]);
  };

  return {
    settle(id, settlement) {
      const live = liveHolds.get(id);
      if (live === undefined || live.ending !== undefined) return live?.ending ?? Promise.resolve();
      if (settlement.cost < 0n) return Promise.reject(new Error(`a reply cannot cost ${settlement.cost}`));
      if (settlement.cost > live.amount) {
        metrics.add('gateway_operator_ledger_overruns_total');
        log.warn('a reply cost more than its hold', { id, held: `${live.amount}`, cost: `${settlement.cost}` });
      }
      live.outcome = settlement.cost;
      // The stream is over. Its closures would outlive the collector's young generation (a Map's outgrown tables keep their contents).
      live.known = undefined;
      live.lost = undefined;
      live.ending = settleOnce(live, toSettled(id, live.note, settlement, storeClock.now()));
      return live.ending;
    },

    async release(id, how) {
      const live = liveHolds.get(id);
      if (live === undefined || live.ending !== undefined) return live?.ending;
      live.outcome = 'released';
      live.ending = writeRelease(id);
      const called = how?.called === true ? { called: how.called } : {};
      track(releaseInStore({ id, lease: LEASE, ...called }, live.note, live.ending));
      return live.ending;
    },

    releaseUnknown({ id, note }, written) {
      track(releaseInStore({ id, lease: LEASE }, note, written ? writeRelease(id) : Promise.resolve()));
    },

    expired(ended) {
      for (const { id, charged, note } of ended) {
        const entry = toExpired(id, note, charged, storeClock.now());
        if (booking.has(entry)) continue;
        queue.freed(note.charges);
        metrics.add('gateway_operator_ledger_settles_total', KINDS.expired);
        // The settlement of a live hold may follow: after a crash the replay must know what was charged.
        const written = liveHolds.has(id) ? outbox.append({ type: 'expired', entry }) : Promise.resolve();
        const epoch = membership.epoch();
        track(written.catch(() => undefined).then(() => booking.add(entry, epoch)));
      }
    },

    size: () => counting.size,
    oldest: () => counting.values().next().value,
    async counted() {
      await Promise.all(counting.keys());
    },
  };
}

/** Settles in the store, then books: outbox records stay until both are done. */
async function countSettled(
  deps: SettlementsDependencies,
  live: LiveHold,
  entry: Entry,
  written: Promise<void>,
): Promise<void> {
  const { liveHolds, outbox, booking, log } = deps;
  try {
    // The disk comes before the store: a restart that finds only the hold charges it, and the store must not know more than the disk.
    await written;
  } catch {
    // The settlement waits for PostgreSQL instead.
  }
  const operation = toOperation(live, entry);
  const first = await deps.batch.settle(operation);
  const answer = isKnown(first) ? first : await settleUnknown(deps, live, operation, first);
  // An unknown hold may have been booked by another process and forgotten by the store: then it counts twice, and NO_EPOCH makes the booking audit it.
  const isUnknown = first.outcome === 'unknown';
  const epoch = isUnknown ? NO_EPOCH : deps.membership.epoch();
  markSettledInStore(live);
  deps.queue.freed(live.note.charges);
  liveHolds.delete(live.id);
  deps.metrics.add('gateway_operator_ledger_settles_total', KINDS.settled);
  if (answer.outcome === 'settled') booking.add(entry, epoch, live.isReRegistered || isUnknown);
  else if (answer.outcome === 'expired') {
    booking.add(toExpired(live.id, live.note, answer.charged, entry.settledAt), epoch);
    booking.add(toCorrection(entry, answer.charged), epoch);
  } else {
    log.error('a released hold was settled', { id: live.id, cost: `${entry.cost}` });
    outbox.done([live.id]);
  }
}

/** The settle operation; the entry serves as its note. */
function toOperation({ id, tokens }: LiveHold, entry: Entry): SettleOperation {
  const operation = { id, cost: entry.cost, note: entry };
  return tokens === undefined ? operation : { ...operation, tokens: entry.tokens.input + entry.tokens.output };
}

const isKnown = ({ outcome }: SettleAnswer): boolean => outcome !== 'unknown' && outcome !== 'absent';

/** Repeats the settlement of a hold that the store has forgotten, until the store has counted it once. */
async function settleUnknown(
  { batch, loads, timer }: SettlementsDependencies,
  { counters }: LiveHold,
  operation: SettleOperation,
  first: SettleAnswer,
): Promise<SettleAnswer> {
  let answer = first;
  while (!isKnown(answer)) {
    if (answer.outcome === 'absent') await loads.load(counters).catch(() => pause(timer, LOAD_AGAIN));
    answer = await batch.settle({ ...operation, counters });
  }
  return answer;
}

/** Marks the hold as ended in the store; its records may still be unwritten. */
function markSettledInStore(live: LiveHold | undefined): void {
  if (live !== undefined) live.isSettledInStore = true;
}

const pause = (timer: Timer, millis: Millis): Promise<void> =>
  new Promise((resolve) => {
    timer(millis, resolve);
  });
