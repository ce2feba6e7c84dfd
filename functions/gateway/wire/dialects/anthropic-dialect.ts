// Anthropic's dialect, as all APIs share it: addresses, counts of tokens, and errors.
import { listOf, member, textOf } from '#core/json/json.ts';
import { readCount, sumOf, type Usage } from '#core/money/usage.ts';
import { type Address, authOf, type ProviderRoute, toRoute, type WireError } from '../codec.ts';
import { routeToCloud } from './anthropic-clouds.ts';

/**
 * The version of the API that this dialect was written for. The credential `apiVersion` or the client may name another.
 */
const API_VERSION = '2023-06-01';

export function routeToAnthropic(address: Address): ProviderRoute {
  const { base, credentials, provider } = address;
  const headers = authOf(address);
  if (provider.cloud !== undefined) return routeToCloud(address, provider.cloud, headers);
  const version = { 'anthropic-version': credentials.apiVersion ?? API_VERSION };
  return toRoute(`${base.replace(/\/v1$/, '')}/v1/messages`, { ...version, ...headers });
}

/** Counts so far. A stream sends some counts first and others last. */
export type MessagesUsage = {
  readonly [side in 'input' | 'cacheRead' | 'cacheWrite' | 'cacheWriteLong' | 'output' | 'webSearches']?:
    | number
    | undefined;
};

/** The known counts, with those that this `usage` object adds or replaces. */
export function addUsage(known: MessagesUsage, usage: unknown): MessagesUsage {
  // A request that samples more than once (compaction) is billed for all iterations; the counts outside of `iterations`
  // omit some.
  const parts = [usage, ...listOf(member(usage, 'iterations'))];
  const prompt = {
    input: countOf(parts, INPUT) ?? known.input,
    cacheRead: countOf(parts, CACHE_READ) ?? known.cacheRead,
    cacheWrite: countOf(parts, CACHE_WRITE) ?? known.cacheWrite,
    cacheWriteLong: countOf(parts, CACHE_WRITE_LONG) ?? known.cacheWriteLong,
  };
  return {
    ...known,
    // Counts are cumulative: a smaller count never replaces a larger one.
    ...(promptOf(prompt) < promptOf(known) ? {} : prompt),
    output: larger(countOf(parts, OUTPUT), known.output),
    webSearches: larger(countOf([usage], WEB_SEARCHES), known.webSearches),
  };
}

function promptOf({ input = 0, cacheRead = 0, cacheWrite = 0 }: MessagesUsage): number {
  return input + cacheRead + cacheWrite;
}

function larger(counted: number | undefined, known: number | undefined): number | undefined {
  return counted === undefined || known === undefined ? (counted ?? known) : Math.max(counted, known);
}

type Count = (usage: unknown) => number | undefined;

const INPUT: Count = (usage) => readCount(usage, 'input_tokens');
const CACHE_READ: Count = (usage) => readCount(usage, 'cache_read_input_tokens');
const CACHE_WRITE: Count = (usage) => readCount(usage, 'cache_creation_input_tokens');
const CACHE_WRITE_LONG: Count = (usage) => readCount(member(usage, 'cache_creation'), 'ephemeral_1h_input_tokens');
const OUTPUT: Count = (usage) => readCount(usage, 'output_tokens');
const WEB_SEARCHES: Count = (usage) => readCount(member(usage, 'server_tool_use'), 'web_search_requests');

/** The larger of two counts: that of the first object, and the sum of the others. Undefined: none of them counts. */
function countOf([whole, ...iterations]: ReadonlyArray<unknown>, read: Count): number | undefined {
  const counted = read(whole);
  const parts = iterations.flatMap((iteration) => read(iteration) ?? []);
  if (parts.length === 0) return counted;
  return Math.max(counted ?? 0, sumOf(parts));
}

/** Whether this `usage` object counts the answer. The count at the beginning of a stream is only of the first token. */
export function isOutputCounted(usage: unknown): boolean {
  return OUTPUT(usage) !== undefined;
}

/** The usage; undefined until input and output are counted. */
export function toUsage(counted: MessagesUsage): Usage | undefined {
  const { input, output, webSearches, cacheRead = 0, cacheWrite = 0, cacheWriteLong } = counted;
  if (input === undefined || output === undefined) return undefined;
  return {
    input: input + cacheRead + cacheWrite,
    output,
    cachedInput: cacheRead,
    cacheWrite,
    cacheWriteLong,
    webSearches,
  };
}

/** The status of each type of error outside of a stream (platform.claude.com/docs/en/api/errors). */
const ANTHROPIC_STATUSES: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);

/**
 * The error of a body: `{"type": "error", "error": {"type", "message"}}`. Any other body, such as the page of a proxy,
 * is an error without members.
 */
export function anthropicError(body: unknown): WireError {
  const error = member(body, 'error');
  const code = textOf(member(error, 'type'));
  return {
    // Clouds write their own refusals as `{"message"}`.
    message: textOf(member(error, 'message')) ?? textOf(error) ?? textOf(member(body, 'message')),
    param: undefined,
    type: code,
    code,
    status: code === undefined ? undefined : ANTHROPIC_STATUSES.get(code),
  };
}
