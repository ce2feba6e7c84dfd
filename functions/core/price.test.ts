import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { costOf, mostOf, outputWithin, toPrice } from './price.ts';

const tokens = (input: number, output: number, cachedInput = 0, cacheWrite = 0) => ({
  input,
  output,
  cachedInput,
  cacheWrite,
});
const priced = (input: string, output: string, more: { cachedInput?: string; cacheWrite?: string } = {}) => {
  const price = toPrice({ input, output, ...more });
  if (price === undefined) throw new Error('not a price');
  return price;
};

test.each([
  ['a million tokens cost what the price says', tokens(1_000_000, 1_000_000), priced('0.15', '0.6'), 750_000_000n],
  ['one token of 15 cents a million is 150 nano-dollars', tokens(1, 0), priced('0.15', '0.6'), 150n],
  [
    'a fraction of a nano-dollar is rounded up, once for all tokens together',
    tokens(1, 1),
    priced('0.0001', '0.0001'),
    1n,
  ],
  ['free is free', tokens(9, 9), priced('0', '0'), 0n],
  ['cached input costs less', tokens(10, 0, 4), priced('1', '1', { cachedInput: '0.25' }), 7_000n],
  ['a cache that is written costs more', tokens(10, 0, 0, 4), priced('1', '1', { cacheWrite: '1.25' }), 11_000n],
  ['without their own prices both cost what input costs', tokens(10, 0, 4, 4), priced('1', '1'), 10_000n],
  ['more cached than there is input is no credit', tokens(10, 0, 99, 99), priced('1', '1', { cachedInput: '0' }), 0n],
  [
    'amounts beyond 2^53 nano-dollars are exact',
    tokens(2 ** 53 - 1, 1),
    priced('1000000000', '0.001'),
    (2n ** 53n - 1n) * 10n ** 12n + 1n,
  ],
])('%s', (_, used, price, cost) => {
  expect(costOf(used, price)).toBe(cost);
});

test.each(['', '-1', '1e3', '.5', '5.', '01', '1,5', ' 1', '0.1234567890123456789', 'free'])(
  'a price written as %j is no price',
  (text) => {
    expect(toPrice({ input: text, output: '1' })).toBeUndefined();
    expect(toPrice({ input: '1', output: '1', cachedInput: text })).toBeUndefined();
  },
);

test('an entry without prices has no price', () => {
  expect(toPrice(undefined)).toBeUndefined();
});

const decimal = fc
  .tuple(fc.nat({ max: 1000 }), fc.nat({ max: 999_999_999 }))
  .map(([whole, nano]) => `${whole}.${String(nano).padStart(9, '0')}`);
const anyPrice = fc
  .tuple(decimal, decimal, decimal, decimal)
  .map(([input, output, cachedInput, cacheWrite]) => priced(input, output, { cachedInput, cacheWrite }));
const count = fc.nat({ max: 10_000_000 });

test('no split of the input between caches costs more than its upper bound', () => {
  fc.assert(
    fc.property(anyPrice, count, count, count, count, (price, input, output, cached, written) => {
      expect(costOf(tokens(input, output, cached, written), price)).toBeLessThanOrEqual(
        mostOf(BigInt(input), BigInt(output), price),
      );
    }),
  );
});

test('what an amount pays for never costs more than the amount, and one token more would', () => {
  fc.assert(
    fc.property(anyPrice, count, fc.bigInt({ min: 0n, max: 10n ** 15n }), (price, input, amount) => {
      const output = outputWithin(amount, BigInt(input), price);
      if (output === undefined) return expect(price.output).toBe(0n);
      if (output > 0n) expect(mostOf(BigInt(input), output, price)).toBeLessThanOrEqual(amount);
      expect(mostOf(BigInt(input), output + 1n, price)).toBeGreaterThan(amount);
    }),
  );
});
