// The days of ledger rows of a database: made ahead, and dropped after RETAIN_DAYS.
import type { DatabaseWithin } from '#adapters/postgres/database.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Log } from '#core/ports/telemetry.ts';

/**
 * The milliseconds in which sums are deleted that nothing needs: less than a flush may take. After `RETAIN_DAYS` was
 * lowered, the next resyncs continue.
 */
const MAX_DELETING: Millis = 5_000;

/**
 * Makes the next days, so that no booking has to, and drops days before the kept ones (`undefined`: an archive drops
 * them). A failure is tried again with the next resync: for a week, bookings find their days.
 */
export async function maintainDays(
  kept: number | 'forever' | undefined,
  database: Pick<DatabaseWithin, 'ensureDays' | 'dropDays'>,
  { clock, log }: { readonly clock: Pick<Clock, 'now'>; readonly log: Log },
): Promise<void> {
  try {
    await database.ensureDays();
    if (kept === undefined) return;
    const now = clock.now();
    const days = await database.dropDays(kept, now, { isOver: () => clock.now() - now >= MAX_DELETING });
    if (days.length > 0) log.info('days of ledger rows were dropped; sums of current windows stay', { days });
  } catch (error) {
    log.warn('cannot make or drop days of ledger rows', { why: reasonOf(error) });
  }
}
