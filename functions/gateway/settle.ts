// Settlements: what a request cost is durable before the last byte of its reply goes out, and every hold ends, whatever is thrown.
import type { Failure } from '#core/failure.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Settlement } from '#core/ports/ledger.ts';
import { reasonOf } from '#core/reason.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { GatewayDeps } from './deps.ts';
import type { Exchange, PlainExchange } from './exchange.ts';
import { settlementOfHold, settlementOfReply, withLost } from './meter.ts';
import type { Line } from './record.ts';
import { type Reservation, release } from './reserve.ts';
import { answerHeaders } from './respond.ts';
import type { NoExchange } from './upstream.ts';

/** A reply that cannot be settled is not given away. */
export const UNSETTLED: Failure = { code: 'ledger_unavailable', why: 'the settlement could not be made durable' };

export interface Settle {
  /** Runs the rest of a request. Where that throws, the hold is charged whole if a provider was called, else released; what has settled before stays as it is. */
  owned(reservation: Reservation, work: () => Promise<void>): Promise<void>;
  /** Settles, and says whether that is durable. A hold that cannot be settled is charged when its lease ends. */
  durably(reservation: Reservation, settlement: Settlement, line: Line): Promise<boolean>;
  /** A plain reply goes out when it has settled. */
  reply(exchange: PlainExchange, client: HttpExchange, line: Line): Promise<Result<void, Failure>>;
  /** Nobody was called: the hold is released. */
  release(reservation: Reservation, failure: Failure): Promise<Failure>;
  /** Nothing came of it: the hold is released, or charged for the prompts that providers took. */
  withdraw(reservation: Reservation, nothing: NoExchange, line: Line): Promise<Failure>;
}

export function createSettle(deps: Pick<GatewayDeps, 'ledger' | 'log'>): Settle {
  return { owned, durably, reply, release: releaseUncalled, withdraw };

  async function owned(reservation: Reservation, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!reservation.isCalled) await release(reservation, deps, { called: false });
      else await deps.ledger.settle(reservation.hold, settlementOfHold(reservation));
      throw error;
    }
  }

  async function durably(reservation: Reservation, settlement: Settlement, line: Line): Promise<boolean> {
    try {
      await deps.ledger.settle(reservation.hold, settlement);
    } catch (error) {
      const { requestId } = line.names;
      deps.log.error('a reply could not be settled', { requestId, why: reasonOf(error) });
      return false;
    }
    line.settled(reservation.hold, settlement);
    return true;
  }

  async function reply(exchange: PlainExchange, client: HttpExchange, line: Line): Promise<Result<void, Failure>> {
    const { reservation, target, lost } = exchange;
    const settlement = withLost(reservation, settlementOfReply(reservation, target, exchange.reply), lost);
    if (!(await durably(reservation, settlement, line))) return err(UNSETTLED);
    line.answered(200, 'complete');
    const { body } = exchange.reply;
    client.begin(200, headersOf(exchange, line));
    client.end(typeof body === 'string' ? body : [body]);
    return ok(undefined);
  }

  async function releaseUncalled(reservation: Reservation, failure: Failure): Promise<Failure> {
    await release(reservation, deps, { called: false });
    return failure;
  }

  async function withdraw(reservation: Reservation, nothing: NoExchange, line: Line): Promise<Failure> {
    if (nothing.lost === undefined) await release(reservation, deps, nothing);
    else await durably(reservation, nothing.lost, line);
    return nothing.failure;
  }
}

export function headersOf({ headers, target, reservation }: Exchange, { names }: Line): Record<string, string> {
  const { clamped, send } = target.limit;
  return answerHeaders({
    upstream: headers,
    names,
    rates: reservation.hold.rates,
    clampedTo: clamped ? send : undefined,
  });
}
