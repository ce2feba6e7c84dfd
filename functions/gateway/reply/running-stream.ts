// Running streams: the state of a streamed reply from its first bytes to its settlement, and its timers.
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { RequestMemory } from '../request/memory-budget.ts';
import type { ClientContext, ReplyEnd } from '../request/request-log.ts';
import { Meter } from '../spend/meter.ts';
import type { StreamExchange } from '../upstream/upstream.ts';
import { EMPTY_PIECE, type Piece, type WireError } from '../wire/codec.ts';

/** The time without an event after which a client gets an event that it ignores, if its API has one. */
const KEEP_ALIVE: Millis = 15_000;
/** The time for which an upstream is read after the end of its reply, for its count and to reuse its connection. */
export const LATE_USAGE_TIMEOUT: Millis = 1_000;

/** One running stream. */
export interface RunningStream {
  readonly exchange: StreamExchange;
  readonly client: HttpExchange;
  readonly share: RequestMemory;
  /** Takes memory for this number of bytes that the client has not read. False: there is none. */
  readonly resizeUnread: (bytes: number) => boolean;
  readonly meter: Meter;
  /** How the stream ends, once that is known. */
  end: ReplyEnd | undefined;
  /** The error with which the provider ended the stream. */
  failure: WireError | undefined;
  /** Bytes of the last write that filled the client's connection. */
  unread: number;
  /** Ends the wait for a connection that is full. */
  wake: () => void;
  /** The time of the last write. */
  lastWriteAt: Millis;
  cancelKeepAlive: () => void;
  /** Cancels the timer that ends the wait for the count after the client has left. */
  cancelCountTimeout: () => void;
}

export function createOpenStream(deps: Pick<GatewayDependencies, 'ledger' | 'timer' | 'clock'>) {
  return openStream;

  function openStream(exchange: StreamExchange, { client, share }: ClientContext): RunningStream {
    const { reserved, target, deadline, format } = exchange;
    const meter = new Meter(exchange, format.createEndWriter(reserved.grant.request));
    const idle = { unread: 0, wake: () => {}, cancelCountTimeout: () => {}, cancelKeepAlive: () => {} };
    const running: RunningStream = {
      exchange,
      client,
      share,
      resizeUnread: share.openPart(),
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
      // The client has left with the whole answer: only the count is missing.
      const isOnlyCountMissing =
        why === 'client_left' && running.end === undefined && meter.finished && !meter.isCounted;
      if (isOnlyCountMissing)
        running.cancelCountTimeout = deps.timer(LATE_USAGE_TIMEOUT, () => interrupt('client_left'));
      else interrupt(why);
    });
    // A lost reservation ends the stream: its rest may belong to other requests. A free reply needs no reservation.
    const onAccountClosed = target.limit.cutAt === undefined ? undefined : () => interrupt('cut');
    deps.ledger.trackStream(reserved.reservation, () => meter.settlement().cost, onAccountClosed);
    return running;
  }

  /** Writes the event that the client ignores, if nothing was written for `KEEP_ALIVE`. */
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
  // An error of this call is ignored: the request was stopped before.
  Promise.resolve(exchange.rest.return?.()).catch(() => {});
}

/** Counts usage that arrives after the end of the reply. */
export function countLateUsage(meter: Meter, pieces: ReadonlyArray<Piece>): void {
  for (const { usage, usageOnly } of pieces) if (usage !== undefined) meter.count({ ...EMPTY_PIECE, usage, usageOnly });
}
