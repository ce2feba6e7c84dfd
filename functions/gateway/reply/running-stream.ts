// Streams under way: what a reply knows of itself from its first bytes to its settlement, and the timers that it has.
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { GatewayDeps } from '../deps.ts';
import type { Share } from '../request/memory-budget.ts';
import type { ClientContext, ReplyEnd } from '../request/request-log.ts';
import { Meter } from '../spend/meter.ts';
import type { StreamExchange } from '../upstream/upstream.ts';
import { NOTHING, type Piece, type WireError } from '../wire/codec.ts';

/** A stream in which the provider is silent for so long gets a sign of life, where its API has one. */
const KEEP_ALIVE: Millis = 15_000;
/**
 * An upstream is read this long after the end of its reply: for its count, and so that its connection can be reused.
 */
export const LINGER: Millis = 1_000;

/** One stream that is under way. */
export interface RunningStream {
  readonly exchange: StreamExchange;
  readonly client: HttpExchange;
  readonly share: Share;
  /** Takes room for so many bytes that the client has not taken. */
  readonly keepUntaken: (bytes: number) => boolean;
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

export function createOpen(deps: Pick<GatewayDeps, 'ledger' | 'timer' | 'clock'>) {
  return open;

  function open(exchange: StreamExchange, { client, share }: ClientContext): RunningStream {
    const { reservation, target, deadline, format } = exchange;
    const meter = new Meter(exchange, format.createEnd(reservation.grant.request));
    const idle = { unread: 0, wake: () => {}, cancelLinger: () => {}, cancelKeepAlive: () => {} };
    const running: RunningStream = {
      exchange,
      client,
      share,
      keepUntaken: share.part(),
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
}

/** Stops the upstream. */
export function stop({ exchange }: RunningStream): void {
  exchange.stop();
  // A failure to end the upstream is ignored: it has just been stopped.
  Promise.resolve(exchange.rest.return?.()).catch(() => {});
}

export function countLate(meter: Meter, pieces: ReadonlyArray<Piece>): void {
  for (const { usage, usageOnly } of pieces) if (usage !== undefined) meter.count({ ...NOTHING, usage, usageOnly });
}
