// Late expiries: holds whose lease ended before the store forgot, and was booked after their new registration, so they count twice (LEDGER 6).
import type { Booked, Reading } from '../ports/books.ts';
import { counterKey, EMPTY_CALL, type Store, type StoreCall } from '../ports/store.ts';
import { differencesIn, readCounterSums } from './counter-sums.ts';
import type { LedgerDependencies } from './deps.ts';
import { chargedOf, type LiveHold, type LiveHolds, toRegistration } from './live-holds.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface LateExpiryDependencies extends Pick<LedgerDependencies, 'instanceUid' | 'books' | 'store' | 'timer'> {
  readonly liveHolds: LiveHolds;
}

/** The number of holds that fit one call with their counters. */
const MAX_PER_CALL = 16;

type BookedOf = ReadonlyMap<string, ReadonlyArray<Booked>>;

/**
 * Repairs a double count: another process knew of the expiry and had not booked it when this one registered the hold, so PostgreSQL has
 * the charge and the store the hold. The counters are repaired first, then the store frees the hold. Costs one query per
 * heartbeat while a re-registered hold lives, nothing otherwise.
 */
export async function repairLateExpiries(deps: LateExpiryDependencies, epoch: number): Promise<void> {
  const { books, timer, liveHolds } = deps;
  const moved = [...liveHolds.values()].filter(
    (live) => live.isReRegistered && !live.isSettledInStore && !live.isExpiredBefore,
  );
  if (moved.length === 0) return;
  const booked = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.bookedOf(moved.map(({ id }) => id)));
  const ended = moved.filter(({ id }) => chargedOf(booked, id) !== undefined);
  for (let at = 0; at < ended.length; at += MAX_PER_CALL) {
    const some = ended.slice(at, at + MAX_PER_CALL);
    const work = books.withLedgerLock(deps.instanceUid, (reading) => repair(deps, epoch, some, booked, reading));
    await withTimeout(timer, TIMEOUT, 'PostgreSQL or the store', work);
  }
}

/** Frees only holds whose charge the counters already show: a call that a frozen store runs late may lose its adjustment. */
async function repair(
  { store }: LateExpiryDependencies,
  epoch: number,
  ended: ReadonlyArray<LiveHold>,
  booked: BookedOf,
  reading: Reading,
): Promise<void> {
  const charges = ended.flatMap(({ note }) => note.charges);
  const counters = [...new Map(charges.map((of) => [counterKey(of), of])).values()];
  const adjusts = differencesIn(await readCounterSums(store, reading, counters));
  if (adjusts.length > 0) {
    await call(store, { ...EMPTY_CALL, epoch, adjusts });
    // The next heartbeat tries again.
    if (differencesIn(await readCounterSums(store, reading, counters)).length > 0) return;
  }
  const registers = ended.map((live) => toRegistration(live, chargedOf(booked, live.id)));
  await call(store, { ...EMPTY_CALL, epoch, registers });
  for (const live of ended) live.isExpiredBefore = true;
}

async function call(store: Store, asked: StoreCall): Promise<void> {
  const answer = await store.call(asked);
  if (answer.outcome === 'epoch') throw new Error('the store is being rebuilt');
}
