// Replies to clients. A plain reply is sent after its settlement; a stream is sent in pieces, and settled before its
// last bytes.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { LONG_TEXT } from '#core/json/json-limits.ts';
import type { RemainingLimits, RequestLimits } from '../caller/remaining-limits.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { ClientContext, RequestLog } from '../request/request-log.ts';
import { settlementOfReply } from '../spend/charge.ts';
import { type ReservedGrant, requestLimitsOf } from '../spend/reserve.ts';
import { type Settle, UNSETTLED_FAILURE } from '../spend/settle.ts';
import type { Exchange, PlainExchange, StreamExchange } from '../upstream/upstream.ts';
import { createFinish } from './finish.ts';
import { passPieces } from './pass.ts';
import { replyHeaders } from './respond.ts';
import { createOpenStream } from './running-stream.ts';

const ESTIMATED = { 'x-gateway-estimated': 'true' };

export function createReply(
  deps: Pick<GatewayDependencies, 'ledger' | 'timer' | 'clock'>,
  settle: Pick<Settle, 'settleDurably'>,
  remaining: (limits: RequestLimits) => RemainingLimits | Promise<RemainingLimits>,
) {
  const open = createOpenStream(deps);
  const { finish, abandon } = createFinish(deps, settle);

  return { reply, estimate };

  /** Replies to the client. `err`: nothing was sent, and the client gets this failure. */
  function reply(exchange: Exchange, clientContext: ClientContext): Promise<Result<void, Failure>> {
    return exchange.type === 'stream' ? stream(exchange, clientContext) : plain(exchange, clientContext);
  }

  /** Replies to a free request without a provider, with a count for example. */
  async function estimate(reserved: ReservedGrant, { client, log }: ClientContext, body: object): Promise<void> {
    log.writeReply(200, 'complete');
    const known = { ...log.context, ...(await remaining(requestLimitsOf(reserved))) };
    client.begin(200, { ...replyHeaders({}, known, undefined), ...ESTIMATED });
    client.end(JSON.stringify(body));
  }

  async function plain(exchange: PlainExchange, { client, log }: ClientContext): Promise<Result<void, Failure>> {
    const { reserved, reply } = exchange;
    const settlement = settlementOfReply(exchange, reply);
    if (!(await settle.settleDurably(reserved, settlement, log))) return err(UNSETTLED_FAILURE);
    log.writeReply(200, 'complete');
    const limits = remaining(requestLimitsOf(reserved));
    client.begin(200, headersOf(exchange, log, limits instanceof Promise ? await limits : limits));
    client.end(typeof reply.body === 'string' ? reply.body : [reply.body]);
    // A long reply keeps its memory until its client has taken it.
    if (reply.body.length > LONG_TEXT) await client.drained();
    return ok(undefined);
  }

  async function stream(exchange: StreamExchange, clientContext: ClientContext): Promise<Result<void, Failure>> {
    const { client, log } = clientContext;
    const running = open(exchange, clientContext);
    try {
      const limits = await remaining(requestLimitsOf(exchange.reserved));
      client.begin(200, { ...headersOf(exchange, log, limits), 'cache-control': 'no-cache' });
      log.countFirstByte();
      const last = await passPieces(running, deps.clock);
      await finish(running, last, log);
      return ok(undefined);
    } catch (error) {
      await abandon(running);
      throw error;
    }
  }
}

function headersOf({ headers, target }: Exchange, { context }: RequestLog, { rates, budget }: RemainingLimits) {
  const { clamped, sentLimit } = target.limit;
  return replyHeaders(headers, { ...context, rates, budget }, clamped ? sentLimit : undefined);
}
