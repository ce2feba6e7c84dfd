// Replies of upstreams: read to their end, or streams to the first piece that says something.
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { UpstreamResponse } from '#core/ports/serving.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type AttemptFailure, BROKEN, invalidReply, refusalOf } from './attempt-failure.ts';
import type { Dialect, Endpoint, Piece, Reply, StreamReader } from './wire/dialect.ts';
import { concat } from './wire/sse.ts';

export interface PlainReply {
  readonly type: 'plain';
  readonly reply: Reply;
}

/** A stream that has begun. */
export interface StreamReply {
  readonly type: 'stream';
  readonly first: ReadonlyArray<Piece>;
  readonly reader: StreamReader;
  readonly rest: AsyncIterator<Uint8Array>;
  /** Whether all of `rest` has arrived, where the platform knows. */
  readonly hasEnded: UpstreamResponse['hasEnded'];
}

/** The entry that replies, and whether a stream was asked for. */
interface Origin {
  readonly endpoint: Endpoint & { readonly dialect: Dialect };
  readonly stream: boolean;
  readonly clock: Clock;
}

type Opened = Promise<Result<PlainReply | StreamReply, AttemptFailure>>;

/** Comments are kept back for so long: another target may still answer. Then they go out, so that no proxy takes the connection for dead. */
const KEPT_BACK: Millis = 15_000;
const MAX_KEPT_BACK = 64 * 1024;
const MAX_REPLY = 64 * 1024 * 1024;
const MAX_ERROR = 64 * 1024;

/** A status that is no success, an error in place of content, and an end before any content are attempts that failed. */
export async function openReply(response: UpstreamResponse, origin: Origin): Opened {
  const { dialect } = origin.endpoint;
  if (response.status >= 200 && response.status <= 299) {
    return isStream(response, origin.stream) ? openStream(response, origin) : readPlain(response, origin);
  }
  const { bytes } = await read(response, MAX_ERROR);
  return err(refusalOf(response, dialect.readError(bytes), origin.endpoint));
}

async function readPlain(response: UpstreamResponse, { endpoint: { dialect }, clock }: Origin): Opened {
  const { bytes, isWhole } = await read(response, MAX_REPLY);
  // Asked for again it would be as long.
  if (!isWhole) return err({ ...BROKEN, again: 'never', blameless: true, outputBytes: MAX_REPLY });
  const reply = dialect.readReply(bytes, secondsOf(clock));
  return reply === undefined ? err(invalidReply(response, dialect.readError(bytes))) : ok({ type: 'plain', reply });
}

async function openStream(response: UpstreamResponse, { endpoint, clock }: Origin): Opened {
  const reader = endpoint.dialect.createReader(secondsOf(clock));
  const rest = response.body[Symbol.asyncIterator]();
  const since = clock.now();
  let first: ReadonlyArray<Piece> = [];
  while (first.length === 0 || (isKept(first) && clock.now() - since < KEPT_BACK)) {
    const next = await rest.next();
    const pieces = next.done ? reader.end() : reader.push(next.value);
    if (next.done && pieces.every(isKeepAlive)) return err(BROKEN);
    first = first.length === 0 ? pieces : [...first, ...pieces];
  }
  const refused = first.find((piece) => piece.error ?? piece.events ?? piece.frame)?.error;
  if (refused !== undefined) {
    await rest.return?.();
    return err(refusalOf({ ...response, status: refused.status ?? 502 }, refused, endpoint));
  }
  return ok({ type: 'stream', first, reader, rest, hasEnded: response.hasEnded });
}

function isKept(pieces: ReadonlyArray<Piece>): boolean {
  return pieces.every(isKeepAlive) && pieces.reduce((sum, { bytes }) => sum + bytes.length, 0) < MAX_KEPT_BACK;
}

/** A comment, or an event that tells nothing of an answer. */
function isKeepAlive({ events, frame, choices, usage, outputBytes, done, error }: Piece): boolean {
  const tells = events ?? frame ?? usage ?? error;
  return tells === undefined && choices.length === 0 && outputBytes === 0 && !done;
}

function isStream(response: UpstreamResponse, asked: boolean): boolean {
  const type = (response.headers['content-type'] ?? '').toLowerCase();
  return type.startsWith('text/event-stream') || (asked && !type.startsWith('application/json'));
}

function secondsOf(clock: Clock): number {
  return Math.floor(clock.now() / 1000);
}

/** The body, or its beginning where it has more than so many bytes: then no more is read. */
async function read({ body }: UpstreamResponse, max: number): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    pieces.push(piece);
    length += piece.length;
    if (length > max) break;
  }
  return { bytes: concat(pieces), isWhole: length <= max };
}
