// Budget windows, computed from (spec, now): no job resets anything (DESIGN 3).

import { createLru } from '../caches/lru.ts';
import type { Millis, Window } from '../ports/money.ts';
import type { Budget, ScopePolicy } from '../ports/policy.ts';
import { DURATION_PATTERN, MAX_DURATION, parseDuration } from './duration.ts';
import { instantOf, offsetsOf } from './time-zone.ts';

/** `anchor`: the creation of the scope's claim, from which Rolling windows are counted. */
export type WindowSpec = Pick<Budget, 'duration' | 'alignment' | 'sinceGeneration'> & Pick<ScopePolicy, 'anchor'>;

const DAY = 86_400_000;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY = 4 * DAY;
/** Windows begin on whole seconds. The milliseconds before that distinguish windows with different `since`. */
const MAX_TAG = 999;

/**
 * The window [start, end) that contains `now`. An instant on an edge belongs to the window that begins there. An
 * instant before the anchor (a clock that was set back) belongs to the window before it, so budgets never lose a
 * window. With `since` it begins less than a second earlier, so that an edit and its undoing do not lead back to the
 * same counter (LEDGER 5). Throws on a malformed duration: specs are validated before they come here.
 */
export function windowAt(spec: WindowSpec, now: Millis): Window {
  const { start, end } = datesAt(spec, now);
  return { start: start - (spec.sinceGeneration === undefined ? 0 : 1 + (spec.sinceGeneration % MAX_TAG)), end };
}

function datesAt(spec: WindowSpec, now: Millis): Window {
  const length = parseDuration(spec.duration);
  if (length === undefined) throw new Error(`not a duration: ${JSON.stringify(spec.duration)}`);
  if (spec.alignment === 'Rolling') return alignedAt(spec.anchor, length, now);
  const key = `${spec.alignment} ${spec.duration}`;
  const known = calendarWindows.get(key);
  if (known !== undefined && known.start <= now && now < known.end) return known;
  const window = calendarWindowAt(spec, length, now);
  calendarWindows.set(key, window);
  return window;
}

/** The last window of each alignment and duration: nearly all budgets share a few of them. */
const calendarWindows = createLru<Window>(1024);

function calendarWindowAt(spec: WindowSpec, length: Millis, now: Millis): Window {
  const [, count, unit = ''] = DURATION_PATTERN.exec(spec.duration) ?? [];
  const onCalendar = (at: Millis): Window =>
    unit === 'mo' ? monthsAt(Number(count), at) : alignedAt(unit === 'w' ? FIRST_MONDAY : 0, length, at);
  const zone = spec.alignment.slice(ZONED.length);
  // Shorter windows do not depend on midnight.
  if (zone === '' || !['d', 'w', 'mo'].includes(unit)) return onCalendar(now);
  const offsetAt = offsetsOf(zone);
  const { start, end } = onCalendar(now + offsetAt(now));
  return { start: instantOf(offsetAt, start), end: instantOf(offsetAt, end) };
}

const ZONED = 'Calendar ';

/** The window in which a scope's spend is counted: that of its budget, or a hundred years if it has no budget. */
export function spendWindow(scope: Pick<ScopePolicy, 'budget' | 'anchor'>, now: Millis): Window {
  const { budget, anchor } = scope;
  if (budget === undefined) return { start: anchor, end: anchor + MAX_DURATION };
  return windowAt({ ...budget, anchor }, now);
}

function alignedAt(origin: Millis, length: Millis, now: Millis): Window {
  const start = origin + Math.floor((now - origin) / length) * length;
  return { start, end: start + length };
}

/** Calendar months, in blocks of `count` counted from January 1970: `1mo` begins on the first of each month. */
function monthsAt(count: number, now: Millis): Window {
  const date = new Date(now);
  const month = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
  const first = Math.floor(month / count) * count;
  return { start: Date.UTC(1970, first, 1), end: Date.UTC(1970, first + count, 1) };
}
