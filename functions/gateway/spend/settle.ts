// Settlements: the charge of a request is durable before the last byte of its reply, and every reservation ends, even
// after an error.

import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Failure } from '#core/failure/failure.ts';
import { NO_TOKENS } from '#core/money/usage.ts';
import type { Reservation, Settlement } from '#core/ports/ledger.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { ReservedGrant } from './reserve.ts';

/** The failure of a reply that cannot be settled: the client does not get the reply for free. */
export const UNSETTLED_FAILURE: Failure = { code: 'ledger_unavailable', why: 'the settlement is not durable' };

/** A reservation, and its calls of providers. */
interface ChargedCalls {
  readonly reserved: ReservedGrant;
  /** A provider was called: then the reservation is charged even after an error. */
  readonly isCalled: boolean;
  /** The charge of failed calls that providers took. */
  readonly failedCharge: Settlement | undefined;
}

/** The log line of a request, as far as its settlement is written there. */
interface SettlementLog {
  readonly context: { readonly requestId: string };
  addSettlement(reservation: Reservation, settlement: Settlement): void;
}

export type Settle = ReturnType<typeof createSettle>;

export function createSettle({ ledger, log: out }: Pick<GatewayDependencies, 'ledger' | 'log'>) {
  return { settleDurably, settleUnanswered, settleAfterError };

  /**
   * Settles a reservation, and returns whether the settlement is durable. If it is not, the client gets no complete
   * reply (a plain request fails with 503, a stream ends with a failure event), but the request is charged, since the
   * provider bills it: by this process later, or by another process that closes the account.
   */
  async function settleDurably(
    { reservation }: ReservedGrant,
    settlement: Settlement,
    log: SettlementLog,
  ): Promise<boolean> {
    try {
      await ledger.settle(reservation, settlement);
    } catch (error) {
      out.error('cannot settle a reply', { requestId: log.context.requestId, why: reasonAndCausesOf(error) });
      return false;
    }
    log.addSettlement(reservation, settlement);
    return true;
  }

  /**
   * Ends a request without an answer. Prompts that providers took are charged; if there are none, the reservation is
   * released.
   */
  async function settleUnanswered(calls: ChargedCalls, log: SettlementLog): Promise<void> {
    if (calls.failedCharge === undefined) await release(calls);
    else await settleDurably(calls.reserved, calls.failedCharge, log);
  }

  /**
   * Ends a request after our own error. The whole reservation is charged if a provider was called, else released. An
   * earlier settlement stays.
   */
  function settleAfterError(calls: ChargedCalls): Promise<void> {
    const { reserved, isCalled } = calls;
    return isCalled ? ledger.settle(reserved.reservation, settlementOfReservation(reserved)) : release(calls);
  }

  /** Releases an unused reservation. */
  function release({ reserved, isCalled }: ChargedCalls): Promise<void> {
    return ledger.release(reserved.reservation, { called: isCalled });
  }
}

/** Settlements of free requests. */
export const FREE_SETTLE: Settle = {
  settleDurably: async () => true,
  settleUnanswered: async () => {},
  settleAfterError: async () => {},
};

/** The charge of a call whose outcome is unknown. */
function settlementOfReservation({ grant, reservation }: ReservedGrant): Settlement {
  const { model } = grant.request;
  const identifier = grant.candidates[0]?.entry.identifier ?? '';
  return { cost: reservation.amount, tokens: NO_TOKENS, model, identifier, estimated: true };
}
