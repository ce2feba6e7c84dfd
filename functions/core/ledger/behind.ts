// How far are store and PostgreSQL behind with what has ended? Requests are refused by it, and people are called (LEDGER 6).
import type { Clock, Metrics } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Booking } from './booking.ts';
import type { Ending } from './ending.ts';

export interface Behind {
  /** Too far: nothing more is let in. */
  isTooFar(): boolean;
  /** To be called each second, and when something was booked: a gauge that nobody sets stands still. */
  report(): void;
}

export interface BehindDependencies {
  readonly instanceUid: string;
  readonly booking: Pick<Booking, 'size' | 'oldest'>;
  readonly ending: Pick<Ending, 'size' | 'oldest'>;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** Unbooked entries beyond this, or older, mean that PostgreSQL is away (LEDGER 6). */
const MOST_UNBOOKED = 100_000;
export const OLDEST_UNBOOKED: Millis = 30_000;

export function createBehind({ instanceUid, booking, ending, clock, metrics }: BehindDependencies): Behind {
  // One object: metrics know it again.
  const labels = { instance: instanceUid };
  const size = (): number => booking.size() + ending.size();
  const age = (): Millis => {
    const since = Math.min(booking.oldest() ?? Number.POSITIVE_INFINITY, ending.oldest() ?? Number.POSITIVE_INFINITY);
    return Math.max(0, clock.now() - since);
  };
  return {
    isTooFar: () => size() > MOST_UNBOOKED || age() > OLDEST_UNBOOKED,
    report() {
      metrics.set('gateway_operator_ledger_unbooked', size(), labels);
      metrics.set('gateway_operator_ledger_unbooked_age_seconds', age() / 1000, labels);
    },
  };
}
