// The backlog: requests that ended and are not yet in the store or in PostgreSQL. Admission and an alert depend on it (LEDGER 6).
import type { Millis } from '../ports/money.ts';
import type { Booking } from './booking.ts';
import type { LedgerDependencies } from './deps.ts';
import type { Settlements } from './settlements.ts';

export interface Backlog {
  /** Whether new requests are refused. */
  isOverLimit(): boolean;
  /** Sets the gauges; called every second and after each booking. */
  report(): void;
}

export interface BacklogDependencies extends Pick<LedgerDependencies, 'instanceUid' | 'clock' | 'metrics'> {
  readonly booking: Pick<Booking, 'size' | 'oldest'>;
  readonly settlements: Pick<Settlements, 'size' | 'oldest'>;
}

/** Unbooked entries beyond this, or older, mean that PostgreSQL is away (LEDGER 6). */
const MAX_UNBOOKED = 100_000;
export const MAX_UNBOOKED_AGE: Millis = 30_000;

export function createBacklog({ instanceUid, booking, settlements, clock, metrics }: BacklogDependencies): Backlog {
  // One object for every call: cheap for metrics (ports/clock.ts).
  const labels = { instance: instanceUid };
  const size = (): number => booking.size() + settlements.size();
  const age = (): Millis => {
    const since = Math.min(
      booking.oldest() ?? Number.POSITIVE_INFINITY,
      settlements.oldest() ?? Number.POSITIVE_INFINITY,
    );
    return Math.max(0, clock.now() - since);
  };
  return {
    isOverLimit: () => size() > MAX_UNBOOKED || age() > MAX_UNBOOKED_AGE,
    report() {
      metrics.set('gateway_operator_ledger_unbooked', size(), labels);
      metrics.set('gateway_operator_ledger_unbooked_age_seconds', age() / 1000, labels);
    },
  };
}
