// What does the upstream answer? Targets are tried in turn until one begins to answer; nothing has reached the client before that.
import type { Failure } from '#core/failure.ts';
import { UpstreamBroke, type UpstreamResponse } from '#core/ports/serving.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type AttemptFailure, refusalOf, TIMED_OUT, UNREACHABLE, unreadable } from './attempt-failure.ts';
import { type Deadline, openDeadline } from './deadline.ts';
import type { GatewayDeps } from './deps.ts';
import { concat } from './members.ts';
import type { Line } from './record.ts';
import type { Reservation } from './reserve.ts';
import type { Target, Targets } from './route.ts';
import type { Piece, Reply, Seconds, StreamReader } from './wire/dialect.ts';

const made: unique symbol = Symbol('Exchange');

/** An upstream that answers. Only `exchange` makes one. */
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
}

/** Why there is no exchange. `consumed`: the provider may have read the prompt all the same. */
export interface NoExchange {
  readonly failure: Failure;
  readonly target: Target;
  readonly consumed: boolean;
}

export type CallUpstream = (targets: Targets, request: Request, line: Line) => Promise<Result<Exchange, NoExchange>>;

const LARGEST_REPLY = 64 * 1024 * 1024;
const LARGEST_ERROR = 64 * 1024;
/** Before an upstream is tried again that was tried before; twice as long each time. */
const PAUSE = 100;

export function createCallUpstream(deps: Pick<GatewayDeps, 'upstream' | 'timer' | 'clock'>): CallUpstream {
  return async function callUpstream(targets, request, line) {
    const { chat, routing } = targets.reservation.grant;
    // A client that leaves ends a stream; a plain request is read to its end and charged in full.
    const deadline = openDeadline(deps.timer, routing.timeouts.total, request.signal, chat.stream);
    let waiting = [targets.first, ...targets.others];
    let again: ReadonlyArray<Target> = [];
    let last: NoExchange | undefined;
    for (let tries = 0; tries <= routing.retries; tries += 1) {
      if (waiting.length === 0) {
        waiting = [...again];
        again = [];
        if (waiting.length > 0) await deadline.sleep(PAUSE * 2 ** (tries - 1));
      }
      const target = waiting.shift();
      if (target === undefined) break;
      if (request.signal.aborted || deadline.ended !== undefined) break;
      const result = await attempt(targets.reservation, target, deadline);
      line.attempt(target, result.ok ? undefined : result.failure);
      if (result.ok) return result;
      const silent = result.failure.status === undefined;
      last = { failure: result.failure.failure, target, consumed: silent && deadline.ended === 'left' };
      if (deadline.ended !== undefined || result.failure.again === 'never') break;
      if (result.failure.again === 'anywhere') again = [...again, target];
    }
    deadline.close();
    return err(outcome(last, targets, request));
  };

  async function attempt(
    reservation: Reservation,
    target: Target,
    deadline: Deadline,
  ): Promise<Result<Exchange, AttemptFailure>> {
    const { grant } = reservation;
    const request = target.dialect.toRequest(grant.chat, target);
    if (!request.ok) return err({ failure: request.failure, again: 'elsewhere' });
    const endAttempt = deadline.limitAttempt(target.entry.timeout);
    try {
      const response = await deps.upstream({
        ...request.value,
        timeouts: grant.routing.timeouts,
        signal: deadline.signal,
      });
      if (response.status < 200 || response.status > 299) {
        return err(refusalOf(response, target.dialect.readError(await readError(response)), target));
      }
      const accepted = { reservation, target, response, deadline, created: Math.floor(deps.clock.now() / 1000) };
      return isStream(response, grant.chat.stream) ? await openStream(accepted) : await readPlain(accepted);
    } catch (error) {
      return err(deadline.signal.aborted || isTimeout(error) ? TIMED_OUT : UNREACHABLE);
    } finally {
      endAttempt();
    }
  }
}

function outcome(last: NoExchange | undefined, { first }: Targets, request: Request): NoExchange {
  const end = last ?? { failure: { code: 'upstream_timeout' }, target: first, consumed: false };
  return request.signal.aborted ? { ...end, failure: { code: 'client_left' } } : end;
}

/** An upstream that has taken the request. */
interface Accepted {
  readonly reservation: Reservation;
  readonly target: Target;
  readonly response: UpstreamResponse;
  readonly deadline: Deadline;
  readonly created: Seconds;
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
  });
}

function isStream(response: UpstreamResponse, asked: boolean): boolean {
  const type = response.headers['content-type'] ?? '';
  return type.startsWith('text/event-stream') || (asked && !type.startsWith('application/json'));
}

function isTimeout(error: unknown): boolean {
  return error instanceof UpstreamBroke && error.how === 'timeout';
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
