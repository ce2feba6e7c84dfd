// How long is `30d`, in milliseconds? (DESIGN 3, Durations.)
import type { Millis } from './ports/money.ts';

export const DURATION_PATTERN = /^([1-9][0-9]*)(s|m|h|d|w|mo)$/;

const SECOND = 1000;
const DAY = 86_400 * SECOND;

/** `mo` is 30 days: a window is counted in hours from its anchor, never in calendar months. */
const UNIT: Readonly<Record<string, Millis>> = {
  s: SECOND,
  m: 60 * SECOND,
  h: 3600 * SECOND,
  d: DAY,
  w: 7 * DAY,
  mo: 30 * DAY,
};

/** The longest legal duration: a hundred years (DESIGN 10, Bounds). */
export const LONGEST_DURATION: Millis = 36_525 * DAY;

/** Milliseconds of a duration string, or undefined when it is malformed or longer than LONGEST_DURATION. */
export function parseDuration(text: string): Millis | undefined {
  const [, count, unit] = DURATION_PATTERN.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const millis = Number(count) * (UNIT[unit] ?? Number.NaN);
  return millis <= LONGEST_DURATION ? millis : undefined;
}
