// How does a hold end? Settled, released, or expired: once in the outbox, once in the store, once in PostgreSQL (LEDGER 1, 2).
import type { Entry } from '../ports/books.ts';
import type { Clock, Log, Metrics } from '../ports/clock.ts';
import type { Settlement } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox } from '../ports/outbox.ts';
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
import type { Booking } from './booking.ts';
import { toCorrection, toExpired, toRefund, toSettled } from './entry.ts';
import type { Live, Lives } from './lives.ts';
import type { Loads } from './loads.ts';
import type { Membership } from './membership.ts';
import type { StoreClock } from './store-clock.ts';
import { LEASE } from './take.ts';
import type { Waiting } from './waiting.ts';

export interface Ending {
  settle(id: string, settlement: Settlement): Promise<void>;
  release(id: string, how?: { readonly called: boolean }): Promise<void>;
  /** Nobody knows whether the store took it, and nobody waits for it any more. */
  abandon(operation: HoldOperation, written: boolean): void;
  expired(ended: ReadonlyArray<Expired>): void;
  /** When the oldest ending that the store does not have began, on our clock. */
  oldest(): Millis | undefined;
  size(): number;
  /** Resolves when the store has every ending begun so far. */
  counted(): Promise<void>;
}

export interface EndingDependencies {
  readonly lives: Lives;
  readonly outbox: Outbox;
  readonly batch: Batch;
  readonly loads: Loads;
  readonly booking: Booking;
  readonly membership: Membership;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly waiting: Waiting;
  readonly timer: Timer;
  readonly log: Log;
  readonly metrics: Metrics;
}

const LOAD_AGAIN: Millis = 1000;
/** Whatever holds when it is booked is another. */
const NO_EPOCH = -1;
/** Labels that come in the same object cost nothing (ports/clock.ts). */
const KINDS = { settled: { kind: 'settled' }, released: { kind: 'released' }, expired: { kind: 'expired' } };

export function createEnding(deps: EndingDependencies): Ending {
  const { lives, outbox, batch, booking, membership, storeClock, waiting, log, metrics } = deps;
  const counting = new Map<Promise<void>, Millis>();

  const track = (work: Promise<void>): Promise<void> => {
    counting.set(work, deps.clock.now());
    const over = (): unknown => counting.delete(work);
    work.then(over, over);
    return work;
  };

  const settleOnce = (live: Live, entry: Entry): Promise<void> => {
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
    const live = lives.get(id);
    markCounted(live);
    waiting.freed(note.charges);
    lives.delete(id);
    metrics.add('gateway_operator_ledger_settles_total', KINDS.released);
    if (answer.outcome === 'expired') {
      const now = storeClock.now();
      // Whoever corrects it books it too: the store may forget it before it tells.
      booking.add(toExpired(id, note, answer.charged, now), epoch);
      booking.add(toRefund(id, note, answer.charged, now), epoch);
    } else if (live?.isMoved === true) {
      // Somebody may have booked the end of its lease before the store forgot it.
      booking.add(toRefund(id, note, 0n, storeClock.now()), epoch, true);
    } else outbox.done([id]);
  };

  return {
    settle(id, settlement) {
      const live = lives.get(id);
      if (live === undefined || live.ending !== undefined) return live?.ending ?? Promise.resolve();
      if (settlement.cost < 0n) return Promise.reject(new Error(`a reply cannot cost ${settlement.cost}`));
      if (settlement.cost > live.amount) {
        metrics.add('gateway_operator_ledger_overruns_total');
        log.warn('a reply cost more than its hold', { id, held: `${live.amount}`, cost: `${settlement.cost}` });
      }
      live.outcome = settlement.cost;
      // Its stream has nothing more to tell. Kept here, all of it would outlive the collector's young generation (a Map's outgrown tables hold what was in them).
      live.known = undefined;
      live.lost = undefined;
      live.ending = settleOnce(live, toSettled(id, live.note, settlement, storeClock.now()));
      return live.ending;
    },

    async release(id, how) {
      const live = lives.get(id);
      if (live === undefined || live.ending !== undefined) return live?.ending;
      live.outcome = 'released';
      live.ending = writeRelease(id);
      const called = how?.called === true ? { called: how.called } : {};
      track(releaseInStore({ id, lease: LEASE, ...called }, live.note, live.ending));
      return live.ending;
    },

    abandon({ id, note }, written) {
      track(releaseInStore({ id, lease: LEASE }, note, written ? writeRelease(id) : Promise.resolve()));
    },

    expired(ended) {
      for (const { id, charged, note } of ended) {
        const entry = toExpired(id, note, charged, storeClock.now());
        if (booking.has(entry)) continue;
        waiting.freed(note.charges);
        metrics.add('gateway_operator_ledger_settles_total', KINDS.expired);
        // While we work on it, its settlement may follow: after a crash that must know what was charged.
        const written = lives.has(id) ? outbox.append({ type: 'expired', entry }) : Promise.resolve();
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

/** Booked when the store has counted it: nothing is cut away too early. */
async function countSettled(deps: EndingDependencies, live: Live, entry: Entry, written: Promise<void>): Promise<void> {
  const { lives, outbox, booking, log } = deps;
  try {
    // First the disk, then the store: a restart that finds only the hold charges it, and the store must not know better.
    await written;
  } catch {
    // Whoever settles waits for PostgreSQL instead.
  }
  const operation = toOperation(live, entry);
  const told = await deps.batch.settle(operation);
  const answer = isKnown(told) ? told : await settleUnknown(deps, live, operation, told);
  // Somebody may have booked it, or the end of its lease, and the store forgotten it, before this process heard: then it is counted twice, and looked at again.
  const isUnknown = told.outcome === 'unknown';
  const epoch = isUnknown ? NO_EPOCH : deps.membership.epoch();
  markCounted(live);
  deps.waiting.freed(live.note.charges);
  lives.delete(live.id);
  deps.metrics.add('gateway_operator_ledger_settles_total', KINDS.settled);
  if (answer.outcome === 'settled') booking.add(entry, epoch, live.isMoved || isUnknown);
  else if (answer.outcome === 'expired') {
    booking.add(toExpired(live.id, live.note, answer.charged, entry.settledAt), epoch);
    booking.add(toCorrection(entry, answer.charged), epoch);
  } else {
    log.error('a released hold was settled', { id: live.id, cost: `${entry.cost}` });
    outbox.done([live.id]);
  }
}

/** The entry is the note: it has all that whoever books it needs. */
function toOperation({ id, tokens }: Live, entry: Entry): SettleOperation {
  const operation = { id, cost: entry.cost, note: entry };
  return tokens === undefined ? operation : { ...operation, tokens: entry.tokens.input + entry.tokens.output };
}

const isKnown = ({ outcome }: SettleAnswer): boolean => outcome !== 'unknown' && outcome !== 'absent';

/** The store does not know the hold any more: until it has counted it once. */
async function settleUnknown(
  { batch, loads, timer }: EndingDependencies,
  { counters }: Live,
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

/** Whatever is written of it now, it holds nothing any more. */
function markCounted(live: Live | undefined): void {
  if (live !== undefined) live.isCounted = true;
}

const pause = (timer: Timer, millis: Millis): Promise<void> =>
  new Promise((resolve) => {
    timer(millis, resolve);
  });
