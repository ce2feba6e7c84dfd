// The upkeep of a database: days of ledger rows are made ahead, and dropped after RETAIN_DAYS; usage is summed up.
import type { DatabaseWithin } from '#adapters/postgres/database.ts';
import { reasonOf } from '#core/failure/error-text.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Log } from '#core/ports/telemetry.ts';

/**
 * The milliseconds after which nothing more is deleted, and after which no more usage is summed up. Both are less than a
 * resync may take to book settled requests. If much is left, as after a lower `RETAIN_DAYS`, the next resyncs continue.
 */
const MAX_DELETING: Millis = 5_000;
const MAX_SUMMING: Millis = 8_000;

/**
 * Makes the next days, so that no booking has to, drops days before the kept ones (`undefined`: an archive drops them),
 * and sums up usage, also if the days failed. A failure is tried again with the next resync: for a week, bookings find
 * their days.
 */
export async function maintainDays(
  kept: number | 'forever' | undefined,
  database: Pick<DatabaseWithin, 'ensureDays' | 'dropDays' | 'sumUpUsage'>,
  { clock, log }: { readonly clock: Pick<Clock, 'now'>; readonly log: Log },
): Promise<void> {
  const began = clock.now();
  const isAfter = (time: Millis) => () => clock.now() - began >= time;
  try {
    await database.ensureDays();
    const days = kept === undefined ? [] : await database.dropDays(kept, began, { isOver: isAfter(MAX_DELETING) });
    if (days.length > 0) log.info('days of ledger rows were dropped; sums of current windows stay', { days });
  } catch (error) {
    log.warn('cannot make or drop days of ledger rows', { why: reasonOf(error) });
  }
  try {
    await database.sumUpUsage(isAfter(MAX_SUMMING));
  } catch (error) {
    log.warn('cannot sum up usage', { why: reasonOf(error) });
  }
}
