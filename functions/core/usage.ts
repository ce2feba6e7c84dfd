// How many tokens does the provider say it used? The OpenAI `usage` object, in the spellings providers give it.
import type { Tokens } from './ports/books.ts';

/**
 * Tokens of a `usage` object, or undefined where it is absent or does not count both sides: zero is a count, absent is
 * not. `prompt_tokens` includes what came from the cache, `completion_tokens` includes reasoning; providers that add
 * reasoning on top (their total gives it away) are corrected.
 */
export function toTokens(usage: unknown): Tokens | undefined {
  const input = count(usage, 'prompt_tokens');
  const completion = count(usage, 'completion_tokens');
  if (input === undefined || completion === undefined) return undefined;
  const prompt = member(usage, 'prompt_tokens_details');
  const cachedInput =
    count(prompt, 'cached_tokens') ?? count(usage, 'prompt_cache_hit_tokens') ?? count(usage, 'cached_tokens') ?? 0;
  const cacheWrite = count(prompt, 'cache_write_tokens') ?? 0;
  const cached = Math.min(cachedInput, input);
  return {
    input,
    output: completion + reasoningOnTop(usage, input, completion),
    cachedInput: cached,
    cacheWrite: Math.min(cacheWrite, input - cached),
  };
}

export const NO_TOKENS: Tokens = { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 };

function reasoningOnTop(usage: unknown, input: number, completion: number): number {
  const reasoning = count(member(usage, 'completion_tokens_details'), 'reasoning_tokens') ?? 0;
  const total = count(usage, 'total_tokens') ?? 0;
  return reasoning > completion || total === input + completion + reasoning ? reasoning : 0;
}

function count(of: unknown, name: string): number | undefined {
  const value = member(of, name);
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function member(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null ? Reflect.get(of, name) : undefined;
}
