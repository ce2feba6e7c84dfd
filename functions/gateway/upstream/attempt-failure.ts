// Failures of attempts: what they mean for the client, the charge, the next attempt and the entry's cooldown (LEDGER
// 10).

import { reasonOf } from '#core/failure/error-text.ts';
import type { Failure } from '#core/failure/failure.ts';
import { fromUtf8 } from '#core/json/bytes.ts';
import { member, parseJson } from '#core/json/json.ts';
import { toUsage, type Usage } from '#core/money/usage.ts';
import { UpstreamError, type UpstreamResponse } from '#core/ports/serving.ts';
import type { Endpoint, WireError } from '../wire/codec.ts';
import { addUsage, toUsage as toMessagesUsage } from '../wire/dialects/anthropic-dialect.ts';
import { withoutSecrets } from '../wire/json/secrets.ts';

export interface AttemptFailure {
  /** The failure that the client sees if this attempt was the last. */
  readonly failure: Failure;
  /** Another attempt is of use at another target only (`elsewhere`), at any (`anywhere`), at none (`never`). */
  readonly retry: 'never' | 'elsewhere' | 'anywhere';
  /**
   * The cause: the entry, whatever is asked of it; perhaps the request; or surely not the entry. Decides on its
   * cooldown.
   */
  readonly fault: 'entry' | 'unclear' | 'none';
  /** Surely nothing of the request has reached the provider. */
  readonly unsent?: true;
  /**
   * Bytes of the reply to a request that the provider took, and bills. Absent: the provider refused the request, or
   * never took it.
   */
  readonly outputBytes?: number;
  /** The provider's count of a request that it took and failed. */
  readonly usage?: Usage | undefined;
  /** Seconds that the provider asks clients to wait. */
  readonly retryAfter?: number | undefined;
  /**
   * For the log: the upstream's status and its own code, or the system's where there was no reply; never its message.
   */
  readonly status?: number;
  readonly upstreamCode?: string | undefined;
}

const UNREACHABLE: AttemptFailure = { failure: { code: 'upstream_error' }, retry: 'anywhere', fault: 'entry' };
const UNSENT: AttemptFailure = {
  failure: { code: 'upstream_timeout' },
  retry: 'elsewhere',
  fault: 'entry',
  unsent: true,
};
const UNSIGNED: AttemptFailure = { ...UNREACHABLE, retry: 'elsewhere', unsent: true };
/**
 * The provider took the request; the connection broke or ended before any reply. A request may be too much for a
 * server.
 */
export const BROKEN: AttemptFailure = {
  failure: { code: 'upstream_error' },
  retry: 'elsewhere',
  fault: 'unclear',
  outputBytes: 0,
};
/** The provider took the request and sent nothing within its time. */
const TIMED_OUT: AttemptFailure = { ...BROKEN, failure: { code: 'upstream_timeout' } };

/**
 * Statuses by which a proxy tells that its provider took the request and did not answer; a provider that uses one gives
 * its own error with it.
 */
const UNANSWERED: ReadonlyMap<number, AttemptFailure> = new Map([
  [408, TIMED_OUT],
  [502, BROKEN],
  [504, TIMED_OUT],
  [520, BROKEN],
  [524, TIMED_OUT],
]);

/**
 * The failure of a call that broke: before there was a reply, or, with so many bytes, in the middle of a plain one.
 * Throws an error of our own.
 */
export function failureOf(error: unknown, signal: AbortSignal, outputBytes = 0): AttemptFailure {
  if (!(error instanceof UpstreamError)) throw error;
  const { kind } = error;
  if (kind === 'unsent' || (kind === 'unsigned' && signal.aborted)) return UNSENT;
  if (kind === 'unsigned') return { ...UNSIGNED, upstreamCode: reasonOf(error).slice(0, 160) };
  if (kind === 'no room') return failureOfUnreadable('overloaded', outputBytes);
  if (signal.aborted || kind === 'timeout') return { ...TIMED_OUT, outputBytes };
  const upstreamCode = systemCodeOf(error);
  return kind === 'refused' ? { ...UNREACHABLE, upstreamCode } : { ...BROKEN, outputBytes, upstreamCode };
}

/** The system's name of why a connection failed, such as ENOTFOUND; where the platform tells it. */
function systemCodeOf({ cause }: UpstreamError): string | undefined {
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code.slice(0, 64) : undefined;
}

/**
 * A 2xx that carries no reply: one that ends too early, an answer without content that its provider has counted, an
 * error, or the page of a proxy, which took no request.
 */
export function failureOfInvalid(status: number, bytes: Uint8Array, error: WireError): AttemptFailure {
  const text = fromUtf8(bytes).trim();
  const isCut = text === '' || (text.startsWith('{') && parseJson(text) === undefined);
  if (isCut) return { ...BROKEN, outputBytes: bytes.length, status };
  const usage = usageIn(parseJson(text));
  if (usage !== undefined) return { ...BROKEN, usage, ...reported(status, error) };
  return { failure: { code: 'upstream_error' }, retry: 'anywhere', fault: 'unclear', ...reported(status, error) };
}

/** The count in a body of whichever dialect, where tokens were used. */
function usageIn(body: unknown): Usage | undefined {
  const usage = member(body, 'usage');
  const counted = toUsage(usage) ?? toMessagesUsage(addUsage({}, usage));
  return counted !== undefined && counted.input + counted.output > 0 ? counted : undefined;
}

/**
 * A whole reply of so many bytes that the gateway cannot pass on: too long, or nested too deeply. A second one would be
 * as long.
 */
export const failureOfUnreadable = (code: 'overloaded' | 'upstream_error', outputBytes: number): AttemptFailure => ({
  failure: { code },
  retry: 'never',
  fault: 'none',
  outputBytes,
});

/** Whether these are the words of a provider, not of a proxy before it. */
export function isProviderError(bytes: Uint8Array): boolean {
  const error = member(parseJson(fromUtf8(bytes)), 'error');
  return error !== undefined && error !== null;
}

/** A refusal, and whether it is in the provider's own words. */
interface Refusal extends Pick<UpstreamResponse, 'status' | 'headers'> {
  readonly error: WireError;
  readonly isProviderError: boolean;
}

/** Reads a refusal by its status. A wrong key or address is our failure, not the client's. */
export function refusalOf(
  { status, headers, error, isProviderError: isFromProvider }: Refusal,
  target: Endpoint,
): AttemptFailure {
  const about = reported(status, error);
  const unanswered = isFromProvider ? undefined : UNANSWERED.get(status);
  if (unanswered !== undefined) return { ...unanswered, ...about };
  if (status === 400 || status === 413 || status === 422) {
    const message = withoutSecrets(error.message ?? 'The provider refused the request.', target).slice(0, MAX_MESSAGE);
    const body = error.body === undefined ? undefined : withoutSecrets(error.body, target);
    const param = error.param === undefined ? undefined : withoutSecrets(error.param, target);
    const failure: Failure = { code: 'upstream_refused', status, message, param, body };
    return { failure, retry: 'never', fault: 'none', ...about };
  }
  if (status === 429) {
    const retryAfter = retryAfterOf(headers['retry-after']);
    const failure: Failure = { code: 'upstream_rate_limited', retryAfter: retryAfter ?? 1 };
    const fault = TOO_LARGE.test(error.message ?? '') ? 'none' : 'unclear';
    return { failure, retry: 'elsewhere', fault, retryAfter, ...about };
  }
  if (status === 408) return { failure: { code: 'upstream_timeout' }, retry: 'elsewhere', fault: 'unclear', ...about };
  const failure: Failure = { code: 'upstream_error', refusesUs: status === 401 || status === 403 };
  return { failure, retry: status >= 500 ? 'anywhere' : 'elsewhere', fault: FAULTS.get(status) ?? 'unclear', ...about };
}

/**
 * One request that is larger than the account's tokens per minute (OpenAI): other requests find the entry as before.
 */
const TOO_LARGE = /^Request too large\b/i;

/** A wrong key is the entry's; a client may name a file or a response that is not there. */
const FAULTS: ReadonlyMap<number, AttemptFailure['fault']> = new Map([
  [401, 'entry'],
  [404, 'none'],
]);

function reported(status: number, error: WireError): Pick<AttemptFailure, 'status' | 'upstreamCode'> {
  return { status, upstreamCode: error.code?.slice(0, 64) };
}

const MAX_MESSAGE = 4096;
/** Whole seconds of a retry-after. A date is not parsed: a provider that sends one is called again in a minute. */
function retryAfterOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const seconds = Number(header);
  if (!Number.isFinite(seconds)) return 60;
  return Math.max(1, Math.ceil(seconds));
}
