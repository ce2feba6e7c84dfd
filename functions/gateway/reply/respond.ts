// Heads and bodies of replies: our own headers, some of the provider's headers, and errors in the format of each API.
import { createLru } from '#core/caches/lru.ts';
import { type Failure, type FailureCode, type FailureReply, toReply } from '#core/failure/failure.ts';
import { formatMoney } from '#core/money/money.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { RateView } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';
import { RATE_KINDS, WINDOWED_RATES } from '#core/ports/rates.ts';
import type { RemainingLimits } from '../caller/remaining-limits.ts';
import type { RequestContext } from '../request/request-context.ts';

type HeaderRecord = Readonly<Record<string, string>>;

/** The context of a reply: its request, and the rest of the request's limits, if known. */
export interface ReplyContext extends RequestContext, Partial<RemainingLimits> {}

/** Sends the refusal and returns it, for the log. */
export function sendFailure(client: HttpExchange, failure: Failure, context: ReplyContext): FailureReply {
  const reply = toReply(failure);
  const { errors } = context;
  const error = { ...reply.error, message: withBlockedMessage(reply.error.message, failure, context) };
  const isSpent = failure.code === 'budget_exceeded';
  client.begin(reply.status, {
    ...JSON_TYPE,
    ...ownHeaders(context),
    ...reply.headers,
    ...errors.headersOf?.(reply.status, error),
    ...(isSpent && context.budget !== undefined ? errors.budgetHeaders?.(context.budget, true) : {}),
  });
  const own = failure.code === 'upstream_refused' ? failure.body : undefined;
  client.end(own ?? JSON.stringify(errors.toBody(error, reply.status)));
  return reply;
}

/** Refusals that the operators of the platform can resolve. */
const PLATFORM_REFUSALS: ReadonlySet<FailureCode> = new Set<FailureCode>([
  ...(['invalid_api_key', 'expired_api_key', 'key_blocked', 'model_access_denied'] as const),
  ...(['model_not_priced', 'budget_exceeded', 'rate_limit_exceeded'] as const),
]);

function withBlockedMessage(message: string, { code }: Failure, { blockedMessage }: RequestContext): string {
  return blockedMessage !== undefined && PLATFORM_REFUSALS.has(code) ? `${message} ${blockedMessage}` : message;
}

const JSON_TYPE = { 'content-type': 'application/json' };

export function sendJson(client: HttpExchange, context: ReplyContext, json: string): void {
  client.begin(200, { ...JSON_TYPE, ...ownHeaders(context) });
  client.end(json);
}

export function sendText(client: HttpExchange, status: number, text: string): void {
  client.begin(status, { 'content-type': 'text/plain; charset=utf-8' });
  client.end(text);
}

/**
 * Headers of a reply. `upstream`: those of the provider. Only the content type, the request id and `retry-after` are
 * passed on. `clampedTo`: the client's limit, lowered to what the budget covers.
 */
export function replyHeaders(
  upstream: HeaderRecord,
  context: ReplyContext,
  clampedTo: number | undefined,
): Record<string, string> {
  const upstreamId = upstream['x-request-id'] ?? upstream['request-id'];
  const retryAfter = upstream['retry-after'];
  const headers = ownHeaders(context);
  headers['content-type'] = upstream['content-type'] ?? 'application/json';
  if (upstreamId !== undefined) headers['x-upstream-request-id'] = upstreamId;
  if (retryAfter !== undefined) headers['retry-after'] = retryAfter;
  if (context.budget !== undefined) Object.assign(headers, context.errors.budgetHeaders?.(context.budget, false));
  if (clampedTo !== undefined) headers['x-gateway-clamped-to'] = String(clampedTo);
  return headers;
}

/** Headers of every reply: the ids of the request, and the rest of the key's rates and budgets. */
function ownHeaders({ requestId, clientRequestId, rates, budget }: ReplyContext): Record<string, string> {
  const headers: Record<string, string> = { 'x-request-id': requestId };
  if (clientRequestId !== undefined) headers['x-client-request-id'] = clientRequestId;
  if (rates !== undefined) Object.assign(headers, rateHeaders(rates));
  if (budget !== undefined) {
    headers['x-gateway-budget-remaining'] = formatMoney(budget.remaining);
    headers['x-gateway-budget-reset'] = resetText(budget.resetAt);
  }
  return headers;
}

/** The maximum number of texts of resets. Budgets of an instance share their windows, so there are few. */
const MAX_RESETS = 1_000;
const resets = createLru<string>(MAX_RESETS);

/** The text of a reset, kept: writing one takes as long as all other headers together. */
function resetText(resetAt: Millis): string {
  const key = String(resetAt);
  const known = resets.get(key);
  if (known !== undefined) return known;
  const text = new Date(resetAt).toISOString();
  resets.set(key, text);
  return text;
}

/**
 * Headers of OpenAI's API, which its clients read (platform.openai.com/docs/guides/rate-limits). Of several scopes, the
 * one with the smallest rest counts.
 */
export function rateHeaders(rates: RateView | undefined): HeaderRecord {
  const headers: Record<string, string> = {};
  for (const kind of WINDOWED_RATES) {
    const rate = rates?.[kind];
    const { header } = RATE_KINDS[kind];
    if (rate === undefined || header === undefined) continue;
    headers[`x-ratelimit-limit-${header}`] = String(rate.limit);
    headers[`x-ratelimit-remaining-${header}`] = String(rate.remaining);
    headers[`x-ratelimit-reset-${header}`] = toDuration(rate.resetIn);
  }
  return headers;
}

/** A duration such as `1m0s`, `59s`, `350ms`, `0s`, rounded up. */
export function toDuration(millis: Millis): string {
  if (millis > 0 && millis < 1000) return `${Math.ceil(millis)}ms`;
  const seconds = Math.ceil(millis / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
