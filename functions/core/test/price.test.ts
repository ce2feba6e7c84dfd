import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WrittenRates } from '../models/snapshot.ts';
import { formatMoney, parseMoney } from '../money/money.ts';
import { costOf, maxCostOf, maxOutputFor, toPrice } from '../money/price.ts';
import { MAGNITUDES, randomRequests } from './random-requests.fixture.ts';

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
    expect(WrittenRates.safeParse({ input: text, output: '1' }).success).toBe(false);
    expect(WrittenRates.safeParse({ input: '1', output: '1', cachedInput: text }).success).toBe(false);
  },
);

test('an entry without prices has no price', () => {
  expect(toPrice(undefined)).toBeUndefined();
});

const decimal = fc
  .tuple(fc.nat({ max: 1000 }), fc.nat({ max: 999_999_999 }))
  .map(([whole, nano]) => `${whole}.${String(nano).padStart(9, '0')}`);
const rates = fc.record(
  {
    input: decimal,
    output: decimal,
    cachedInput: decimal,
    cacheWrite: decimal,
    cacheWriteLong: decimal,
    reasoning: decimal,
    inputAudio: decimal,
    cachedAudio: decimal,
    outputAudio: decimal,
    inputImage: decimal,
    cachedImage: decimal,
    outputImage: decimal,
    request: decimal,
  },
  { requiredKeys: ['input', 'output'] },
);
const anyWritten = fc
  .tuple(
    rates,
    fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 9_000_000 }), rates), { selector: ([at]) => at, maxLength: 3 }),
  )
  .map(([base, tiers]) => ({ ...base, tiers: tiers.map(([above, more]) => ({ ...more, above })) }));
const read = (written: Parameters<typeof toPrice>[0]) => {
  const price = toPrice(written);
  if (price === undefined) throw new Error('not a price');
  return price;
};
const count = fc.nat({ max: 10_000_000 });
const anyUsage = fc.record({
  input: count,
  output: count,
  cachedInput: count,
  cacheWrite: count,
  cacheWriteLong: count,
  reasoning: count,
  inputAudio: count,
  cachedAudio: count,
  outputAudio: count,
  inputImage: count,
  cachedImage: count,
  outputImage: count,
  inputMedia: count,
  outputMedia: count,
});

test('no usage costs more than the bound of its prompt and its output, whatever its kinds and the tier it falls in', () => {
  fc.assert(
    fc.property(anyWritten, anyUsage, count, (written, usage, slack) => {
      const price = read(written);
      const prompt = { maxTokens: BigInt(usage.input + slack), textOnly: false };
      expect(costOf(usage, price)).toBeLessThanOrEqual(maxCostOf(prompt, BigInt(usage.output), price));
    }),
  );
});

test('a prompt of text alone is bounded without the prices of audio and images', () => {
  const price = read({ input: '1', output: '1', inputAudio: '100', inputImage: '200' });
  expect(maxCostOf({ maxTokens: 10n, textOnly: true }, 0n, price)).toBe(10_000n);
  expect(maxCostOf({ maxTokens: 10n, textOnly: false }, 0n, price)).toBe(2_000_000n);
  fc.assert(
    fc.property(anyWritten, anyUsage, (written, all) => {
      const { inputAudio: _, inputImage: __, inputMedia: _____, cachedAudio: ___, cachedImage: ____, ...usage } = all;
      const bound = maxCostOf({ maxTokens: BigInt(usage.input), textOnly: true }, BigInt(usage.output), read(written));
      expect(costOf(usage, read(written))).toBeLessThanOrEqual(bound);
    }),
  );
});

test('the output that an amount covers never costs more than the amount, and one more token would', () => {
  fc.assert(
    fc.property(anyWritten, count, fc.bigInt({ min: 0n, max: 10n ** 15n }), (written, input, amount) => {
      const price = read(written);
      const prompt = { maxTokens: BigInt(input), textOnly: false };
      const output = maxOutputFor(amount, prompt, price);
      if (output === undefined) return expect(maxCostOf(prompt, 1n, price)).toBe(maxCostOf(prompt, 0n, price));
      if (output > 0n) expect(maxCostOf(prompt, output, price)).toBeLessThanOrEqual(amount);
      expect(maxCostOf(prompt, output + 1n, price)).toBeGreaterThan(amount);
    }),
  );
});

describe('a long prompt', () => {
  const price = read({
    input: '1',
    output: '10',
    cachedInput: '0.1',
    tiers: [
      { above: 200_000, input: '2', output: '15', cachedInput: '0.2' },
      { above: 500_000, input: '4', output: '20' },
    ],
  });

  test.each([
    [200_000, 1, 200_000_000n + 10_000n],
    [200_001, 1, 400_002_000n + 15_000n],
    [500_000, 0, 1_000_000_000n],
    [500_001, 0, 2_000_004_000n],
  ])('of %d tokens has the rates of its tier, all of it and its answer', (input, output, cost) => {
    expect(costOf(tokens(input, output), price)).toBe(cost);
  });

  test('counts what came from the cache towards its tier', () => {
    expect(costOf(tokens(200_001, 0, 200_001), price)).toBe(40_000_200n);
  });

  test('is bounded by the highest tier that it may reach', () => {
    const bound = (maxTokens: bigint) => maxCostOf({ maxTokens, textOnly: true }, 1n, price);
    expect(bound(200_000n)).toBe(200_010_000n);
    expect(bound(200_001n)).toBe(400_017_000n);
    expect(bound(600_000n)).toBe(2_400_020_000n);
  });
});

test.each([
  [
    'an hour in the cache costs more than minutes',
    { cacheWrite: '1.25', cacheWriteLong: '2' },
    { cacheWrite: 10, cacheWriteLong: 4 },
    7_500n + 8_000n,
  ],
  [
    'without a price for an hour, it costs the same as minutes',
    { cacheWrite: '1.25' },
    { cacheWrite: 10, cacheWriteLong: 4 },
    12_500n,
  ],
  ['audio costs what audio costs', { inputAudio: '40' }, { inputAudio: 3 }, 7_000n + 120_000n],
  [
    'cached audio costs what it costs',
    { inputAudio: '40', cachedAudio: '2', cachedInput: '0.5' },
    { inputAudio: 3, cachedInput: 5, cachedAudio: 2 },
    4_000n + 40_000n + 1_500n + 4_000n,
  ],
  ['images cost what images cost', { inputImage: '5' }, { inputImage: 4 }, 6_000n + 20_000n],
  ['a request may cost something by itself', { request: '5000' }, {}, 10_000n + 5_000_000n],
])('%s', (_, more, of, cost) => {
  expect(costOf({ ...tokens(10, 0), ...of }, read({ input: '1', output: '1', ...more }))).toBe(cost);
});

test.each([
  ['reasoning', { reasoning: '3' }, { reasoning: 6 }, 8_000n + 18_000n],
  ['audio', { outputAudio: '80' }, { outputAudio: 6 }, 8_000n + 480_000n],
  ['images', { outputImage: '30' }, { outputImage: 6 }, 8_000n + 180_000n],
  ['media of an unknown kind', { outputImage: '30', outputAudio: '80' }, { outputMedia: 6 }, 8_000n + 480_000n],
  ['reasoning without a price of its own', {}, { reasoning: 6 }, 20_000n],
])('an answer of %s costs what that costs', (_, more, of, cost) => {
  expect(costOf({ ...tokens(0, 10), ...of }, read({ input: '1', output: '2', ...more }))).toBe(cost);
});

test('the sum of a hundred thousand random requests is exact to the last nano-dollar, on top of every size that breaks doubles', () => {
  const sums = [...MAGNITUDES];
  let expected = 0n;
  for (const { usage, written, naive } of randomRequests(100_000)) {
    const cost = costOf(usage, read(written));
    for (const [size, sum] of sums.entries()) sums[size] = sum + cost;
    expected += naive;
  }
  expect(sums).toEqual(MAGNITUDES.map((size) => size + expected));
  expect(sums.map((sum) => parseMoney(formatMoney(sum)))).toEqual(sums);
});
