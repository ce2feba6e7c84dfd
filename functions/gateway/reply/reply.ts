// Replies to clients: plain ones after they have settled; streams piece by piece as they arrive, settled before their
// last bytes.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { LONG_TEXT } from '#core/json/json-limits.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import { UpstreamBroke } from '#core/ports/serving.ts';
import type { createBudgetLeft } from '../caller/budget-left.ts';
import type { GatewayDeps } from '../deps.ts';
import type { Share } from '../request/memory-budget.ts';
import type { ClientContext, ReplyEnd, RequestLog } from '../request/request-log.ts';
import { Meter, settlementOfReply } from '../spend/meter.ts';
import { limitsOf } from '../spend/reserve.ts';
import { type Settle, UNSETTLED } from '../spend/settle.ts';
import type { Exchange, PlainExchange, StreamExchange } from '../upstream/upstream.ts';
import { type FailedPiece, NOTHING, type Piece, type WireError } from '../wire/codec.ts';
import { isOfRequest } from '../wire/streams/provider-error.ts';
import { answerHeaders } from './respond.ts';

/** A stream in which the provider is silent for so long gets a sign of life, where its API has one. */
const KEEP_ALIVE = 15_000;
/**
 * An upstream is read this long after the end of its reply: for its count, and so that its connection can be reused.
 */
const LINGER = 1_000;

/** One stream that is under way. */
interface RunningStream {
  readonly exchange: StreamExchange;
  readonly client: HttpExchange;
  readonly share: Share;
  readonly meter: Meter;
  /** Why the stream ends, once that is known. */
  end: ReplyEnd | undefined;
  /** The error by which the provider has ended the stream. */
  failure: WireError | undefined;
  /** Bytes of the last write that filled the client's connection. */
  unread: number;
  /** Ends the wait for room in the client's connection. */
  wake: () => void;
  /** When the last bytes went out. */
  spokenAt: Millis;
  cancelKeepAlive: () => void;
  /** Cancels the timer that bounds the wait for the count after the client has left. */
  cancelLinger: () => void;
}

export function createReply(
  deps: Pick<GatewayDeps, 'ledger' | 'timer' | 'clock'>,
  settle: Pick<Settle, 'durably'>,
  budgetLeft: Pick<ReturnType<typeof createBudgetLeft>, 'look'>,
) {
  /** `err`: nothing has gone out, and the client gets this failure. */
  return (exchange: Exchange, asking: ClientContext): Promise<Result<void, Failure>> =>
    exchange.type === 'stream' ? stream(exchange, asking) : plain(exchange, asking);

  async function plain(exchange: PlainExchange, { client, log }: ClientContext): Promise<Result<void, Failure>> {
    const { reservation, reply } = exchange;
    const settlement = settlementOfReply(exchange, reply);
    if (!(await settle.durably(reservation, settlement, log))) return err(UNSETTLED);
    log.answered(200, 'complete');
    client.begin(200, headersOf(exchange, log));
    client.end(typeof reply.body === 'string' ? reply.body : [reply.body]);
    // A long reply keeps its room until its client has taken it.
    if (reply.body.length > LONG_TEXT) await client.drained();
    return ok(undefined);
  }

  async function stream(exchange: StreamExchange, asking: ClientContext): Promise<Result<void, Failure>> {
    const { client, log } = asking;
    const running = open(exchange, asking);
    try {
      client.begin(200, { ...headersOf(exchange, log), 'cache-control': 'no-cache' });
      const last = await pass(running, deps.clock);
      await finish(running, last, log);
      return ok(undefined);
    } catch (error) {
      await abandon(running);
      throw error;
    }
  }

  function headersOf({ headers, target, reservation }: Exchange, { context }: RequestLog): Record<string, string> {
    const { clamped, send } = target.limit;
    return answerHeaders(
      headers,
      { ...context, ...budgetLeft.look(limitsOf(reservation)) },
      clamped ? send : undefined,
    );
  }

  function open(exchange: StreamExchange, { client, share }: ClientContext): RunningStream {
    const { reservation, target, deadline, format } = exchange;
    const meter = new Meter(exchange, format.createEnd(reservation.grant.request));
    const idle = { unread: 0, wake: () => {}, cancelLinger: () => {}, cancelKeepAlive: () => {} };
    const running: RunningStream = {
      exchange,
      client,
      share,
      meter,
      end: undefined,
      failure: undefined,
      spokenAt: deps.clock.now(),
      ...idle,
    };
    if (format.keepAlive !== undefined) keepAlive(running, format.keepAlive);
    const interrupt = (end: ReplyEnd) => {
      running.end ??= end;
      stop(running);
      running.wake();
    };
    deadline.onEnd((why) => {
      // A client that has left with the whole answer: only the count is still missing.
      const isOwed = why === 'left' && running.end === undefined && meter.finished && !meter.counted;
      if (isOwed) running.cancelLinger = deps.timer(LINGER, () => interrupt('left'));
      else interrupt(why);
    });
    // The rest of the reservation may belong to other requests now. A free reply needs none of it.
    const lose = target.limit.cutAt === undefined ? undefined : () => interrupt('cut');
    deps.ledger.trackStream(reservation.reservation, () => meter.settlement().cost, lose);
    return running;
  }

  /** Looks whether the client has heard anything when it might have been silent for long. */
  function keepAlive(running: RunningStream, event: Uint8Array): void {
    const rest = running.spokenAt + KEEP_ALIVE - deps.clock.now();
    running.cancelKeepAlive = deps.timer(Math.max(1, Math.min(rest, KEEP_ALIVE)), () => {
      if (running.end !== undefined) return;
      if (deps.clock.now() - running.spokenAt >= KEEP_ALIVE) {
        running.client.write([event]);
        running.spokenAt = deps.clock.now();
      }
      keepAlive(running, event);
    });
  }

  /** Ends the reply: stops the upstream, makes the charge durable, then sends the last bytes. */
  async function finish(running: RunningStream, last: ReadonlyArray<Uint8Array>, log: RequestLog): Promise<void> {
    const { exchange, client, share, meter, end = 'broken', failure } = running;
    const { reservation, deadline } = exchange;
    const isWhole = end === 'complete' || end === 'failed';
    running.cancelLinger();
    running.cancelKeepAlive();
    if (!isWhole) stop(running);
    else if (!meter.counted) await drain(running);
    const settlement = meter.settlement();
    const durable = await settle.durably(reservation, settlement, log);
    deadline.close();
    exchange.over(end === 'broken' || (failure !== undefined && !isOfRequest(failure)));
    if (failure !== undefined) log.streamFailed(failure);
    log.answered(200, durable ? end : 'broken');
    if (!durable) client.destroy([meter.fail(UNSETTLED)]);
    else if (end === 'cut') client.end([...last, ...meter.cut(settlement.tokens)]);
    else if (isWhole) client.end(last);
    // Agents ask again without end where a body ends cleanly before its last event.
    else client.destroy([...last, ...failuresAt(end).map((failure) => meter.fail(failure))]);
    if (isWhole && exchange.hasEnded?.() !== true) await drain(running);
    keepRoom(running, lengthOf(last));
    if (share.bytes > 0) await client.drained();
  }

  /** Ends a reply after our own error: its known cost is charged, unless it is charged already. */
  async function abandon(running: RunningStream): Promise<void> {
    const { exchange, meter } = running;
    running.cancelLinger();
    running.cancelKeepAlive();
    stop(running);
    exchange.deadline.close();
    exchange.over(false);
    await deps.ledger.settle(exchange.reservation.reservation, meter.settlement());
  }

  /** Reads on after the end that the client has seen: the count may follow it. */
  async function drain(running: RunningStream): Promise<void> {
    const { reader, rest } = running.exchange;
    const cancel = deps.timer(LINGER, () => stop(running));
    try {
      for (let next = await rest.next(); !next.done; next = await rest.next()) {
        countLate(running.meter, reader.push(next.value));
      }
      countLate(running.meter, reader.end());
    } catch (error) {
      // The reply is complete without the rest.
      if (!(error instanceof UpstreamBroke)) throw error;
    } finally {
      cancel();
    }
  }
}

/** Passes pieces on until the reply ends. Returns the last bytes, which wait for the settlement. */
async function pass(running: RunningStream, clock: Clock): Promise<ReadonlyArray<Uint8Array>> {
  const { exchange, client } = running;
  let passed = passOn(running, exchange.takeFirst(), clock);
  // The first packet shows the client nothing, and the next may take long: the client gets the head now.
  if (passed === 'nothing') client.flush();
  while (typeof passed === 'string') {
    if (passed === 'full') {
      keepRoom(running, running.unread);
      await roomIn(running);
      // An end of the stream leaves its bytes untaken.
      if (running.end === undefined) running.share.give();
    }
    passed = await passNext(running, clock);
  }
  return passed;
}

/**
 * Keeps no packet while it waits for the next one: the provider may be silent for long after a packet that repeats the
 * whole request.
 */
async function passNext(running: RunningStream, clock: Clock): Promise<StreamProgress> {
  const pieces = running.end === undefined ? await next(running.exchange) : undefined;
  if (pieces !== undefined) return passOn(running, pieces, clock);
  // An end without `[DONE]` is a whole reply only when its content had ended.
  running.end ??= running.meter.finished ? 'complete' : 'broken';
  return [];
}

/**
 * Some of the pieces were written, or nothing of them; the connection is full; or the last bytes of the reply, which
 * has ended.
 */
type StreamProgress = 'some' | 'nothing' | 'full' | ReadonlyArray<Uint8Array>;

function passOn(running: RunningStream, pieces: ReadonlyArray<Piece>, clock: Clock): StreamProgress {
  const shown: Uint8Array[] = [];
  if (running.end !== undefined) return shown;
  running.end = show(running, pieces, shown);
  if (running.end !== undefined) return shown;
  if (shown.length === 0) return 'nothing';
  const isFull = !running.client.write(shown);
  running.spokenAt = clock.now();
  if (isFull) running.unread = lengthOf(shown);
  return isFull ? 'full' : 'some';
}

/**
 * Takes room for long bytes that the client has not taken, because an event may repeat the whole request. A client for
 * which there is none is cut off, and counts as one that has left.
 */
function keepRoom(running: RunningStream, bytes: number): void {
  const { client, share } = running;
  if (bytes <= LONG_TEXT || share.take(bytes)) return;
  running.end ??= 'left';
  client.destroy();
}

const lengthOf = (pieces: ReadonlyArray<Uint8Array>): number => pieces.reduce((sum, { length }) => sum + length, 0);

function roomIn(running: RunningStream): Promise<void> {
  return new Promise((resolve) => {
    running.wake = resolve;
    void running.client.drained().then(resolve);
  });
}

/** The next pieces; undefined where the upstream has ended or broken off. Throws an error of our own. */
async function next({ reader, rest }: StreamExchange): Promise<ReadonlyArray<Piece> | undefined> {
  try {
    const chunk = await rest.next();
    if (!chunk.done) return reader.push(chunk.value);
    const left = reader.end();
    return left.length === 0 ? undefined : left;
  } catch (error) {
    if (error instanceof UpstreamBroke) return undefined;
    throw error;
  }
}

/** Counts these pieces and collects those that the client sees. Returns how the reply ends, where it does. */
function show(running: RunningStream, pieces: ReadonlyArray<Piece>, shown: Uint8Array[]): ReplyEnd | undefined {
  const { meter, exchange } = running;
  const { includeUsage } = exchange.reservation.grant.request;
  for (const [at, piece] of pieces.entries()) {
    if (isFailed(piece)) {
      running.failure = piece.error;
      meter.count(piece);
      countLate(meter, pieces.slice(at + 1));
      shown.push(meter.pass(piece));
      return 'failed';
    }
    if (meter.exceeds(piece)) {
      const end = piece.events === undefined ? 'cut' : show(running, piece.events(piece.bytes), shown);
      if (end !== undefined) return end;
      continue;
    }
    if (piece.done) {
      countLate(meter, pieces.slice(at + 1));
      shown.push(piece.bytes);
      return 'complete';
    }
    meter.count(piece);
    if (piece.bytes.length > 0 && (!piece.usageOnly || includeUsage)) shown.push(piece.bytes);
  }
  return undefined;
}

function isFailed(piece: Piece): piece is FailedPiece {
  return piece.error !== undefined;
}

/** The failure that the client is told of; none where it has left. */
function failuresAt(end: ReplyEnd): ReadonlyArray<Failure> {
  if (end === 'broken') return [{ code: 'upstream_error' }];
  return end === 'timeout' ? [{ code: 'upstream_timeout' }] : [];
}

function countLate(meter: Meter, pieces: ReadonlyArray<Piece>): void {
  for (const { usage } of pieces) if (usage !== undefined) meter.count({ ...NOTHING, usage });
}

function stop({ exchange }: RunningStream): void {
  exchange.stop();
  // A failure to end the upstream is ignored: it has just been stopped.
  Promise.resolve(exchange.rest.return?.()).catch(() => {});
}
