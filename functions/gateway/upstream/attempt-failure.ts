// Failures of attempts. Each decides on the client's failure, the charge, the next attempt and the model entry's
// cooldown (LEDGER 10).

import { reasonOf } from '#core/failure/error-text.ts';
import type { Failure } from '#core/failure/failure.ts';
import { fromUtf8 } from '#core/json/bytes.ts';
import { member, parseJson } from '#core/json/json.ts';
import { toUsage, type Usage } from '#core/money/usage.ts';
import { type StopSignal, UpstreamError, type UpstreamResponse } from '#core/ports/upstream.ts';
import type { Endpoint, WireError } from '../wire/codec.ts';
import { addUsage, toUsage as toMessagesUsage } from '../wire/dialects/anthropic-dialect.ts';
import { withoutSecrets } from '../wire/json/secrets.ts';

export interface AttemptFailure {
  /** The failure that the client sees if this attempt was the last. */
  readonly failure: Failure;
  /**
   * The targets at which another attempt may help: other targets (`elsewhere`), all targets (`anywhere`) or none
   * (`never`).
   */
  readonly retry: 'never' | 'elsewhere' | 'anywhere';
  /**
   * The cause of the failure, which decides on the cooldown: the model entry itself, perhaps the request (`unclear`),
   * or certainly not the model entry (`none`).
   */
  readonly fault: 'entry' | 'unclear' | 'none';
  /** The provider has certainly received nothing of the request. */
  readonly unsent?: true;
  /**
   * Bytes of the reply to a request that the provider took, and bills. Absent: the provider refused the request, or
   * never took it.
   */
  readonly outputBytes?: number;
  /** The provider's count of a request that it took and that failed. */
  readonly usage?: Usage | undefined;
  /** Seconds that the provider asks clients to wait. */
  readonly retryAfter?: number | undefined;
  /**
   * For the log: the status and code of the upstream, or the code of the system if there was no reply; never the
   * upstream's message.
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
const NOT_SIGNED: AttemptFailure = { ...UNREACHABLE, retry: 'elsewhere', unsent: true };
/**
 * The provider took the request, and the connection ended before any reply. Some requests are too large for a server.
 */
export const BROKEN_CALL: AttemptFailure = {
  failure: { code: 'upstream_error' },
  retry: 'elsewhere',
  fault: 'unclear',
  outputBytes: 0,
};
/** The provider took the request and sent nothing in time. */
const TIMED_OUT: AttemptFailure = { ...BROKEN_CALL, failure: { code: 'upstream_timeout' } };

/**
 * Statuses of a proxy whose provider took the request and did not answer. A provider that uses such a status sends an
 * error of its own with it.
 */
const UNANSWERED: ReadonlyMap<number, AttemptFailure> = new Map([
  [408, TIMED_OUT],
  [502, BROKEN_CALL],
  [504, TIMED_OUT],
  [520, BROKEN_CALL],
  [524, TIMED_OUT],
]);

/**
 * The failure of a call that broke: before the reply, or, with `outputBytes`, in the middle of a plain reply. Throws
 * any error that is our own.
 */
export function failureOf(error: unknown, signal: Pick<StopSignal, 'aborted'>, outputBytes = 0): AttemptFailure {
  if (!(error instanceof UpstreamError)) throw error;
  const { kind } = error;
  if (kind === 'unsent' || (kind === 'not signed' && signal.aborted)) return UNSENT;
  if (kind === 'not signed') return { ...NOT_SIGNED, upstreamCode: reasonOf(error).slice(0, 160) };
  if (kind === 'no room') return failureOfUnreadableReply('overloaded', outputBytes);
  if (signal.aborted || kind === 'timeout') return { ...TIMED_OUT, outputBytes };
  const upstreamCode = systemCodeOf(error);
  return kind === 'refused' ? { ...UNREACHABLE, upstreamCode } : { ...BROKEN_CALL, outputBytes, upstreamCode };
}

/** The system's code of a failed connection, such as ENOTFOUND; undefined if the platform does not give it. */
function systemCodeOf({ cause }: UpstreamError): string | undefined {
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code.slice(0, 64) : undefined;
}

interface InvalidReply extends Pick<UpstreamResponse, 'status'> {
  readonly bytes: Uint8Array;
  readonly error: WireError;
}

/**
 * The failure of a 2xx without a reply: one that ends too early, an answer without content that its provider counted,
 * an error, or the page of a proxy, which took no request.
 */
export function failureOfInvalidReply({ status, bytes, error }: InvalidReply, target: Endpoint): AttemptFailure {
  const text = fromUtf8(bytes).trim();
  const isCut = text === '' || (text.startsWith('{') && parseJson(text) === undefined);
  if (isCut) return { ...BROKEN_CALL, outputBytes: bytes.length, status };
  const usage = usageIn(parseJson(text));
  if (usage !== undefined) return { ...BROKEN_CALL, usage, ...toReportedFields(status, error, target) };
  return {
    failure: { code: 'upstream_error' },
    retry: 'anywhere',
    fault: 'unclear',
    ...toReportedFields(status, error, target),
  };
}

/** The count in a body of any dialect, if tokens were used. */
function usageIn(body: unknown): Usage | undefined {
  const usage = member(body, 'usage');
  const counted = toUsage(usage) ?? toMessagesUsage(addUsage({}, usage));
  return counted !== undefined && counted.input + counted.output > 0 ? counted : undefined;
}

/**
 * The failure of a whole reply that the gateway cannot pass on: too long, or nested too deeply. A second reply would be
 * the same.
 */
export const failureOfUnreadableReply = (
  code: 'overloaded' | 'upstream_error',
  outputBytes: number,
): AttemptFailure => ({
  failure: { code },
  retry: 'never',
  fault: 'none',
  outputBytes,
});

/** Whether a body is the error of a provider, not of a proxy before the provider. */
export function isProviderError(bytes: Uint8Array): boolean {
  const error = member(parseJson(fromUtf8(bytes)), 'error');
  return error !== undefined && error !== null;
}

/** A refusal. `isProviderError`: it comes from the provider, not from a proxy. */
interface Refusal extends Pick<UpstreamResponse, 'status' | 'headers'> {
  readonly error: WireError;
  readonly isProviderError: boolean;
}

/**
 * The failure of a refusal, by its status. A wrong key or address of the model entry is our failure, not the client's.
 */
export function failureOfRefusal(
  { status, headers, error, isProviderError: isFromProvider }: Refusal,
  target: Endpoint,
): AttemptFailure {
  const reportedFields = toReportedFields(status, error, target);
  const unanswered = isFromProvider ? undefined : UNANSWERED.get(status);
  if (unanswered !== undefined) return { ...unanswered, ...reportedFields };
  if (status === 400 || status === 413 || status === 422) {
    const message = withoutSecrets(error.message ?? 'The provider refused the request.', target).slice(0, MAX_MESSAGE);
    const body = error.body === undefined ? undefined : withoutSecrets(error.body, target);
    const param = error.param === undefined ? undefined : withoutSecrets(error.param, target);
    const failure: Failure = { code: 'upstream_refused', status, message, param, body };
    return { failure, retry: 'never', fault: 'none', ...reportedFields };
  }
  if (status === 429) {
    const retryAfter = retryAfterOf(headers['retry-after']);
    const failure: Failure = { code: 'upstream_rate_limited', retryAfter: retryAfter ?? 1 };
    const fault = TOO_LARGE.test(error.message ?? '') ? 'none' : 'unclear';
    return { failure, retry: 'elsewhere', fault, retryAfter, ...reportedFields };
  }
  if (status === 408)
    return { failure: { code: 'upstream_timeout' }, retry: 'elsewhere', fault: 'unclear', ...reportedFields };
  const failure: Failure = { code: 'upstream_error', refusesCredentials: status === 401 || status === 403 };
  return {
    failure,
    retry: status >= 500 ? 'anywhere' : 'elsewhere',
    fault: FAULTS.get(status) ?? 'unclear',
    ...reportedFields,
  };
}

/**
 * The message for a request that is larger than the account's tokens per minute (OpenAI). The model entry still works
 * for other requests.
 */
const TOO_LARGE = /^Request too large\b/i;

/**
 * Causes by status. A wrong key belongs to the model entry (401). A client may name a file or a response that does not
 * exist (404).
 */
const FAULTS: ReadonlyMap<number, AttemptFailure['fault']> = new Map([
  [401, 'entry'],
  [404, 'none'],
]);

/** The fields for the log. A provider may repeat a credential in the code of its error. */
function toReportedFields(
  status: number,
  { code }: WireError,
  target: Endpoint,
): Pick<AttemptFailure, 'status' | 'upstreamCode'> {
  return { status, upstreamCode: code === undefined ? undefined : withoutSecrets(code, target).slice(0, 64) };
}

const MAX_MESSAGE = 4096;
/** Whole seconds of a `retry-after`. Dates are not parsed: a provider that sends one is called again after a minute. */
function retryAfterOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const seconds = Number(header);
  if (!Number.isFinite(seconds)) return 60;
  return Math.max(1, Math.ceil(seconds));
}
