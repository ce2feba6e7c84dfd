// Streams under way: what a reply knows of itself from its first bytes to its settlement, and the timers that it has.
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { GatewayDeps } from '../deps.ts';
import type { MemoryShare } from '../request/memory-budget.ts';
import type { ClientContext, ReplyEnd } from '../request/request-log.ts';
import { Meter } from '../spend/meter.ts';
import type { StreamExchange } from '../upstream/upstream.ts';
import { EMPTY_PIECE, type Piece, type WireError } from '../wire/codec.ts';

/** A stream in which the provider is silent for so long gets a sign of life, where its API has one. */
const KEEP_ALIVE: Millis = 15_000;
/**
 * An upstream is read this long after the end of its reply: for its count, and so that its connection can be reused.
 */
export const COUNT_TIMEOUT: Millis = 1_000;

/** One stream that is under way. */
export interface RunningStream {
  readonly exchange: StreamExchange;
  readonly client: HttpExchange;
  readonly share: MemoryShare;
  /** Takes room for so many bytes that the client has not taken. */
  readonly resizeUntaken: (bytes: number) => boolean;
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
  lastWriteAt: Millis;
  cancelKeepAlive: () => void;
  /** Cancels the timer that bounds the wait for the count after the client has left. */
  cancelCountTimeout: () => void;
}

export function createOpenStream(deps: Pick<GatewayDeps, 'ledger' | 'timer' | 'clock'>) {
  return openStream;

  function openStream(exchange: StreamExchange, { client, share }: ClientContext): RunningStream {
    const { reservation, target, deadline, format } = exchange;
    const meter = new Meter(exchange, format.createEnd(reservation.grant.request));
    const idle = { unread: 0, wake: () => {}, cancelCountTimeout: () => {}, cancelKeepAlive: () => {} };
    const running: RunningStream = {
      exchange,
      client,
      share,
      resizeUntaken: share.openPart(),
      meter,
      end: undefined,
      failure: undefined,
      lastWriteAt: deps.clock.now(),
      ...idle,
    };
    if (format.keepAlive !== undefined) keepAlive(running, format.keepAlive);
    const interrupt = (end: ReplyEnd) => {
      running.end ??= end;
      stopUpstream(running);
      running.wake();
    };
    deadline.onEnd((why) => {
      // A client that has left with the whole answer: only the count is still missing.
      const isOwed = why === 'left' && running.end === undefined && meter.finished && !meter.isCounted;
      if (isOwed) running.cancelCountTimeout = deps.timer(COUNT_TIMEOUT, () => interrupt('left'));
      else interrupt(why);
    });
    // The rest of the reservation may belong to other requests now. A free reply needs none of it.
    const lose = target.limit.cutAt === undefined ? undefined : () => interrupt('cut');
    deps.ledger.trackStream(reservation.reservation, () => meter.settlement().cost, lose);
    return running;
  }

  /** Looks whether the client has heard anything when it might have been silent for long. */
  function keepAlive(running: RunningStream, event: Uint8Array): void {
    const rest = running.lastWriteAt + KEEP_ALIVE - deps.clock.now();
    running.cancelKeepAlive = deps.timer(Math.max(1, Math.min(rest, KEEP_ALIVE)), () => {
      if (running.end !== undefined) return;
      if (deps.clock.now() - running.lastWriteAt >= KEEP_ALIVE) {
        running.client.write([event]);
        running.lastWriteAt = deps.clock.now();
      }
      keepAlive(running, event);
    });
  }
}

/** Stops the upstream. */
export function stopUpstream({ exchange }: RunningStream): void {
  exchange.stop();
  // A failure to end the upstream is ignored: it has just been stopped.
  Promise.resolve(exchange.rest.return?.()).catch(() => {});
}

export function countLateUsage(meter: Meter, pieces: ReadonlyArray<Piece>): void {
  for (const { usage, usageOnly } of pieces) if (usage !== undefined) meter.count({ ...EMPTY_PIECE, usage, usageOnly });
}
