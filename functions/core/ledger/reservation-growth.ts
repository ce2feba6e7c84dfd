// Growth of a reservation by the charge of an attempt that broke, before another attempt begins (LEDGER 10).

import { err, ok, type Result } from '../failure/result.ts';
import type { Reservation, ReservationRefusal } from '../ports/ledger.ts';
import type { Nano } from '../ports/money.ts';
import { enlargeReservation, markChanged } from './account.ts';
import type { LedgerContext } from './context.ts';
import { fits } from './counters.ts';
import { type LiveReservation, liveOf } from './requests.ts';
import { hasRecentReply, recordReservation, stopReason } from './reservations.ts';
import { REQUEST_DEADLINE } from './timeout.ts';

type GrowthResult = Result<void, ReservationRefusal>;

const OK: GrowthResult = ok(undefined);
const RESERVATION_ENDED: GrowthResult = err({ reason: 'unavailable', why: 'the reservation has ended' });

/** Uses idle escrow if it is enough, else requests money from the store, in the windows of the reservation. */
export const createGrow =
  (context: LedgerContext) =>
  (reservation: Reservation, by: Nano): Promise<GrowthResult> => {
    const live = liveOf(reservation);
    if (live === undefined) return Promise.resolve(RESERVATION_ENDED);
    const why = stopReason(context);
    if (why !== undefined) return Promise.resolve(err({ reason: 'unavailable', why }));
    const { namespace, scopes, scopeWindows, counters } = live;
    const fitsIdle = hasRecentReply(context) && counters.every((counter) => fits(counter, by));
    if (by === 0n || fitsIdle) return add(context, live, by);
    const chargedCounters = { scopes, scopeWindows, counters, limits: counters.map(({ limit }) => limit) };
    return new Promise((resolve) =>
      context.waitQueue.add({
        namespace,
        chargedCounters,
        amount: by,
        minAmount: by,
        rates: undefined,
        isGrowth: true,
        deadline: context.intervalClock.now() + REQUEST_DEADLINE,
        onReserved: () => resolve(add(context, live, by)),
        onRefused: (refusal) => resolve(err(refusal)),
      }),
    );
  };

/** Adds the money to the reservation in the same step in which it is granted: a call in between would return it. */
async function add(context: LedgerContext, live: LiveReservation, by: Nano): Promise<GrowthResult> {
  const { account } = context;
  if (live.ending !== undefined) {
    for (const counter of live.counters) markChanged(account, counter);
    return RESERVATION_ENDED;
  }
  enlargeReservation(account, live, by);
  await recordReservation(context, live);
  return OK;
}
