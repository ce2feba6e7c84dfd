// How is money held before a request and charged after it? Everything the gateway asks of the ledger, put together (LEDGER).
import type { Books } from '../ports/books.ts';
import type { Clock, Ids, Log, Metrics } from '../ports/clock.ts';
import type { HoldRefusal, Ledger } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox, OutboxRecord } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { Expired, Store } from '../ports/store.ts';
import { err } from '../result.ts';
import { createBatch } from './batch.ts';
import { createBooking } from './booking.ts';
import { createEnding } from './ending.ts';
import { createHold } from './hold.ts';
import { keepLeases } from './lease.ts';
import type { Lives } from './lives.ts';
import { createLoads } from './loads.ts';
import { createMove } from './move.ts';
import { recover } from './recover.ts';
import { createSpend } from './spend.ts';
import { createStoreClock } from './store-clock.ts';
import { createTake } from './take.ts';
import { createWaiting } from './waiting.ts';
import { within } from './within.ts';

export interface LedgerDependencies {
  readonly instanceUid: string;
  readonly store: Store;
  readonly books: Books;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly timer: Timer;
  /** Calls back when the requests that are here now have been read: they share a store call. Default: after this turn's promises. */
  readonly tick?: (callback: () => void) => void;
  /** The epoch of a store that never goes back in time is 1. */
  readonly epoch?: number;
}

/** Unbooked entries beyond this, or older, mean that PostgreSQL is away (LEDGER 6). */
const MOST_UNBOOKED = 100_000;
const OLDEST_UNBOOKED: Millis = 30_000;
/** A flush answers within this; a stop may take so long. */
const GRACE: Millis = 5000;

export interface StartableLedger extends Ledger {
  /** Books what an earlier process left in the outbox. Until it succeeded, holds are refused as unavailable; it may be called again. */
  start(): Promise<void>;
}

export function createLedger(deps: LedgerDependencies): StartableLedger {
  const { store, books, outbox, clock, timer, log, metrics } = deps;
  const tick = deps.tick ?? afterPromises;
  const lives: Lives = new Map();
  const storeClock = createStoreClock(clock);
  const onExpired = (expired: ReadonlyArray<Expired>): void => ending.expired(expired);
  const epoch = deps.epoch ?? 1;
  const batch = createBatch({ store, epoch, clock, storeClock, timer, tick, metrics, onExpired });
  const isLive = (id: string): boolean => lives.has(id);
  const booking = createBooking({ ...deps, isLive });
  const loads = createLoads({ books, batch, exclusively: booking.exclusively, timer, tick });
  const waiting = createWaiting(timer);
  const take = createTake({ batch, loads, clock, storeClock, waiting });
  const ending = createEnding({ ...deps, lives, batch, loads, booking, storeClock, waiting });
  const hold = createHold({ ...deps, lives, take, ending });
  const move = createMove({ lives, batch, timer });
  const spend = createSpend({ store, batch, loads, storeClock, timer });

  let records: ReadonlyArray<OutboxRecord> | undefined;
  let phase: 'new' | 'open' | 'closed' = 'new';
  let stopBeating = (): void => undefined;

  const refusal = (): HoldRefusal | undefined => {
    if (phase !== 'open')
      return { reason: 'unavailable', why: phase === 'new' ? 'the ledger starts' : 'the ledger stops' };
    const since = Math.min(booking.oldest() ?? Number.POSITIVE_INFINITY, ending.oldest() ?? Number.POSITIVE_INFINITY);
    if (booking.size() + ending.size() <= MOST_UNBOOKED && clock.now() - since <= OLDEST_UNBOOKED) return undefined;
    return { reason: 'unavailable', why: 'PostgreSQL or the store is behind with what was settled' };
  };

  const flushAll = async (): Promise<void> => {
    await Promise.all([batch.flush(), ending.counted()]);
    await booking.flush();
  };

  return {
    async start() {
      if (phase !== 'new') return;
      records ??= await outbox.recover();
      await recover({ books, outbox, batch, loads, booking, storeClock, timer, log, metrics }, records);
      records = undefined;
      phase = 'open';
      stopBeating = keepLeases({ lives, batch, outbox, clock, timer, log });
    },
    async hold(request) {
      const refused = refusal();
      return refused === undefined ? hold(request) : err(refused);
    },
    progress({ id }, known) {
      const live = lives.get(id);
      // The last word counts: a provider's own count may be less than what was estimated from the bytes so far.
      if (live !== undefined) live.known = known;
    },
    settle: ({ id }, settlement) => ending.settle(id, settlement),
    release: ({ id }, how) => ending.release(id, how),
    move: ({ id }, to) => move(id, to),
    spend: (scopes) => spend(scopes),
    flush: () => within(timer, GRACE, 'store or database', flushAll()),
    async close() {
      if (phase === 'closed') return;
      phase = 'closed';
      stopBeating();
      await within(timer, GRACE, 'store or database', flushAll()).catch((error) =>
        log.warn('stopped with unbooked entries; the next start books them', {
          unbooked: booking.size() + ending.size(),
          error: String(error),
        }),
      );
      batch.close();
      booking.close();
    },
  };
}

const afterPromises = (callback: () => void): void => {
  void Promise.resolve().then(callback);
};
