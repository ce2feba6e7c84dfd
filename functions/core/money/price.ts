// Prices, and the exact cost of a usage, for reservations and charges: in nano-dollars, rounded up once (DESIGN 10,
// Money).

import type { SnapshotEntry, WrittenRates, WrittenTier } from '../models/snapshot.ts';
import type { Nano } from '../ports/money.ts';
import { larger, smaller } from './money.ts';
import type { Usage } from './usage.ts';

/** Dollars per million tokens (`request`: per million requests), each as an integer of 10^-18 dollars. */
export type Rates = Readonly<Record<keyof WrittenRates, bigint>>;

/** The rates of prompts with more than `above` tokens, for all tokens of the prompt and of the answer. */
interface Tier {
  readonly above: bigint;
  /** The beginning of the next tier; absent: there is none. */
  readonly end?: bigint | undefined;
  readonly rates: Rates;
  /** The highest rates: of a token of text in the prompt, of any token in the prompt, of any token in the answer. */
  readonly highest: { readonly text: bigint; readonly input: bigint; readonly output: bigint };
}

/** Tiers from the shortest prompts to the longest; `above` of the first tier is 0. */
export interface Price {
  readonly tiers: readonly [Tier, ...Tier[]];
  /** The price of a million web searches, in the unit of `Rates`; absent: the model entry names none. */
  readonly webSearch?: bigint | undefined;
}

/** The bound of a prompt whose tokens are not counted yet. */
export interface PromptBound {
  /** The prompt has no more tokens than this. */
  readonly maxTokens: bigint;
  /** The prompt has no image, audio or file. */
  readonly textOnly: boolean;
  /** The maximum number of web searches that the provider makes for the prompt. */
  readonly maxWebSearches?: number;
}

/**
 * The maximum reservation and the maximum charge of one request: a million dollars. It limits absurd prices and counts,
 * so that sums fit: nine thousand such charges into one ledger row, a billion into one counter.
 */
export const MAX_COST: Nano = 10n ** 15n;

/** The cost of a reply with this usage. */
export function costOf(usage: Usage, price: Price): Nano {
  const tier = tierOf(price, BigInt(usage.input));
  const { rates } = tier;
  return roundUp(
    inputCost(usage, rates) + outputCost(usage, tier) + rates.request + searchCost(usage.webSearches, price),
  );
}

/** Whether images or audio of an answer have a rate of their own. */
export function hasMediaRate({ tiers }: Price): boolean {
  return tiers.some(({ rates }) => rates.outputAudio !== rates.output || rates.outputImage !== rates.output);
}

/**
 * The maximum cost of this prompt and this output in tokens: by the highest rates of every tier that the prompt may
 * reach.
 */
export function maxCostOf(prompt: PromptBound, output: bigint, price: Price): Nano {
  let max = 0n;
  for (const tier of reachable(prompt, price)) {
    max = larger(max, maxInputCost(prompt, price, tier) + output * tier.highest.output);
  }
  return roundUp(max);
}

/** The output tokens that `amount` covers beside the prompt at its maximum cost; undefined: output is free. */
export function maxOutputFor(amount: Nano, prompt: PromptBound, price: Price): bigint | undefined {
  let min: bigint | undefined;
  for (const tier of reachable(prompt, price)) {
    const rate = tier.highest.output;
    if (rate === 0n) continue;
    const tokens = larger(amount * PER_NANO - maxInputCost(prompt, price, tier), 0n) / rate;
    min = smaller(min ?? tokens, tokens);
  }
  return min;
}

function searchCost(searches = 0, { webSearch = 0n }: Price): bigint {
  return times(searches, webSearch);
}

const DECIMALS = 18;
/** From 10^-18 dollars per million tokens to nano-dollars per token. */
const PER_NANO = 10n ** BigInt(DECIMALS - 9 + 6);
const MILLION = 1_000_000n;

/** The price of a model entry; undefined if it has none. `"0"` is a price. */
export function toPrice(written: SnapshotEntry['price'], toolCosts?: SnapshotEntry['toolCosts']): Price | undefined {
  if (written === undefined) return undefined;
  const tiers = (written.tiers ?? []).toSorted((a, b) => a.above - b.above);
  const { webSearch } = toolCosts ?? {};
  return {
    tiers: [toTier({ ...written, above: 0 }, tiers[0]), ...tiers.map((tier, at) => toTier(tier, tiers[at + 1]))],
    webSearch: webSearch === undefined ? undefined : readDecimal(webSearch) * MILLION,
  };
}

function toTier(written: WrittenTier, next: WrittenTier | undefined): Tier {
  const rates = readRates(written);
  return { above: BigInt(written.above), end: next && BigInt(next.above), rates, highest: highestOf(rates) };
}

function readRates(price: WrittenRates): Rates {
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

function inputCost(usage: Usage, rates: Rates): bigint {
  const cached = part(usage.cachedInput, usage.input);
  const written = part(usage.cacheWrite, usage.input - cached);
  const writtenLong = part(usage.cacheWriteLong, written);
  const cachedAudio = part(usage.cachedAudio, cached);
  const cachedImage = part(usage.cachedImage, cached - cachedAudio);
  const fresh = usage.input - cached - written;
  const audio = part((usage.inputAudio ?? 0) - cachedAudio, fresh);
  const image = part((usage.inputImage ?? 0) - cachedImage, fresh - audio);
  const media = part(usage.inputMedia, fresh - audio - image);
  return (
    times(fresh - audio - image - media, rates.input) +
    times(media, larger(rates.input, larger(rates.inputAudio, rates.inputImage))) +
    times(audio, rates.inputAudio) +
    times(image, rates.inputImage) +
    times(cached - cachedAudio - cachedImage, rates.cachedInput) +
    times(cachedAudio, rates.cachedAudio) +
    times(cachedImage, rates.cachedImage) +
    times(written - writtenLong, rates.cacheWrite) +
    times(writtenLong, rates.cacheWriteLong)
  );
}

function outputCost(usage: Usage, { rates, highest }: Tier): bigint {
  const reasoning = part(usage.reasoning, usage.output);
  const audio = part(usage.outputAudio, usage.output - reasoning);
  const image = part(usage.outputImage, usage.output - reasoning - audio);
  const media = part(usage.outputMedia, usage.output - reasoning - audio - image);
  return (
    times(usage.output - reasoning - audio - image - media, rates.output) +
    times(media, highest.output) +
    times(reasoning, rates.reasoning) +
    times(audio, rates.outputAudio) +
    times(image, rates.outputImage)
  );
}

/** The product. Most counts are zero in most replies, and every piece of a stream needs it. */
function times(count: number, rate: bigint): bigint {
  return count === 0 ? 0n : BigInt(count) * rate;
}

/** The part, limited to the range from zero to the whole: a provider may report anything. */
function part(count: number | undefined, whole: number): number {
  return Math.max(0, Math.min(count ?? 0, whole));
}

function tierOf({ tiers }: Price, input: bigint): Tier {
  return tiers.findLast(({ above }) => input > above) ?? tiers[0];
}

/** Every tier that the prompt may be in. */
function reachable({ maxTokens }: PromptBound, { tiers }: Price): ReadonlyArray<Tier> {
  return tiers.length === 1 ? tiers : tiers.filter(({ above }, index) => index === 0 || maxTokens > above);
}

/** The maximum cost of the request in this tier without its output, web searches of the provider included. */
function maxInputCost({ maxTokens, textOnly, maxWebSearches }: PromptBound, price: Price, tier: Tier): bigint {
  const { end = maxTokens, highest, rates } = tier;
  const rate = textOnly ? highest.text : highest.input;
  return smaller(end, maxTokens) * rate + rates.request + searchCost(maxWebSearches, price);
}

function highestOf(rates: Rates): Tier['highest'] {
  const text = [rates.input, rates.cachedInput, rates.cacheWrite, rates.cacheWriteLong].reduce(larger, 0n);
  const input = [rates.inputAudio, rates.inputImage, rates.cachedAudio, rates.cachedImage].reduce(larger, text);
  const output = [rates.output, rates.reasoning, rates.outputAudio, rates.outputImage].reduce(larger, 0n);
  return { text, input, output };
}

function roundUp(amount: bigint): Nano {
  return (amount + PER_NANO - 1n) / PER_NANO;
}
