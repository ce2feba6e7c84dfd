// Usage: tokens as a provider counts them, from the OpenAI `usage` object in the spellings of several providers.
import { countIn, member } from '../json/json.ts';
import type { Tokens } from '../ports/ledger-rows.ts';
import type { Nano } from '../ports/money.ts';
import { larger, nanoOfNumber } from './money.ts';

/**
 * Tokens that are charged, and those of them that have prices of their own. An absent kind was not counted separately.
 */
export interface Usage extends Tokens {
  /** The part of `cacheWrite` that is kept for an hour, not for minutes. */
  readonly cacheWriteLong?: number | undefined;
  /** The part of the input, tokens from the cache included. */
  readonly inputAudio?: number | undefined;
  readonly inputImage?: number | undefined;
  /** The part of the input that is media and that nobody has counted: its kind is not known. */
  readonly inputMedia?: number | undefined;
  /** The part of `cachedInput`. */
  readonly cachedAudio?: number | undefined;
  readonly cachedImage?: number | undefined;
  /** The cost of all as the provider reports it. */
  readonly cost?: Nano | undefined;
  /** Web searches that the provider made and bills beside the tokens. */
  readonly webSearches?: number | undefined;
  /** The part of the output. */
  readonly reasoning?: number | undefined;
  readonly outputAudio?: number | undefined;
  readonly outputImage?: number | undefined;
  /** The part of the output that may be media, and whose kind nobody has counted. */
  readonly outputMedia?: number | undefined;
}

/** A larger number of tokens, or of searches, is no count: no request comes near it. */
const MAX_COUNT = 1_000_000_000;

/** A provider's count, where it may be true. */
export function count(of: unknown, name: string): number | undefined {
  const counted = countIn(of, name);
  return counted === undefined || counted > MAX_COUNT ? undefined : counted;
}

/** The sum of counts that may each be true. */
export function sumOf(counts: ReadonlyArray<number>): number {
  return Math.min(
    counts.reduce((sum, counted) => sum + counted, 0),
    MAX_COUNT,
  );
}

/** The tokens that are booked. */
export function toTokens({ input, output, cachedInput, cacheWrite }: Usage): Tokens {
  return { input, output, cachedInput, cacheWrite };
}

/** A later count of the same reply. Counts are cumulative, so neither side of it is less than it was. */
export function laterUsage(known: Usage | undefined, later: Usage): Usage {
  if (known === undefined) return later;
  const cost = laterCost(known.cost, later.cost);
  if (later.input >= known.input && later.output >= known.output)
    return cost === later.cost ? later : { ...later, cost };
  const { input, cachedInput, cacheWrite, cacheWriteLong } = later.input >= known.input ? later : known;
  const { inputAudio, inputImage, cachedAudio, cachedImage } = later.input >= known.input ? later : known;
  const { output, reasoning, outputAudio, outputImage } = later.output >= known.output ? later : known;
  return {
    input,
    cachedInput,
    cacheWrite,
    cacheWriteLong,
    inputAudio,
    inputImage,
    cachedAudio,
    cachedImage,
    output,
    reasoning,
    outputAudio,
    outputImage,
    webSearches: later.webSearches ?? known.webSearches,
    cost,
  };
}

function laterCost(known: Nano | undefined, later: Nano | undefined): Nano | undefined {
  return known === undefined || later === undefined ? (later ?? known) : larger(known, later);
}

/**
 * A `usage` object, or undefined where it is absent or does not count both sides: zero is a count, absent is
 * not. `prompt_tokens` includes tokens from the cache, `completion_tokens` includes reasoning; providers that count
 * one of them beside that (their total gives it away) are corrected.
 */
export function toUsage(usage: unknown): Usage | undefined {
  const total = count(usage, 'total_tokens') ?? 0;
  const prompted = count(usage, 'prompt_tokens') ?? remainder(total, count(usage, 'completion_tokens'));
  const completed = count(usage, 'completion_tokens') ?? remainder(total, prompted);
  if (prompted === undefined || completed === undefined) return undefined;
  const prompt = member(usage, 'prompt_tokens_details');
  const answer = member(usage, 'completion_tokens_details');
  const cachedInput =
    count(prompt, 'cached_tokens') ?? count(usage, 'prompt_cache_hit_tokens') ?? count(usage, 'cached_tokens') ?? 0;
  const cacheWrite = count(prompt, 'cache_write_tokens') ?? 0;
  const onTop = Math.max(0, total - prompted - completed);
  const input = onTop === cachedInput + cacheWrite ? prompted + onTop : prompted;
  const reported = count(answer, 'reasoning_tokens') ?? 0;
  // Tokens of the total beyond prompt and answer were reasoning, also where the provider does not say so (Gemini, in
  // OpenAI's dialect).
  const reasoning = Math.max(input > prompted ? 0 : onTop, reported > completed ? reported : 0);
  const cached = Math.min(cachedInput, input);
  const cachedDetails = member(prompt, 'cached_tokens_details');
  return {
    input,
    output: completed + reasoning,
    cachedInput: cached,
    cacheWrite: Math.min(cacheWrite, input - cached),
    inputAudio: count(prompt, 'audio_tokens'),
    inputImage: count(prompt, 'image_tokens') || undefined,
    cachedAudio: count(cachedDetails, 'audio_tokens') || undefined,
    cachedImage: count(cachedDetails, 'image_tokens') || undefined,
    reasoning: Math.max(reported, reasoning) || undefined,
    outputAudio: count(answer, 'audio_tokens') || undefined,
    outputImage: count(answer, 'image_tokens') || undefined,
    webSearches: webSearchesIn(usage),
    cost: costIn(usage),
  };
}

/** The cost in a `usage` object: of OpenRouter, Perplexity (`{"total_cost"}`) and xAI (in units of 10^-10 dollars). */
export function costIn(usage: unknown): Nano | undefined {
  const cost = member(usage, 'cost');
  const ticks = countIn(usage, 'cost_in_usd_ticks');
  if (ticks !== undefined) return (BigInt(ticks) + 9n) / 10n;
  return nanoOfNumber(cost) ?? nanoOfNumber(member(cost, 'total_cost'));
}

/** Web searches as OpenRouter, Perplexity and xAI count them (xAI by the sources that it bills). */
function webSearchesIn(usage: unknown): number | undefined {
  return (
    count(member(usage, 'server_tool_use'), 'web_search_requests') ??
    count(usage, 'num_search_queries') ??
    count(usage, 'num_sources_used')
  );
}

export const NO_TOKENS: Tokens = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 };

/** The count of an absent side (some providers omit a zero): the total without the other side. */
function remainder(total: number, other: number | undefined): number | undefined {
  return other === undefined || other > total ? undefined : total - other;
}
