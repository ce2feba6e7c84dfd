// Durations such as `30d`, in milliseconds (DESIGN 3, Durations).
import { MAX_SECONDS, SECONDS_PER_UNIT } from '#crds/validation/units.ts';
import type { Millis } from '../ports/money.ts';

export const DURATION_PATTERN = /^([1-9][0-9]*)(s|m|h|d|w|mo)$/;

/** The longest legal duration: a hundred years (DESIGN 10, Bounds). */
export const MAX_DURATION: Millis = MAX_SECONDS * 1000;

/**
 * Milliseconds of a duration; undefined if it is malformed or longer than `MAX_DURATION`. `mo` is 30 days; Calendar
 * windows, which have calendar months, are in window.ts.
 */
export function parseDuration(text: string): Millis | undefined {
  const [, count, unit] = DURATION_PATTERN.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const millis = Number(count) * (SECONDS_PER_UNIT[unit] ?? Number.NaN) * 1000;
  return millis <= MAX_DURATION ? millis : undefined;
}
