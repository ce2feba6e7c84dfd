// Failed attempts: what each means for the client, and whether another one is worth making.
import type { Failure } from '#core/failure.ts';
import type { UpstreamResponse } from '#core/ports/serving.ts';
import type { Endpoint } from './wire/dialect.ts';
import type { WireError } from './wire/wire-error.ts';

export interface AttemptFailure {
  /** The failure that the client sees if this attempt was the last. */
  readonly failure: Failure;
  /** Another attempt is of use at another target only (`elsewhere`), at any (`anywhere`), at none (`never`). */
  readonly again: 'never' | 'elsewhere' | 'anywhere';
  /** The entry is not to blame: another client's request may well be answered. */
  readonly blameless?: boolean;
  /** Surely nothing of the request has reached the provider. */
  readonly unsent?: true;
  /** The provider took the request and bills what it read, and so many bytes of a reply came of it. Absent: it refused, or never took it. */
  readonly outputBytes?: number;
  /** Seconds for which the provider wants to be left alone. */
  readonly retryAfter?: number;
  /** For the log: the upstream's status and its own code, never its message. */
  readonly status?: number;
  readonly upstreamCode?: string;
}

export const UNREACHABLE: AttemptFailure = { failure: { code: 'upstream_error' }, again: 'anywhere' };
/** The provider took the request; the connection broke or ended before any reply. */
export const BROKEN: AttemptFailure = { ...UNREACHABLE, outputBytes: 0 };
const LATE: AttemptFailure = { failure: { code: 'upstream_timeout' }, again: 'elsewhere' };
/** The provider took the request and sent nothing within its time. */
export const TIMED_OUT: AttemptFailure = { ...LATE, outputBytes: 0 };

export const UNSENT: AttemptFailure = { ...LATE, unsent: true };

/** A 2xx that carries no chat completion: an error in its body, or the page of a proxy. */
export function invalidReply(response: UpstreamResponse, error: WireError): AttemptFailure {
  return { failure: { code: 'upstream_error' }, again: 'anywhere', ...reported(response.status, error) };
}

/** Reads a refusal by its status. What is wrong with our key or our address is ours, not the client's. */
export function refusalOf(
  response: Pick<UpstreamResponse, 'status' | 'headers'>,
  error: WireError,
  target: Endpoint,
): AttemptFailure {
  const { status } = response;
  const about = reported(status, error);
  if (status === 400 || status === 413 || status === 422) {
    const message = withoutSecrets(error.message ?? 'The provider refused the request.', target);
    const param = error.param === undefined ? {} : { param: error.param };
    return {
      failure: { code: 'upstream_refused', status, message, ...param },
      again: 'never',
      blameless: true,
      ...about,
    };
  }
  if (status === 429) {
    const retryAfter = secondsOf(response.headers['retry-after']);
    const failure: Failure = { code: 'upstream_rate_limited', retryAfter: retryAfter ?? 1 };
    return { failure, again: 'elsewhere', ...(retryAfter === undefined ? {} : { retryAfter }), ...about };
  }
  if (status === 408) return { ...LATE, ...about };
  return { failure: { code: 'upstream_error' }, again: status >= 500 ? 'anywhere' : 'elsewhere', ...about };
}

function reported(status: number, error: WireError): Pick<AttemptFailure, 'status' | 'upstreamCode'> {
  return { status, ...(error.code === undefined ? {} : { upstreamCode: error.code.slice(0, 64) }) };
}

const MAX_MESSAGE = 4096;
const MIN_SECRET = 8;

/** A provider's words are passed on, our credentials in them are not. */
function withoutSecrets(message: string, { credentials }: Endpoint): string {
  const secrets = Object.values(credentials).filter((value) => value.length >= MIN_SECRET);
  return secrets.reduce((text, secret) => text.replaceAll(secret, '…'), message).slice(0, MAX_MESSAGE);
}

/** Whole seconds of a retry-after. A date is not worth a clock: a provider that sends one is asked again in a minute. */
function secondsOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const seconds = Number(header);
  if (!Number.isFinite(seconds)) return 60;
  return Math.max(1, Math.ceil(seconds));
}
