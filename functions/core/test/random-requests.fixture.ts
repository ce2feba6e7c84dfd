// Random requests and their costs, counted by hand: a naive model that shares no line with the code.
import type { WrittenRates } from '../models/snapshot.ts';
import type { Usage } from '../money/usage.ts';

type FullRates = WrittenRates & { readonly output: string; readonly cachedInput: string };

export interface RandomRequest {
  readonly usage: Usage;
  readonly written: FullRates;
  /** Nano-dollars. */
  readonly naive: bigint;
}

/** Amounts at which sums of doubles, of Lua numbers and of scripts' arguments break (LEDGER 4). */
export const MAGNITUDES: ReadonlyArray<bigint> = [
  0n,
  2n ** 53n - 1n,
  2n ** 53n + 1n,
  10n ** 14n - 1n,
  10n ** 14n + 1n,
  10n ** 17n,
  10n ** 18n,
];

/** The same requests for the same seed, at twenty prices of up to nine decimals. */
export function* randomRequests(count: number, seed = 0): Generator<RandomRequest> {
  const random = createRandom(seed + 1);
  const decimal = () => {
    const digits = 1 + random(9);
    return `${random(1000)}.${String(random(10 ** digits)).padStart(digits, '0')}`;
  };
  const prices = Array.from({ length: 20 }, () => ({ input: decimal(), output: decimal(), cachedInput: decimal() }));
  for (let made = 0; made < count; made += 1) {
    const written = prices[random(prices.length)] ?? { input: '1', output: '1', cachedInput: '1' };
    const input = random(200_000);
    const usage = { input, output: random(20_000), cachedInput: random(input + 1), cacheWrite: 0 };
    yield { usage, written, naive: naiveCost(usage, written) };
  }
}

function naiveCost(usage: Usage, price: FullRates): bigint {
  const sum =
    BigInt(usage.input - usage.cachedInput) * toNano(price.input) +
    BigInt(usage.cachedInput) * toNano(price.cachedInput) +
    BigInt(usage.output) * toNano(price.output);
  // Nano-dollars for a million: a part of a nano-dollar counts as a whole one.
  return sum / 1_000_000n + (sum % 1_000_000n === 0n ? 0n : 1n);
}

function toNano(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(`${whole}${fraction}${'0'.repeat(9 - fraction.length)}`);
}

/** Random enough, and the same in every run. */
function createRandom(seed: number): (below: number) => number {
  let state = BigInt(seed);
  return (below) => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) % 2n ** 64n;
    return Number((state >> 16n) % BigInt(below));
  };
}
