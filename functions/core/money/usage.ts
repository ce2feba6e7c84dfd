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
  /** Parts of the input, tokens from the cache included. */
  readonly inputAudio?: number | undefined;
  readonly inputImage?: number | undefined;
  /** The part of the input that is media of an unknown kind, which the provider did not count. */
  readonly inputMedia?: number | undefined;
  /** Parts of `cachedInput`. */
  readonly cachedAudio?: number | undefined;
  readonly cachedImage?: number | undefined;
  /** The cost of the whole reply, as the provider reports it. */
  readonly cost?: Nano | undefined;
  /** Web searches that the provider made and bills beside the tokens. */
  readonly webSearches?: number | undefined;
  /** Parts of the output. */
  readonly reasoning?: number | undefined;
  readonly outputAudio?: number | undefined;
  readonly outputImage?: number | undefined;
  /** The part of the output that may be media, of an unknown kind. */
  readonly outputMedia?: number | undefined;
}

/** The maximum of a plausible count: no request has nearly as many tokens or searches. */
const MAX_COUNT = 1_000_000_000;

/** A provider's count; undefined: it is absent or not plausible. */
export function readCount(of: unknown, name: string): number | undefined {
  const counted = countIn(of, name);
  return counted === undefined || counted > MAX_COUNT ? undefined : counted;
}

/** The sum of plausible counts, at most `MAX_COUNT`. */
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

/** The usage after a later count of the same reply. Counts are cumulative, so input and output never become less. */
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
 * Reads a `usage` object; undefined if it does not count both input and output (zero is a count). `prompt_tokens`
 * includes tokens from the cache, `completion_tokens` includes reasoning. Some providers count one of them in addition,
 * which their total shows; their counts are corrected.
 */
export function toUsage(usage: unknown): Usage | undefined {
  const total = readCount(usage, 'total_tokens') ?? 0;
  const prompted = readCount(usage, 'prompt_tokens') ?? remainder(total, readCount(usage, 'completion_tokens'));
  const completed = readCount(usage, 'completion_tokens') ?? remainder(total, prompted);
  if (prompted === undefined || completed === undefined) return undefined;
  const prompt = member(usage, 'prompt_tokens_details');
  const details = member(usage, 'completion_tokens_details');
  const cachedInput =
    readCount(prompt, 'cached_tokens') ??
    readCount(usage, 'prompt_cache_hit_tokens') ??
    readCount(usage, 'cached_tokens') ??
    0;
  const cacheWrite = readCount(prompt, 'cache_write_tokens') ?? 0;
  const onTop = Math.max(0, total - prompted - completed);
  const input = onTop === cachedInput + cacheWrite ? prompted + onTop : prompted;
  const reported = readCount(details, 'reasoning_tokens') ?? 0;
  // Tokens of the total beyond prompt and answer are reasoning, also if the provider does not report it (Gemini, in
  // OpenAI's dialect).
  const reasoning = Math.max(input > prompted ? 0 : onTop, reported > completed ? reported : 0);
  const cached = Math.min(cachedInput, input);
  const cachedDetails = member(prompt, 'cached_tokens_details');
  return {
    input,
    output: completed + reasoning,
    cachedInput: cached,
    cacheWrite: Math.min(cacheWrite, input - cached),
    inputAudio: readCount(prompt, 'audio_tokens'),
    inputImage: readCount(prompt, 'image_tokens') || undefined,
    cachedAudio: readCount(cachedDetails, 'audio_tokens') || undefined,
    cachedImage: readCount(cachedDetails, 'image_tokens') || undefined,
    reasoning: Math.max(reported, reasoning) || undefined,
    outputAudio: readCount(details, 'audio_tokens') || undefined,
    outputImage: readCount(details, 'image_tokens') || undefined,
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
    readCount(member(usage, 'server_tool_use'), 'web_search_requests') ??
    readCount(usage, 'num_search_queries') ??
    readCount(usage, 'num_sources_used')
  );
}

export const NO_TOKENS: Tokens = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 };

/** The count that is absent (some providers omit a zero): the total without the other count. */
function remainder(total: number, other: number | undefined): number | undefined {
  return other === undefined || other > total ? undefined : total - other;
}
