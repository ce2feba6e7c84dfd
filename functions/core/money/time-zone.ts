// Time zones by their names in the IANA database, as the platform knows them.
import { createLru } from '../caches/lru.ts';
import type { Millis } from '../ports/money.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;

/**
 * A cache of formatters. To create one takes 50 µs, and 25 KB outside of the heap, which are free again only after a
 * turn of the event loop. There are some 600 names.
 */
const formatters = createLru<Intl.DateTimeFormat>(1024);

/** Whether the platform knows a zone of this name. */
export const isTimeZone = (name: string): boolean => formatterOf(name) !== undefined;

/** How far clocks of a zone are ahead of UTC at an instant. */
export type OffsetAt = (at: Millis) => Millis;

/** The offsets of a zone. An unknown zone, which the admission webhook refuses, counts as UTC: budgets need windows. */
export function offsetsOf(zone: string): OffsetAt {
  const formatter = formatterOf(zone);
  return (at) => {
    const [, sign, hours = 0, minutes = 0] = /GMT([+-])(\d\d):(\d\d)/.exec(formatter?.format(at) ?? '') ?? [];
    const offset = (Number(hours) * 60 + Number(minutes)) * MINUTE;
    return sign === '-' ? -offset : offset;
  };
}

/** One formatter for each zone, whatever the case of its name: a hostile database may have many spellings of a name. */
function formatterOf(zone: string): Intl.DateTimeFormat | undefined {
  const timeZone = zone.toLowerCase();
  const kept = formatters.get(timeZone);
  // The platform also accepts `+01:23`, which is no name.
  if (kept !== undefined || !/^[a-z]/.test(timeZone)) return kept;
  try {
    const formatter = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
    formatters.set(timeZone, formatter);
    return formatter;
  } catch {
    return undefined;
  }
}

/**
 * The first instant at which clocks of the zone show this local time or, if they skip it, a later time. `local`: the
 * time as if it were UTC.
 */
export function instantOf(offsetAt: OffsetAt, local: Millis): Millis {
  const [early = local, late = local] = [offsetAt(local - DAY), offsetAt(local + DAY)]
    .map((offset) => local - offset)
    .sort((one, other) => one - other);
  return early + offsetAt(early) >= local ? early : late;
}
