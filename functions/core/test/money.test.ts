import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatMoney, nanoOfNumber, parseMoney } from '../money/money.ts';

const NANO_PER_DOLLAR = 1_000_000_000n;

test.each([
  ['0', 0n],
  ['0.5', 500_000_000n],
  ['12', 12_000_000_000n],
  ['12.50', 12_500_000_000n],
  ['0.000000001', 1n],
  ['1.000000000', NANO_PER_DOLLAR],
  ['1000000000', 10n ** 18n],
  // Amounts that doubles cannot distinguish.
  ['9007199.254740993', 2n ** 53n + 1n],
  ['100000.000000001', 10n ** 14n + 1n],
  ['123456789012345678901234567890.123456789', 123456789012345678901234567890123456789n],
])('%s dollars are exactly %s nano-dollars', (text, nano) => {
  expect(parseMoney(text)).toBe(nano);
});

test.each([
  '',
  ' ',
  '.5',
  '5.',
  '012',
  '00',
  '-1',
  '+1',
  '1e3',
  '1,000',
  '1_000',
  ' 1',
  '1 ',
  '1\n',
  '\n1',
  '0x10',
  '1.0000000001',
  'NaN',
  'Infinity',
  '١٢',
  '1.２',
  '$1',
  '1.2.3',
  'null',
])('%j is not money', (text) => {
  expect(parseMoney(text)).toBeUndefined();
});

test.each([
  [0, 0n],
  [-0, 0n],
  [12.5, 12_500_000_000n],
  [0.000000001, 1n],
  [0.0000000010001, 2n],
  [5e-324, 1n],
  [1e21, 10n ** 30n],
  [1.5e300, 15n * 10n ** 308n],
])('a number of %s dollars is %s nano-dollars, rounded up', (dollars, nano) => {
  expect(nanoOfNumber(dollars)).toBe(nano);
});

test('a number of dollars with a decimal form has exactly that amount', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 ** 15 }), (nano) => {
      const text = formatMoney(BigInt(nano));
      expect(nanoOfNumber(Number(text))).toBe(BigInt(nano));
    }),
  );
});

test.each([-1, -1e-300, Number.NaN, Number.POSITIVE_INFINITY, '1', null, undefined, 1n, {}, [1], true])(
  'is no number of dollars: %s',
  (value) => {
    expect(nanoOfNumber(value)).toBeUndefined();
  },
);

test.each([
  [0n, '0'],
  [1n, '0.000000001'],
  [-1n, '-0.000000001'],
  [500_000_000n, '0.5'],
  [-1_500_000_000n, '-1.5'],
  [10n ** 10n, '10'],
  [2n ** 53n + 1n, '9007199.254740993'],
  [10n ** 18n, '1000000000'],
  [12_000_000_001n, '12.000000001'],
])('%s nano-dollars are written %s', (nano, text) => {
  expect(formatMoney(nano)).toBe(text);
});

test('what is written is read back as the same amount, and in its shortest form', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n }), (amount) => {
      const text = formatMoney(amount);
      expect(parseMoney(text)).toBe(amount);
      expect(text).not.toMatch(/\.$|\.[0-9]*0$/);
      expect(formatMoney(-amount)).toBe(amount === 0n ? '0' : `-${text}`);
    }),
  );
});

test('what is read is a sum: whole dollars and a fraction of up to nine digits', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 20n }), fc.stringMatching(/^[0-9]{1,9}$/), (dollars, fraction) => {
      const nano = dollars * NANO_PER_DOLLAR + BigInt(fraction) * 10n ** BigInt(9 - fraction.length);
      expect(parseMoney(`${dollars}.${fraction}`)).toBe(nano);
    }),
  );
});
