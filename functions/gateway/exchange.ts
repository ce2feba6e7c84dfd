// What does an upstream's answer look like to the gateway? Whole, or as a stream that has begun.
import { UpstreamBroke, type UpstreamResponse } from '#core/ports/serving.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type AttemptFailure, refusalOf, UNREACHABLE, unreadable } from './attempt-failure.ts';
import type { Deadline } from './deadline.ts';
import { concat } from './members.ts';
import type { ReplyEnd } from './record.ts';
import type { Reservation } from './reserve.ts';
import type { Target } from './route.ts';
import type { Piece, Reply, Seconds, StreamReader } from './wire/dialect.ts';

const made: unique symbol = Symbol('Exchange');

/** An upstream that answers. Only `openExchange` makes one. */
export type Exchange = PlainExchange | StreamExchange;

interface Answered {
  readonly [made]: true;
  readonly reservation: Reservation;
  readonly target: Target;
  readonly headers: Readonly<Record<string, string>>;
}

export interface PlainExchange extends Answered {
  readonly type: 'plain';
  readonly reply: Reply;
}

export interface StreamExchange extends Answered {
  readonly type: 'stream';
  readonly first: ReadonlyArray<Piece>;
  readonly reader: StreamReader;
  readonly rest: AsyncIterator<Uint8Array>;
  readonly deadline: Deadline;
  /** To be told once how the stream ended. */
  over(end: ReplyEnd): void;
}

const LARGEST_REPLY = 64 * 1024 * 1024;
const LARGEST_ERROR = 64 * 1024;

/** An upstream that has taken the request. */
export interface Accepted {
  readonly reservation: Reservation;
  readonly target: Target;
  readonly response: UpstreamResponse;
  readonly deadline: Deadline;
  readonly created: Seconds;
  over(end: ReplyEnd): void;
}

/** Reads a reply to its end, or a stream to its first piece. */
export function openExchange(accepted: Accepted): Promise<Result<Exchange, AttemptFailure>> {
  const { reservation, response } = accepted;
  if (response.status < 200 || response.status > 299) return readRefusal(accepted);
  return isStream(response, reservation.grant.chat.stream) ? openStream(accepted) : readPlain(accepted);
}

async function readRefusal({ target, response }: Accepted): Promise<Result<Exchange, AttemptFailure>> {
  return err(refusalOf(response, target.dialect.readError(await readError(response)), target));
}

async function readPlain(accepted: Accepted): Promise<Result<Exchange, AttemptFailure>> {
  const { reservation, target, response, deadline } = accepted;
  const bytes = await readAll(response.body, LARGEST_REPLY);
  const reply = target.dialect.readReply(bytes, accepted.created);
  if (reply === undefined) return err(unreadable(response, target.dialect.readError(bytes)));
  deadline.close();
  return ok({ [made]: true, type: 'plain', reservation, target, headers: response.headers, reply });
}

/** A stream has begun with its first piece: an error in it, or an end before it, is an attempt that failed. */
async function openStream(accepted: Accepted): Promise<Result<Exchange, AttemptFailure>> {
  const { reservation, target, response, deadline } = accepted;
  const reader = target.dialect.createReader(accepted.created);
  const rest = response.body[Symbol.asyncIterator]();
  let first: ReadonlyArray<Piece> = [];
  while (first.length === 0) {
    const next = await rest.next();
    first = next.done ? reader.end() : reader.push(next.value);
    if (next.done && first.length === 0) return err(UNREACHABLE);
  }
  const refused = first.find((piece) => piece.error !== undefined || piece.frame !== undefined)?.error;
  if (refused !== undefined) {
    await rest.return?.();
    return err(refusalOf({ ...response, status: refused.status ?? 502 }, refused, target));
  }
  return ok({
    [made]: true,
    type: 'stream',
    reservation,
    target,
    headers: response.headers,
    first,
    reader,
    rest,
    deadline,
    over: accepted.over,
  });
}

function isStream(response: UpstreamResponse, asked: boolean): boolean {
  const type = response.headers['content-type'] ?? '';
  return type.startsWith('text/event-stream') || (asked && !type.startsWith('application/json'));
}

async function readAll(body: AsyncIterable<Uint8Array>, most: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length > most) throw new UpstreamBroke('broken', `the reply is larger than ${most} bytes`);
    pieces.push(piece);
  }
  return concat(pieces);
}

/** As much of a refusal as says why. */
async function readError(response: UpstreamResponse): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body) {
    pieces.push(piece);
    length += piece.length;
    if (length > LARGEST_ERROR) break;
  }
  return concat(pieces);
}
