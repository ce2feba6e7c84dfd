// Ends of streams: the upstream is stopped or read to its end, and the charge is durable before the last bytes go out.
import type { Failure } from '#core/failure/failure.ts';
import { UpstreamBroke } from '#core/ports/serving.ts';
import type { GatewayDeps } from '../deps.ts';
import type { ReplyEnd, RequestLog } from '../request/request-log.ts';
import { type Settle, UNSETTLED } from '../spend/settle.ts';
import { isOfRequest } from '../wire/streams/provider-error.ts';
import { keepRoom, lengthOf } from './pass.ts';
import { countLate, LINGER, type RunningStream, stop } from './running-stream.ts';

export function createFinish(deps: Pick<GatewayDeps, 'ledger' | 'timer'>, settle: Pick<Settle, 'durably'>) {
  return { finish, abandon };

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

/** The failure that the client sees; none if it has left. */
function failuresAt(end: ReplyEnd): ReadonlyArray<Failure> {
  if (end === 'broken') return [{ code: 'upstream_error' }];
  return end === 'timeout' ? [{ code: 'upstream_timeout' }] : [];
}
