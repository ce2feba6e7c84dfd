// Do Calendar windows of this length begin where nobody would look for them? (`windowAt` says where each begins.)
import { DURATION_PATTERN, parseDuration } from '../duration.ts';
import type { Finding } from '../finding.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Nothing where each day, each Monday or the same months of each year begin one. */
export function calendarWindow(path: string, duration: string): Finding[] {
  const counting = countingOf(duration);
  if (counting === undefined) return [];
  const message = `budgetWindow Calendar counts windows of this length ${counting}`;
  return [{ rule: 'UnevenWindow', path, value: duration, message, effect: 'warn' }];
}

function countingOf(duration: string): string | undefined {
  const length = parseDuration(duration);
  const [, count, unit] = DURATION_PATTERN.exec(duration) ?? [];
  if (length === undefined) return undefined;
  if (unit === 'mo') {
    if (12 % Number(count) === 0) return undefined;
    return `in blocks of ${count} months from January 1970 on; write "1mo", "2mo", "3mo", "4mo", "6mo" or "12mo" for windows that begin in the same months of each year`;
  }
  if (unit === 'w') {
    if (count === '1') return undefined;
    return `in blocks of ${count} weeks from Monday 1970-01-05 on; write "1w" for windows that begin each Monday`;
  }
  if (DAY % length === 0) return undefined;
  return `in a row from 1970-01-01T00:00Z on, whatever day, week or month that meets; write ${betterFor(length)}`;
}

function betterFor(length: number): string {
  if (length % (30 * DAY) === 0) return '"1mo" for windows that begin on the first of each month';
  if (length % (7 * DAY) === 0) return '"1w" for windows that begin each Monday';
  return '"1d", "1w" or "1mo" for windows that begin each midnight (UTC), each Monday, on the first of each month';
}
