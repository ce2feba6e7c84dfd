import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { MAX_DURATION } from '../money/duration.ts';
import { spendWindow, type WindowSpec, windowAt } from '../money/window.ts';

const DAY = 86_400_000;
const at = (text: string): number => Date.parse(`${text}Z`);
const rolling = (duration: string, anchor: string): WindowSpec => ({
  duration,
  alignment: 'Rolling',
  anchor: at(anchor),
});
const calendar = (duration: string, zone?: string): WindowSpec => ({
  duration,
  alignment: zone === undefined ? 'Calendar' : `Calendar ${zone}`,
  anchor: at('2026-03-17T11:22'),
});

test.each([
  // Thirty times 24 hours from the creation of the claim, to the minute; not the first of next month.
  [rolling('30d', '2026-01-15T10:30'), '2026-01-15T10:30', '2026-01-15T10:30', '2026-02-14T10:30'],
  [rolling('30d', '2026-01-15T10:30'), '2026-02-14T10:29:59.999', '2026-01-15T10:30', '2026-02-14T10:30'],
  [rolling('30d', '2026-01-15T10:30'), '2026-02-14T10:30', '2026-02-14T10:30', '2026-03-16T10:30'],
  // A clock that was set back before the anchor.
  [rolling('30d', '2026-01-15T10:30'), '2026-01-15T10:29', '2025-12-16T10:30', '2026-01-15T10:30'],
  [rolling('1h', '2026-01-15T10:30'), '2026-01-15T12:00', '2026-01-15T11:30', '2026-01-15T12:30'],
  // A month of a duration is 30 days, across February and the change of clocks.
  [rolling('1mo', '2026-01-31T00:00'), '2026-03-02T00:00', '2026-03-02T00:00', '2026-04-01T00:00'],
  [calendar('1d'), '2026-03-29T01:30', '2026-03-29T00:00', '2026-03-30T00:00'],
  [calendar('24h'), '2026-03-29T01:30', '2026-03-29T00:00', '2026-03-30T00:00'],
  // 2026-03-30 is a Monday.
  [calendar('1w'), '2026-03-29T23:59:59.999', '2026-03-23T00:00', '2026-03-30T00:00'],
  [calendar('1w'), '2026-03-30T00:00', '2026-03-30T00:00', '2026-04-06T00:00'],
  [calendar('1mo'), '2026-02-28T23:59:59.999', '2026-02-01T00:00', '2026-03-01T00:00'],
  [calendar('1mo'), '2028-02-29T12:00', '2028-02-01T00:00', '2028-03-01T00:00'],
  [calendar('1mo'), '2026-12-31T12:00', '2026-12-01T00:00', '2027-01-01T00:00'],
  [calendar('3mo'), '2026-05-01T00:00', '2026-04-01T00:00', '2026-07-01T00:00'],
  // Clocks in Berlin go forward on 2026-03-29 at 01:00 UTC, and back on 2026-10-25.
  [calendar('1mo', 'Europe/Berlin'), '2026-03-31T21:59:59.999', '2026-02-28T23:00', '2026-03-31T22:00'],
  [calendar('1mo', 'Europe/Berlin'), '2026-10-31T22:59:59.999', '2026-09-30T22:00', '2026-10-31T23:00'],
  [calendar('1d', 'Europe/Berlin'), '2026-03-29T12:00', '2026-03-28T23:00', '2026-03-29T22:00'],
  [calendar('1d', 'Europe/Berlin'), '2026-10-25T12:00', '2026-10-24T22:00', '2026-10-25T23:00'],
  [calendar('1w', 'America/New_York'), '2026-11-02T04:59', '2026-10-26T04:00', '2026-11-02T05:00'],
  [calendar('1d', 'Asia/Kathmandu'), '2026-05-01T00:00', '2026-04-30T18:15', '2026-05-01T18:15'],
  // Midnight does not exist where clocks go forward at midnight: the day begins at 01:00.
  [calendar('1d', 'Africa/Cairo'), '2026-04-24T12:00', '2026-04-23T22:00', '2026-04-24T21:00'],
  [calendar('1h', 'Asia/Kathmandu'), '2026-05-01T00:30', '2026-05-01T00:00', '2026-05-01T01:00'],
  [calendar('1d', 'Nowhere/Land'), '2026-05-01T00:30', '2026-05-01T00:00', '2026-05-02T00:00'],
])('%o at %s is the window from %s to %s', (spec, now, start, end) => {
  expect(windowAt(spec, at(now))).toEqual({ start: at(start), end: at(end) });
});

test.each([rolling('30d', '2026-01-15T10:30'), calendar('1mo')])(
  '%o ends when it did before an edit and its undoing, but is another counter, which begins less than a second earlier',
  (spec) => {
    const now = at('2026-01-20T00:00');
    const { start, end } = windowAt(spec, now);
    const edits = [1, 2, 3, 998, 999].map((sinceGeneration) => windowAt({ ...spec, sinceGeneration }, now));
    expect(edits.map((window) => window.end)).toEqual(edits.map(() => end));
    expect(new Set([start, ...edits.map((window) => window.start)]).size).toBe(6);
    for (const window of edits) expect(start - window.start).toBeLessThan(1000);
    // The next window is the next one for all.
    expect(windowAt({ ...spec, sinceGeneration: 3 }, end).end).toBe(windowAt(spec, end).end);
  },
);

describe('for every duration, alignment and instant', () => {
  const spec = fc.record({
    duration: fc
      .tuple(fc.integer({ min: 1, max: 400 }), fc.constantFrom('s', 'm', 'h', 'd', 'w', 'mo'))
      .map(([n, u]) => `${n}${u}`),
    alignment: fc.oneof(
      fc.constantFrom('Rolling' as const, 'Calendar' as const),
      fc.constantFrom(...Intl.supportedValuesOf('timeZone')).map((zone) => `Calendar ${zone}` as const),
    ),
    anchor: fc.integer({ min: at('2020-01-01T00:00'), max: at('2040-01-01T00:00') }),
  });
  const instant = fc.integer({ min: at('2020-01-01T00:00'), max: at('2060-01-01T00:00') });

  test('the window contains the instant, and every instant in it has the same window', () => {
    fc.assert(
      fc.property(spec, instant, fc.double({ min: 0, max: 1, noNaN: true }), (of, now, share) => {
        const window = windowAt(of, now);
        expect(window.start).toBeLessThanOrEqual(now);
        expect(window.end).toBeGreaterThan(now);
        const inside = Math.min(window.end - 1, Math.floor(window.start + share * (window.end - window.start)));
        for (const same of [window.start, inside, window.end - 1]) expect(windowAt(of, same)).toEqual(window);
      }),
    );
  });

  test('windows follow one another without gap or overlap', () => {
    fc.assert(
      fc.property(spec, instant, (of, now) => {
        const window = windowAt(of, now);
        expect(windowAt(of, window.end).start).toBe(window.end);
        expect(windowAt(of, window.start - 1).end).toBe(window.start);
      }),
    );
  });
});

test('a zone has one formatter for all windows, in whatever case its name is, and an offset is no zone', () => {
  const now = at('2026-05-01T00:00');
  const inTokyo = windowAt(calendar('1d', 'Asia/Tokyo'), now);
  const made = vi.spyOn(Intl, 'DateTimeFormat');
  const names = Array.from({ length: 512 }, (_, n) =>
    [...'asia/tokyo'].map((letter, place) => ((n >> place) & 1 ? letter.toUpperCase() : letter)).join(''),
  );
  for (const name of names) expect(windowAt(calendar('1d', name), now)).toEqual(inTokyo);
  expect(made).not.toHaveBeenCalled();
  made.mockRestore();
  expect(windowAt(calendar('1d', '+09:00'), now)).toEqual(windowAt(calendar('1d'), now));
});

test('a malformed duration is a bug and throws', () => {
  expect(() => windowAt(calendar('0d'), 0)).toThrow('"0d"');
});

describe('the window a scope’s spend is counted in', () => {
  const anchor = at('2026-01-15T10:30');

  test('is its budget’s', () => {
    const budget = { limit: '1', duration: '30d', alignment: 'Rolling' as const };
    expect(spendWindow({ anchor, budget }, anchor + 31 * DAY)).toEqual({
      start: anchor + 30 * DAY,
      end: anchor + 60 * DAY,
    });
  });

  test('is its whole life if it has no budget', () => {
    expect(spendWindow({ anchor }, anchor + DAY)).toEqual({ start: anchor, end: anchor + MAX_DURATION });
  });
});
