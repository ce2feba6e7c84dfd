// What does this usage cost, exactly? One function for holds and bills: nano-dollars, rounded up once (DESIGN 10, Money).
import type { Nano } from './ports/money.ts';
import { PER_NANO, type Price, type Rates, type Tier } from './rates.ts';
import type { Usage } from './usage.ts';

/** A prompt before anybody has counted it. */
export interface PromptBound {
  /** It has no more tokens than this. */
  readonly most: bigint;
  /** No picture, sound or file is in it. */
  readonly textOnly: boolean;
}

/** What one request may hold or be charged at all: nine billion dollars, which every store and table can count. Absurd numbers end here. */
export const MOST_COST: Nano = 9n * 10n ** 18n;

/** What a reply with this usage costs. */
export function costOf(usage: Usage, price: Price): Nano {
  const { rates } = tierOf(price, BigInt(usage.input));
  return roundUp(inputCost(usage, rates) + outputCost(usage, rates) + rates.request);
}

/** The most that such a prompt and so many tokens of output can cost: the dearest rates of every tier the prompt may reach. */
export function mostOf(prompt: PromptBound, output: bigint, price: Price): Nano {
  let most = 0n;
  for (const tier of reachable(prompt, price)) {
    const { rates } = tier;
    most = larger(most, inputMost(prompt, price, tier) + rates.request + output * dearestOf(rates).output);
  }
  return roundUp(most);
}

/** How many output tokens `amount` pays for after the prompt at its dearest; undefined when output is free. */
export function outputWithin(amount: Nano, prompt: PromptBound, price: Price): bigint | undefined {
  let least: bigint | undefined;
  for (const tier of reachable(prompt, price)) {
    const { rates } = tier;
    const dearest = dearestOf(rates).output;
    if (dearest === 0n) continue;
    const left = amount * PER_NANO - inputMost(prompt, price, tier) - rates.request;
    const within = left <= 0n ? 0n : left / dearest;
    if (least === undefined || within < least) least = within;
  }
  return least;
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
  return (
    times(fresh - audio - image, rates.input) +
    times(audio, rates.inputAudio) +
    times(image, rates.inputImage) +
    times(cached - cachedAudio - cachedImage, rates.cachedInput) +
    times(cachedAudio, rates.cachedAudio) +
    times(cachedImage, rates.cachedImage) +
    times(written - writtenLong, rates.cacheWrite) +
    times(writtenLong, rates.cacheWriteLong)
  );
}

function outputCost(usage: Usage, rates: Rates): bigint {
  const reasoning = part(usage.reasoning, usage.output);
  const audio = part(usage.outputAudio, usage.output - reasoning);
  const image = part(usage.outputImage, usage.output - reasoning - audio);
  return (
    times(usage.output - reasoning - audio - image, rates.output) +
    times(reasoning, rates.reasoning) +
    times(audio, rates.outputAudio) +
    times(image, rates.outputImage)
  );
}

/** Most kinds are absent from most replies, and this is asked at every piece of a stream. */
function times(count: number, rate: bigint): bigint {
  return count === 0 ? 0n : BigInt(count) * rate;
}

/** A part is never more than the whole, whatever the provider says of it, and never less than nothing. */
function part(count: number | undefined, whole: number): number {
  return Math.max(0, Math.min(count ?? 0, whole));
}

function tierOf({ tiers }: Price, input: bigint): Tier {
  return tiers.findLast(({ above }) => input > above) ?? tiers[0];
}

/** Every tier that the prompt may be in. */
function reachable({ most }: PromptBound, { tiers }: Price): ReadonlyArray<Tier> {
  return tiers.length === 1 ? tiers : tiers.filter(({ above }, index) => index === 0 || most > above);
}

/** The most that the prompt can cost in this tier. */
function inputMost({ most, textOnly }: PromptBound, { tiers }: Price, tier: Tier): bigint {
  const end = tiers.length === 1 ? undefined : tiers[tiers.indexOf(tier) + 1]?.above;
  const { text, input } = dearestOf(tier.rates);
  return (end !== undefined && end < most ? end : most) * (textOnly ? text : input);
}

interface Dearest {
  /** Of a token of text that is sent, of any token that is sent, of any that is said. */
  readonly text: bigint;
  readonly input: bigint;
  readonly output: bigint;
}

/** Rates are constants of a snapshot, and each hold asks for their dearest several times. */
const dearest = new WeakMap<Rates, Dearest>();

function dearestOf(rates: Rates): Dearest {
  const known = dearest.get(rates);
  if (known !== undefined) return known;
  const text = [rates.input, rates.cachedInput, rates.cacheWrite, rates.cacheWriteLong].reduce(larger, 0n);
  const input = [rates.inputAudio, rates.inputImage, rates.cachedAudio, rates.cachedImage].reduce(larger, text);
  const output = [rates.output, rates.reasoning, rates.outputAudio, rates.outputImage].reduce(larger, 0n);
  const found = { text, input, output };
  dearest.set(rates, found);
  return found;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function roundUp(amount: bigint): Nano {
  return (amount + PER_NANO - 1n) / PER_NANO;
}
