// What does an upstream's answer look like to the gateway? Whole, or as a stream that has begun.
import type { Clock } from '#core/ports/clock.ts';
import type { Settlement } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';
import type { UpstreamResponse } from '#core/ports/serving.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type AttemptFailure, BROKEN, endless, refusalOf, unreadable } from './attempt-failure.ts';
import type { Deadline } from './deadline.ts';
import type { Reservation } from './reserve.ts';
import type { Target } from './route.ts';
import type { Piece, Reply, Seconds, StreamReader } from './wire/dialect.ts';
import { concat } from './wire/json-splice.ts';
import type { ReplyEnd } from './wire/stream-end.ts';

const made: unique symbol = Symbol('Exchange');

/** An upstream that answers. Only `openExchange` makes one. */
export type Exchange = PlainExchange | StreamExchange;

interface Answered {
  readonly [made]: true;
  readonly reservation: Reservation;
  readonly target: Target;
  /** What earlier attempts cost that were taken and came to nothing. */
  readonly lost: Settlement | undefined;
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
  /** Whether all of `rest` has arrived, where that can be told. */
  readonly hasEnded: UpstreamResponse['hasEnded'];
  readonly deadline: Deadline;
  /** Stops what the upstream is doing. */
  stop(): void;
  /** To be told once how the stream ended. */
  over(end: ReplyEnd): void;
}

/** Comments are kept back for so long: another target may still answer. Then they go out, so that nobody in between takes the connection for dead. */
const KEPT_BACK: Millis = 15_000;
const MOST_KEPT_BACK = 64 * 1024;
const LARGEST_REPLY = 64 * 1024 * 1024;
const LARGEST_ERROR = 64 * 1024;

/** An upstream that has taken the request. */
export interface Accepted {
  readonly reservation: Reservation;
  readonly target: Target;
  readonly lost: Settlement | undefined;
  readonly response: UpstreamResponse;
  readonly deadline: Deadline;
  readonly created: Seconds;
  readonly clock: Clock;
  stop(): void;
  over(end: ReplyEnd): void;
}

/** Reads a reply to its end, or a stream to the first piece that says something. */
export function openExchange(accepted: Accepted): Promise<Result<Exchange, AttemptFailure>> {
  const { reservation, response } = accepted;
  if (response.status < 200 || response.status > 299) return readRefusal(accepted);
  return isStream(response, reservation.grant.chat.stream) ? openStream(accepted) : readPlain(accepted);
}

async function readRefusal({ target, response }: Accepted): Promise<Result<Exchange, AttemptFailure>> {
  return err(refusalOf(response, target.dialect.readError(await readError(response)), target));
}

async function readPlain(accepted: Accepted): Promise<Result<Exchange, AttemptFailure>> {
  const { reservation, target, lost, response, deadline } = accepted;
  const bytes = await readAll(response.body[Symbol.asyncIterator](), LARGEST_REPLY);
  if (bytes === undefined) return err(endless(LARGEST_REPLY));
  const reply = target.dialect.readReply(bytes, accepted.created);
  if (reply === undefined) return err(unreadable(response, target.dialect.readError(bytes)));
  deadline.close();
  return ok({ [made]: true, type: 'plain', reservation, target, lost, headers: response.headers, reply });
}

/** A stream has begun with its first piece that is no comment: an error in it, or an end before it, is an attempt that failed. */
async function openStream(accepted: Accepted): Promise<Result<Exchange, AttemptFailure>> {
  const { reservation, target, lost, response, deadline } = accepted;
  const reader = target.dialect.createReader(accepted.created);
  const rest = response.body[Symbol.asyncIterator]();
  const since = accepted.clock.now();
  let first: ReadonlyArray<Piece> = [];
  while (first.length === 0 || (isKept(first) && accepted.clock.now() - since < KEPT_BACK)) {
    const next = await rest.next();
    const pieces = next.done ? reader.end() : reader.push(next.value);
    if (next.done && pieces.every(isMute)) return err(BROKEN);
    first = first.length === 0 ? pieces : [...first, ...pieces];
  }
  const refused = first.find((piece) => piece.error ?? piece.events ?? piece.frame)?.error;
  if (refused !== undefined) {
    await rest.return?.();
    return err(refusalOf({ ...response, status: refused.status ?? 502 }, refused, target));
  }
  return ok({
    [made]: true,
    type: 'stream',
    reservation,
    target,
    lost,
    headers: response.headers,
    first,
    reader,
    rest,
    hasEnded: response.hasEnded,
    deadline,
    stop: accepted.stop,
    over: accepted.over,
  });
}

function isKept(pieces: ReadonlyArray<Piece>): boolean {
  return pieces.every(isMute) && pieces.reduce((sum, { bytes }) => sum + bytes.length, 0) < MOST_KEPT_BACK;
}

/** A comment, or an event that tells nothing of an answer. */
function isMute({ events, frame, choices, usage, outputBytes, done, error }: Piece): boolean {
  const tells = events ?? frame ?? usage ?? error;
  return tells === undefined && choices.length === 0 && outputBytes === 0 && !done;
}

function isStream(response: UpstreamResponse, asked: boolean): boolean {
  const type = (response.headers['content-type'] ?? '').toLowerCase();
  return type.startsWith('text/event-stream') || (asked && !type.startsWith('application/json'));
}

/** Undefined: there is more than so many bytes, and no more is read. */
async function readAll(body: AsyncIterator<Uint8Array>, most: number): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (let next = await body.next(); !next.done; next = await body.next()) {
    length += next.value.length;
    pieces.push(next.value);
    if (length <= most) continue;
    await body.return?.();
    return undefined;
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
