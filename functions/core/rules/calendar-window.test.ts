// Which Calendar windows begin at an odd place, and is what is said of them what the windows do?
import { describe, expect, test } from 'vitest';
import { windowAt } from '../window.ts';
import { calendarWindow } from './calendar-window.ts';

const EVEN = ['1s', '15m', '1h', '6h', '24h', '1440m', '1d', '1w', '1mo', '2mo', '3mo', '4mo', '6mo', '12mo'];
const ODD = ['7s', '7m', '5h', '36h', '48h', '2d', '7d', '30d', '168h', '2w', '4w', '5mo', '9mo', '24mo'];

const startOf = (duration: string, now: string) =>
  new Date(windowAt({ duration, alignment: 'Calendar', anchor: 0 }, Date.parse(now)).start).toISOString();

/** Where windows begin is the same in each year (in each week, for a week). */
const beginsAlike = (duration: string): boolean => {
  const years = Array.from({ length: 30 }, (_, index) => 2000 + index);
  if (duration === '1w') return years.every((year) => new Date(startOf('1w', `${year}-06-15`)).getUTCDay() === 1);
  return years.every((year) => startOf(duration, `${year}-01-01T00:00Z`) === `${year}-01-01T00:00:00.000Z`);
};

test.each(EVEN)('Calendar windows of %s begin where everybody looks for them, and nothing is said', (duration) => {
  expect(calendarWindow('spec.budgetDuration', duration)).toEqual([]);
  expect(beginsAlike(duration)).toBe(true);
});

test.each(ODD)('Calendar windows of %s do not, and that is said, with what to write instead', (duration) => {
  const [finding] = calendarWindow('spec.budgetDuration', duration);
  expect(finding).toMatchObject({ rule: 'UnevenWindow', value: duration, effect: 'warn' });
  expect(finding?.message).toMatch(/ 1970.*; write "1/);
  expect(beginsAlike(duration)).toBe(false);
});

test('what is no duration is left to the schema', () => {
  for (const text of ['', '30', '1y', '0d', '99999999999mo']) expect(calendarWindow('x', text)).toEqual([]);
});

describe('where they are counted from is true:', () => {
  test('36h is counted from midnight of 1970-01-01', () => {
    expect(startOf('36h', '1970-01-02T13:00Z')).toBe('1970-01-02T12:00:00.000Z');
  });
  test('2w from Monday 1970-01-05', () => {
    expect(startOf('2w', '1970-01-18T23:00Z')).toBe('1970-01-05T00:00:00.000Z');
  });
  test('5mo from January 1970', () => {
    expect(startOf('5mo', '1970-07-01')).toBe('1970-06-01T00:00:00.000Z');
  });
});
