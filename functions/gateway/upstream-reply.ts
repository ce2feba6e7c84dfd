// Replies of upstreams: read to their end, or to the first content of a stream; and the meaning of a failed attempt.

import { concat } from '#core/concat.ts';
import type { Failure } from '#core/failure.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { BodyRefusal } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import { UpstreamBroke, type UpstreamResponse } from '#core/ports/serving.ts';
import { reasonOf } from '#core/reason.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Usage } from '#core/usage.ts';
import type { Body } from './body.ts';
import { toSse } from './wire/aws-event-stream.ts';
import type { Endpoint, Made, Piece, Reply, StreamFormat, StreamReader, WireError } from './wire/codec.ts';
import { withoutSecrets } from './wire/secrets.ts';

export interface PlainReply {
  readonly type: 'plain';
  readonly reply: Reply;
}

/** A stream that has begun. */
export interface StreamReply {
  readonly type: 'stream';
  readonly first: ReadonlyArray<Piece>;
  readonly reader: StreamReader;
  readonly format: StreamFormat;
  readonly rest: AsyncIterator<Uint8Array>;
  /** Whether all of `rest` has arrived, where the platform knows. */
  readonly hasEnded: UpstreamResponse['hasEnded'];
}

export interface AttemptFailure {
  /** The failure that the client sees if this attempt was the last. */
  readonly failure: Failure;
  /** Another attempt is of use at another target only (`elsewhere`), at any (`anywhere`), at none (`never`). */
  readonly again: 'never' | 'elsewhere' | 'anywhere';
  /** The entry is not to blame: a request of another client may succeed. */
  readonly blameless?: boolean;
  /** Surely nothing of the request has reached the provider. */
  readonly unsent?: true;
  /** Bytes of the reply to a request that the provider took, and bills. Absent: the provider refused the request, or never took it. */
  readonly outputBytes?: number;
  /** The provider's count of a request that it took and failed. */
  readonly usage?: Usage | undefined;
  /** Seconds that the provider asks clients to wait. */
  readonly retryAfter?: number | undefined;
  /** For the log: the upstream's status and its own code, or the system's where there was no reply; never its message. */
  readonly status?: number;
  readonly upstreamCode?: string | undefined;
}

const UNREACHABLE: AttemptFailure = { failure: { code: 'upstream_error' }, again: 'anywhere' };
/** The provider took the request; the connection broke or ended before any reply. */
const BROKEN: AttemptFailure = { ...UNREACHABLE, outputBytes: 0 };
const LATE: AttemptFailure = { failure: { code: 'upstream_timeout' }, again: 'elsewhere' };
/** The provider took the request and sent nothing within its time. */
const TIMED_OUT: AttemptFailure = { ...LATE, outputBytes: 0 };

const UNSENT: AttemptFailure = { ...LATE, unsent: true };
const UNSIGNED: AttemptFailure = { ...UNREACHABLE, again: 'elsewhere', unsent: true };

/** The entry that replies, and whether the request is for a stream. */
interface Origin {
  readonly endpoint: Endpoint;
  readonly stream: boolean;
  readonly clock: Clock;
  readonly marks?: Pick<Made, 'by' | 'markId'>;
  /** Room for a plain reply, which all of the process share; absent: the reply is short. */
  readonly room?: Pick<Body, 'accept'>;
}

type Opened = Promise<Result<PlainReply | StreamReply, AttemptFailure>>;

/** Comments are kept back this long: another target may still answer. Then they go out, so that no proxy ends the idle connection. */
const KEPT_BACK: Millis = 15_000;
const MAX_KEPT_BACK = 64 * 1024;
export const MAX_REPLY = 64 * 1024 * 1024;
const MAX_ERROR = 64 * 1024;

/** The reply, or the failed attempt: a status that is no success, an error in place of content, an end before any content. */
export async function openReply(response: UpstreamResponse, origin: Origin): Opened {
  const { streams, readError } = origin.endpoint.codec;
  if (response.status >= 200 && response.status <= 299) {
    const isStreamed = streams !== undefined && isStream(response, origin.stream);
    return isStreamed ? openStream(response, origin, streams) : readPlain(response, origin);
  }
  const { pieces } = await read(response, MAX_ERROR);
  return err(refusalOf(response, readError(concat(pieces)), origin.endpoint));
}

async function readPlain(response: UpstreamResponse, origin: Origin): Opened {
  const { codec } = origin.endpoint;
  const { pieces, length, refused } = await read(response, MAX_REPLY, origin.room);
  // A second attempt would be as long.
  if (refused !== undefined) {
    const failure: Failure = { code: refused === 'no room' ? 'overloaded' : 'upstream_error' };
    return err({ failure, again: 'never', blameless: true, outputBytes: length });
  }
  const bytes = concat(pieces);
  const reply = codec.readReply(bytes, madeBy(origin));
  return reply === undefined ? err(invalidReply(response, codec.readError(bytes))) : ok({ type: 'plain', reply });
}

async function openStream(response: UpstreamResponse, origin: Origin, format: StreamFormat): Opened {
  const { endpoint, clock } = origin;
  const reader = format.createReader(madeBy(origin));
  const isFramed = typeOf(response).startsWith('application/vnd.amazon.eventstream');
  const rest = (isFramed ? toSse(response.body) : response.body)[Symbol.asyncIterator]();
  const since = clock.now();
  const opening: Opening = { first: [], bytes: 0, hasBegun: false };
  const { first } = opening;
  while (first.length === 0 || (isKept(opening) && clock.now() - since < KEPT_BACK)) {
    const next = await rest.next();
    keep(opening, next.done ? reader.end() : reader.push(next.value));
    if (next.done && !opening.hasBegun) return err(BROKEN);
  }
  const refused = first.find((piece) => piece.error ?? piece.events ?? piece.frame)?.error;
  if (refused !== undefined) {
    await rest.return?.();
    const { usage } = first.find((piece) => piece.usage !== undefined) ?? {};
    return err({ ...refusalOf({ ...response, status: refused.status ?? 502 }, refused, endpoint), usage });
  }
  return ok({ type: 'stream', first, reader, format, rest, hasEnded: response.hasEnded });
}

/** The pieces of a stream up to its first content. */
interface Opening {
  readonly first: Piece[];
  bytes: number;
  /** One of the pieces is more than a sign of life. */
  hasBegun: boolean;
}

/** Keeps the pieces, but for signs of life that show the client nothing. */
function keep(opening: Opening, pieces: ReadonlyArray<Piece>): void {
  for (const piece of pieces) {
    opening.hasBegun ||= !isKeepAlive(piece);
    opening.bytes += piece.bytes.length;
    if (opening.hasBegun || piece.bytes.length > 0) opening.first.push(piece);
  }
}

function isKept({ bytes, hasBegun }: Opening): boolean {
  return !hasBegun && bytes < MAX_KEPT_BACK;
}

/** Whether the piece is a comment, or an event without content, count, error or end. */
function isKeepAlive({ events, frame, choices, usage, outputBytes, done, error }: Piece): boolean {
  const tells = events ?? frame ?? usage ?? error;
  return tells === undefined && choices.length === 0 && outputBytes === 0 && !done;
}

function isStream(response: UpstreamResponse, asked: boolean): boolean {
  const type = typeOf(response);
  return type.startsWith('text/event-stream') || (asked && !type.startsWith('application/json'));
}

function typeOf({ headers }: UpstreamResponse): string {
  return (headers['content-type'] ?? '').toLowerCase();
}

function madeBy({ clock, marks, endpoint }: Origin): Made {
  return { created: Math.floor(clock.now() / 1000), ...marks, redact: (words) => withoutSecrets(words, endpoint) };
}

interface Read {
  readonly pieces: ReadonlyArray<Uint8Array>;
  readonly length: number;
  readonly refused: BodyRefusal | undefined;
}

/** The body, or its beginning where it has more than `max` bytes or finds no room: then no more is read. */
async function read({ body }: UpstreamResponse, max: number, room?: Origin['room']): Promise<Read> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  let refused: BodyRefusal | undefined;
  for await (const piece of body) {
    pieces.push(piece);
    length += piece.length;
    refused = length > max ? 'too large' : room?.accept(piece.length);
    if (refused !== undefined) break;
  }
  return { pieces, length, refused };
}

/** A 2xx that carries no reply: an error in its body, or the page of a proxy. */
function invalidReply(response: UpstreamResponse, error: WireError): AttemptFailure {
  return { failure: { code: 'upstream_error' }, again: 'anywhere', ...reported(response.status, error) };
}

/** Reads a refusal by its status. A wrong key or address is our failure, not the client's. */
function refusalOf(
  response: Pick<UpstreamResponse, 'status' | 'headers'>,
  error: WireError,
  target: Endpoint,
): AttemptFailure {
  const { status } = response;
  const about = reported(status, error);
  if (status === 400 || status === 413 || status === 422) {
    const message = withoutSecrets(error.message ?? 'The provider refused the request.', target).slice(0, MAX_MESSAGE);
    const body = error.body === undefined ? undefined : withoutSecrets(error.body, target);
    const param = error.param === undefined ? undefined : withoutSecrets(error.param, target);
    const failure: Failure = { code: 'upstream_refused', status, message, param, body };
    return { failure, again: 'never', blameless: true, ...about };
  }
  if (status === 429) {
    const retryAfter = retryAfterOf(response.headers['retry-after']);
    const failure: Failure = { code: 'upstream_rate_limited', retryAfter: retryAfter ?? 1 };
    return { failure, again: 'elsewhere', retryAfter, ...about };
  }
  if (status === 408) return { ...LATE, ...about };
  // A client may name a file or a response that is not there: its 404 must not keep others from the entry.
  const blameless = status === 404;
  const failure: Failure = { code: 'upstream_error', refusesUs: status === 401 || status === 403 };
  return { failure, again: status >= 500 ? 'anywhere' : 'elsewhere', blameless, ...about };
}

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

/** The failure of a call that broke before there was a reply. */
export function failureOf(error: unknown, signal: AbortSignal): AttemptFailure {
  const how = error instanceof UpstreamBroke ? error.how : undefined;
  if (how === 'unsent' || (how === 'unsigned' && signal.aborted)) return UNSENT;
  if (how === 'unsigned') return { ...UNSIGNED, upstreamCode: reasonOf(error).slice(0, 160) };
  if (signal.aborted || how === 'timeout') return TIMED_OUT;
  return { ...(how === 'refused' ? UNREACHABLE : BROKEN), upstreamCode: systemCodeOf(error) };
}

/** The system's name of why a connection failed, such as ENOTFOUND; where the platform tells it. */
function systemCodeOf(error: unknown): string | undefined {
  const { cause } = error instanceof UpstreamBroke ? error : {};
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code.slice(0, 64) : undefined;
}
