// What does a client hear of its rate limits? OpenAI's headers, which its clients already read (platform.openai.com/docs/guides/rate-limits).
import type { RateView } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';

/** Of the scope that leaves least, of requests and of tokens each; nothing where nothing is limited. */
export function rateHeaders(rates: RateView | undefined): Readonly<Record<string, string>> {
  if (rates === undefined) return {};
  return { ...headersOf('requests', rates.requests), ...headersOf('tokens', rates.tokens) };
}

function headersOf(what: string, rate: RateView['requests']): Readonly<Record<string, string>> {
  if (rate === undefined) return {};
  return {
    [`x-ratelimit-limit-${what}`]: String(rate.limit),
    [`x-ratelimit-remaining-${what}`]: String(rate.remaining),
    [`x-ratelimit-reset-${what}`]: toSpan(rate.resetIn),
  };
}

/** `1m0s`, `59s`, `350ms`, `0s`: never earlier than it is true. */
export function toSpan(millis: Millis): string {
  if (millis > 0 && millis < 1000) return `${Math.ceil(millis)}ms`;
  const seconds = Math.ceil(millis / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
