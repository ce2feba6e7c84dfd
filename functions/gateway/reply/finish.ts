// Ends of streams: the upstream is stopped or read to its end. The charge is durable before the last bytes are sent.
import type { Failure } from '#core/failure/failure.ts';
import { UpstreamError } from '#core/ports/upstream.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { ReplyEnd, RequestLog } from '../request/request-log.ts';
import { type Settle, UNSETTLED_FAILURE } from '../spend/settle.ts';
import { isRequestError } from '../wire/streams/provider-error.ts';
import { keepUnreadBytes, lengthOf } from './pass.ts';
import { countLateUsage, LATE_USAGE_TIMEOUT, type RunningStream, stopUpstream } from './running-stream.ts';

export function createFinish(
  deps: Pick<GatewayDependencies, 'ledger' | 'timer'>,
  settle: Pick<Settle, 'settleDurably'>,
) {
  return { finish, abandon };

  /** Ends the reply: stops the upstream, settles, then sends the last bytes. */
  async function finish(running: RunningStream, last: ReadonlyArray<Uint8Array>, log: RequestLog): Promise<void> {
    const { exchange, client, share, meter, end = 'broken', failure } = running;
    const { reserved, deadline } = exchange;
    const isWhole = end === 'complete' || end === 'failed';
    running.cancelCountTimeout();
    running.cancelKeepAlive();
    if (!isWhole) stopUpstream(running);
    else if (!meter.isCounted) await drain(running);
    const settlement = meter.settlement();
    const durable = await settle.settleDurably(reserved, settlement, log);
    deadline.close();
    exchange.reportEnd(end === 'broken' || (failure !== undefined && !isRequestError(failure)));
    if (failure !== undefined) log.addStreamError(failure);
    log.writeReply(200, durable ? end : 'broken');
    if (!durable) client.destroy([meter.toFailureEvent(UNSETTLED_FAILURE)]);
    else if (end === 'cut') client.end([...last, ...meter.toCutEvents(settlement.tokens)]);
    else if (isWhole) client.end(last);
    // A clean end of the body before its last event makes agents repeat the request for ever.
    else client.destroy([...last, ...failuresAt(end).map((failure) => meter.toFailureEvent(failure))]);
    if (isWhole && exchange.hasEnded?.() !== true) await drain(running);
    keepUnreadBytes(running, lengthOf(last));
    if (share.bytes > 0) await client.drained();
  }

  /** Ends a reply after our own error. Its cost so far is charged, unless it is already charged. */
  async function abandon(running: RunningStream): Promise<void> {
    const { exchange, meter } = running;
    running.cancelCountTimeout();
    running.cancelKeepAlive();
    stopUpstream(running);
    exchange.deadline.close();
    exchange.reportEnd(false);
    await deps.ledger.settle(exchange.reserved.reservation, meter.settlement());
  }

  /** Reads the rest after the end that the client has seen: the count may follow that end. */
  async function drain(running: RunningStream): Promise<void> {
    const { reader, rest } = running.exchange;
    const cancel = deps.timer(LATE_USAGE_TIMEOUT, () => stopUpstream(running));
    try {
      for (let next = await rest.next(); !next.done; next = await rest.next()) {
        countLateUsage(running.meter, reader.push(next.value));
      }
      countLateUsage(running.meter, reader.end());
    } catch (error) {
      // The reply is complete without the rest.
      if (!(error instanceof UpstreamError)) throw error;
    } finally {
      cancel();
    }
  }
}

/** The failure that the client sees; none for a client that has left. */
function failuresAt(end: ReplyEnd): ReadonlyArray<Failure> {
  if (end === 'broken') return [{ code: 'upstream_error' }];
  return end === 'timeout' ? [{ code: 'upstream_timeout' }] : [];
}
