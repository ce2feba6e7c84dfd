// Replies of upstreams. A plain reply is read to its end, a stream to its first content.

import { err, ok, type Result } from '#core/failure/result.ts';
import { Pieces } from '#core/json/bytes.ts';
import { isTooCostly, LONG_TEXT } from '#core/json/json-limits.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { BodyRefusal } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import { type StopSignal, UpstreamError, type UpstreamResponse } from '#core/ports/upstream.ts';
import type { RequestMemory } from '../request/memory-budget.ts';
import type { Endpoint, Piece, Reply, ReplyOptions, StreamFormat, StreamReader } from '../wire/codec.ts';
import { withoutSecrets } from '../wire/json/secrets.ts';
import { toSse } from '../wire/streams/aws-event-stream.ts';
import {
  type AttemptFailure,
  BROKEN_CALL,
  failureOf,
  failureOfInvalidReply,
  failureOfRefusal,
  failureOfUnreadableReply,
  isProviderError,
} from './attempt-failure.ts';

export interface PlainReply {
  readonly type: 'plain';
  readonly reply: Reply;
}

/** A stream that has begun. */
export interface StreamReply {
  readonly type: 'stream';
  /** Returns the first pieces, once, and forgets them: they may repeat the whole request, and streams last long. */
  takeFirst(): ReadonlyArray<Piece>;
  readonly reader: StreamReader;
  readonly format: StreamFormat;
  readonly rest: AsyncIterator<Uint8Array>;
  /** Whether all of `rest` has arrived; absent if the platform does not know that. */
  readonly hasEnded: UpstreamResponse['hasEnded'];
}

/** The call whose reply is opened. */
interface CallContext {
  readonly endpoint: Endpoint;
  readonly stream: boolean;
  readonly clock: Clock;
  /** The end of the call. */
  readonly signal: Pick<StopSignal, 'aborted'>;
  readonly marks?: Pick<ReplyOptions, 'modelEntryMark' | 'markId'>;
  /** Memory for a plain reply, and for an event whose end has not arrived. */
  readonly share: RequestMemory;
}

type OpenResult = Promise<Result<PlainReply | StreamReply, AttemptFailure>>;

/**
 * The time for which comments are not passed on: another target may still answer. After it they are passed on, so that
 * no proxy closes the idle connection.
 */
const MAX_COMMENT_TIME: Millis = 15_000;
const MAX_COMMENT_BYTES = 64 * 1024;
/** Bytes of memory that a piece takes beside its content. */
const PIECE_OVERHEAD = 256;
const MAX_ERROR = 64 * 1024;
const NO_BYTES = new Uint8Array(0);

/** Opens the reply. Failures: a status other than 2xx, an error in place of content, an end before any content. */
export function openReply(response: UpstreamResponse, context: CallContext): OpenResult {
  const { streams } = context.endpoint.codec;
  if (response.status < 200 || response.status > 299) return readRefusal(response, context);
  const isStreamed = streams !== undefined && isStream(response, context.stream);
  return isStreamed ? openStream(response, context, streams) : readPlain(response, context);
}

async function readRefusal(response: UpstreamResponse, context: CallContext): OpenResult {
  const { readError } = context.endpoint.codec;
  const { bytes } = await read(response, MAX_ERROR);
  const { status, headers } = response;
  return err(
    failureOfRefusal(
      { status, headers, error: readError(bytes), isProviderError: isProviderError(bytes) },
      context.endpoint,
    ),
  );
}

async function readPlain(response: UpstreamResponse, context: CallContext): OpenResult {
  const { codec } = context.endpoint;
  const { share } = context;
  const { bytes, length, refused, broken } = await read(response, share.limits.reply, share);
  if (refused !== undefined)
    return err(failureOfUnreadableReply(refused === 'no room' ? 'overloaded' : 'upstream_error', length));
  if (broken !== undefined) return err(failureOf(broken, context.signal, length));
  const edges = bytes.length > LONG_TEXT ? codec.readEdges?.(bytes) : undefined;
  if (edges !== undefined) return ok({ type: 'plain', reply: edges });
  if (bytes.length > LONG_TEXT) await share.turn();
  if (isTooCostly(bytes)) return err(failureOfUnreadableReply('upstream_error', length));
  try {
    const reply = codec.readReply(bytes, toReplyOptions(context));
    if (reply !== undefined) return ok({ type: 'plain', reply });
  } catch (error) {
    // The stack is full: JSON.parse reads deeper nesting than recursion and JSON.stringify can follow.
    if (error instanceof RangeError) return err(failureOfUnreadableReply('upstream_error', length));
    throw error;
  }
  const error = codec.readError(bytes);
  return err(failureOfInvalidReply({ status: response.status, bytes, error }, context.endpoint));
}

async function openStream(response: UpstreamResponse, context: CallContext, format: StreamFormat): OpenResult {
  const { endpoint, clock } = context;
  const reader = format.createReader({ ...toReplyOptions(context), resizePending: context.share.openPart() });
  const isFramed = typeOf(response).startsWith('application/vnd.amazon.eventstream');
  const rest = (isFramed ? toSse(response.body, context.share.openPart()) : response.body)[Symbol.asyncIterator]();
  const since = clock.now();
  const opening: StreamOpening = { first: [], bytes: 0, hasBegun: false };
  const { first } = opening;
  while (first.length === 0 || (isOnlyComments(opening) && clock.now() - since < MAX_COMMENT_TIME)) {
    const next = await rest.next();
    addPieces(opening, next.done ? reader.end() : reader.push(next.value));
    if (next.done && !opening.hasBegun) return err(BROKEN_CALL);
  }
  const refused = first.find((piece) => piece.error ?? piece.readEvents ?? piece.event)?.error;
  if (refused !== undefined) {
    await rest.return?.();
    const { usage } = first.find((piece) => piece.usage !== undefined) ?? {};
    const refusal = { headers: response.headers, status: refused.status ?? 502, error: refused, isProviderError: true };
    return err({ ...failureOfRefusal(refusal, endpoint), usage });
  }
  return ok({ type: 'stream', takeFirst: () => first.splice(0), reader, format, rest, hasEnded: response.hasEnded });
}

/** The pieces of a stream up to its first content. */
interface StreamOpening {
  readonly first: Piece[];
  bytes: number;
  /** One of the pieces is more than a comment or a ping. */
  hasBegun: boolean;
}

/** Adds the pieces, except pings that show the client nothing. */
function addPieces(opening: StreamOpening, pieces: ReadonlyArray<Piece>): void {
  for (const piece of pieces) {
    opening.hasBegun ||= !isKeepAlive(piece);
    opening.bytes += piece.bytes.length + PIECE_OVERHEAD;
    if (opening.hasBegun || piece.bytes.length > 0) opening.first.push(piece);
  }
}

function isOnlyComments({ bytes, hasBegun }: StreamOpening): boolean {
  return !hasBegun && bytes < MAX_COMMENT_BYTES;
}

/** Whether the piece is a comment, or an event without content, count, error or end. */
function isKeepAlive({ readEvents, event, choices, usage, outputBytes, done, error }: Piece): boolean {
  const content = readEvents ?? event ?? usage ?? error;
  return content === undefined && choices.length === 0 && outputBytes === 0 && !done;
}

function isStream(response: UpstreamResponse, asked: boolean): boolean {
  const type = typeOf(response);
  return type.startsWith('text/event-stream') || (asked && !type.startsWith('application/json'));
}

function typeOf({ headers }: UpstreamResponse): string {
  return (headers['content-type'] ?? '').toLowerCase();
}

function toReplyOptions({ clock, marks, endpoint }: CallContext): ReplyOptions {
  return { ...marks, created: Math.floor(clock.now() / 1000), redact: (words) => withoutSecrets(words, endpoint) };
}

interface PartialBody {
  /** The body, or its beginning if it was not read to its end. */
  readonly bytes: Uint8Array;
  readonly length: number;
  readonly refused: BodyRefusal | undefined;
  /** The error that ended the body too early. */
  readonly broken: UpstreamError | undefined;
}

/** Reads the body. Reading ends early if the body breaks off, has more than `max` bytes or finds no memory. */
async function read({ body }: UpstreamResponse, max: number, share?: RequestMemory): Promise<PartialBody> {
  const pieces = new Pieces();
  let length = 0;
  let refused: BodyRefusal | undefined;
  let broken: UpstreamError | undefined;
  try {
    for await (const piece of body) {
      pieces.add(piece);
      length += piece.length;
      // Pieces take memory beside the whole until they are joined. The reply is charged already: a short one gets
      // memory whatever its key uses.
      if (length > max) refused = 'too large';
      else if (share?.take(2 * piece.length, length <= LONG_TEXT ? 'all' : 'usual') === false) refused = 'no room';
      if (refused !== undefined) break;
    }
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    broken = error;
  }
  const isWhole = refused === undefined && broken === undefined;
  if (isWhole) share?.giveBack(length);
  // A body that was not read to its end is charged by its length only.
  return { bytes: isWhole || share === undefined ? pieces.take() : NO_BYTES, length, refused, broken };
}
