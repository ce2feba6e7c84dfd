// Time zones by their names in the IANA database, as the platform knows them.
import type { Millis } from '../ports/money.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;

/** Whether the platform knows a zone of this name. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/**
 * How far clocks of the zone are ahead of UTC at an instant. An unknown zone is UTC: admission refuses it, and a budget
 * must have windows.
 */
export function offsetAt(zone: string, at: Millis): Millis {
  const timeZone = isTimeZone(zone) ? zone : 'UTC';
  const text = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' }).format(at);
  const [, sign, hours = 0, minutes = 0] = /GMT([+-])(\d\d):(\d\d)/.exec(text) ?? [];
  const offset = (Number(hours) * 60 + Number(minutes)) * MINUTE;
  return sign === '-' ? -offset : offset;
}

/**
 * The first instant at which clocks of the zone show this time or, where they skip it, a later one. `local`: as if it
 * were UTC.
 */
export function instantOf(zone: string, local: Millis): Millis {
  const [early = local, late = local] = [offsetAt(zone, local - DAY), offsetAt(zone, local + DAY)]
    .map((offset) => local - offset)
    .sort((one, other) => one - other);
  return early + offsetAt(zone, early) >= local ? early : late;
}
