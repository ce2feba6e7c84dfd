import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_DURATION, parseDuration } from '../money/duration.ts';

test.each([
  ['1s', 1000],
  ['1m', 60_000],
  ['1h', 3_600_000],
  ['1d', 86_400_000],
  ['1w', 604_800_000],
  ['1mo', 2_592_000_000],
  ['30d', 2_592_000_000],
  ['36525d', MAX_DURATION],
  ['3155760000s', MAX_DURATION],
])('%s is %s milliseconds', (text, millis) => {
  expect(parseDuration(text)).toBe(millis);
});

test.each([
  '',
  '0d',
  '-1d',
  '+1d',
  '01d',
  '1',
  'd',
  '1 d',
  ' 1d',
  '1d ',
  '1d\n',
  '1D',
  '1mon',
  '1ms',
  '1y',
  '1.5h',
  '1e3s',
  '1h30m',
  '１d',
  '36526d',
  '1218mo',
  `${'9'.repeat(400)}s`,
])('%j is not a duration', (text) => {
  expect(parseDuration(text)).toBeUndefined();
});

test('a duration is its count times its unit, up to a hundred years and never beyond', () => {
  const unit = fc.constantFrom('s', 'm', 'h', 'd', 'w', 'mo');
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000_000 }), unit, (count, of) => {
      const one = parseDuration(`1${of}`) ?? Number.NaN;
      const millis = count * one;
      expect(parseDuration(`${count}${of}`)).toBe(millis <= MAX_DURATION ? millis : undefined);
    }),
  );
});
