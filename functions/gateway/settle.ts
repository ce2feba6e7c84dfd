// What did it cost, and what does the client see of it? The last byte goes out only after the settlement is durable.
import type { Failure } from '#core/failure.ts';
import { err, ok, type Result } from '#core/result.ts';
import { createBook, UNBOOKED } from './book.ts';
import type { GatewayDeps, Visit } from './deps.ts';
import type { Exchange } from './exchange.ts';
import { settlementOfHold, settlementOfReply, withLost } from './meter.ts';
import type { Line } from './record.ts';
import { createRelay } from './relay.ts';
import { type Reservation, release } from './reserve.ts';
import { answerHeaders } from './respond.ts';
import type { NoExchange } from './upstream.ts';

export interface Settle {
  /** The answer to the client. A stream settles when it ends; anything else has settled when this resolves. */
  answer(exchange: Exchange, line: Line, visit: Visit): Promise<Result<Response, Failure>>;
  /** Nobody was called: the hold is released. */
  release(reservation: Reservation, failure: Failure): Promise<Failure>;
  /** Nothing came of it: the hold is released, or charged for the prompts that providers took. */
  withdraw(reservation: Reservation, nothing: NoExchange, line: Line): Promise<Failure>;
  /** A step has thrown: the hold is charged whole where a provider was called, else released. What has settled before stays as it is. */
  abandon(reservation: Reservation): Promise<void>;
}

export function createSettle(deps: Pick<GatewayDeps, 'ledger' | 'timer' | 'log'>): Settle {
  const book = createBook(deps);
  const relay = createRelay(deps, book);
  return {
    answer: async (exchange, line, visit) => {
      const { reservation, target } = exchange;
      const headers = answerHeaders(exchange.headers, target, line.names, reservation.hold.rates);
      if (exchange.type === 'stream') {
        return ok(relay({ exchange, line, headers: { ...headers, 'cache-control': 'no-cache' } }, visit));
      }
      const settlement = withLost(reservation, settlementOfReply(reservation, target, exchange.reply), exchange.lost);
      if (!(await book(reservation, settlement, line))) return err(UNBOOKED);
      line.answered(200, 'complete');
      return ok(new Response(exchange.reply.body, { headers }));
    },
    release: async (reservation, failure) => {
      await release(reservation, deps, { called: false });
      return failure;
    },
    withdraw: async (reservation, nothing, line) => {
      const { lost } = nothing;
      if (lost !== undefined) await book(reservation, lost, line);
      else await release(reservation, deps, nothing);
      return nothing.failure;
    },
    abandon: async (reservation) => {
      if (!reservation.isCalled) return release(reservation, deps, { called: false });
      await deps.ledger.settle(reservation.hold, settlementOfHold(reservation));
    },
  };
}
