// What is a price? Decimals as they are written, read into integers; what is not written costs what it is a kind of.
import { type SnapshotEntry, WrittenRates } from './snapshot.ts';

/** Dollars per million tokens (`request`: per million requests), each as an integer of 10^-18 dollars. */
export type Rates = Readonly<Record<keyof WrittenRates, bigint>>;

/** The rates of a prompt of more than so many tokens; they hold for all of its tokens, and for the answer. */
export interface Tier {
  readonly above: bigint;
  readonly rates: Rates;
}

/** From the shortest prompts to the longest; the first tier is above nothing. */
export interface Price {
  readonly tiers: readonly [Tier, ...Tier[]];
}

const DECIMALS = 18;
/** From 10^-18 dollars per million tokens to nano-dollars per token. */
export const PER_NANO = 10n ** BigInt(DECIMALS - 9 + 6);
const PRICE_PATTERN = /^(0|[1-9][0-9]*)(\.[0-9]{1,18})?$/;
const NAMES = WrittenRates.keyof().options;

/** Written prices are constants of a snapshot: each is read once. */
const known = new WeakMap<object, { readonly price: Price | undefined }>();

/** The price of an entry; undefined when it has none, or one that is not written as a price. `"0"` is a price. */
export function toPrice(written: SnapshotEntry['price']): Price | undefined {
  if (written === undefined) return undefined;
  const read = known.get(written) ?? { price: readPrice(written) };
  known.set(written, read);
  return read.price;
}

function readPrice(written: NonNullable<SnapshotEntry['price']>): Price | undefined {
  const base = readRates(written);
  if (base === undefined) return undefined;
  const tiers: Tier[] = [];
  for (const tier of written.tiers ?? []) {
    const rates = readRates(tier);
    if (rates === undefined) return undefined;
    tiers.push({ above: BigInt(tier.above), rates });
  }
  tiers.sort((a, b) => (a.above < b.above ? -1 : 1));
  return { tiers: [{ above: 0n, rates: base }, ...tiers] };
}

function readRates(price: WrittenRates): Rates | undefined {
  if (!NAMES.every((name) => price[name] === undefined || PRICE_PATTERN.test(price[name]))) return undefined;
  const input = readDecimal(price.input);
  const output = readDecimal(price.output);
  const cachedInput = readDecimal(price.cachedInput, input);
  const cacheWrite = readDecimal(price.cacheWrite, input);
  return {
    input,
    output,
    cachedInput,
    cacheWrite,
    cacheWriteLong: readDecimal(price.cacheWriteLong, cacheWrite),
    reasoning: readDecimal(price.reasoning, output),
    inputAudio: readDecimal(price.inputAudio, input),
    cachedAudio: readDecimal(price.cachedAudio ?? price.inputAudio, cachedInput),
    outputAudio: readDecimal(price.outputAudio, output),
    inputImage: readDecimal(price.inputImage, input),
    cachedImage: readDecimal(price.cachedImage ?? price.inputImage, cachedInput),
    outputImage: readDecimal(price.outputImage, output),
    request: readDecimal(price.request),
  };
}

function readDecimal(text: string | undefined, otherwise = 0n): bigint {
  if (text === undefined) return otherwise;
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(DECIMALS, '0'));
}
