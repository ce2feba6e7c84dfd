// Is the charge durable? Only then does a reply's last byte go out (LEDGER 6).
import type { Failure } from '#core/failure.ts';
import type { Settlement } from '#core/ports/ledger.ts';
import { reasonOf } from '#core/reason.ts';
import type { GatewayDeps } from './deps.ts';
import type { Line } from './record.ts';
import type { Reservation } from './reserve.ts';

/** Settles, and says whether it is durable. A hold that cannot be settled is charged when its lease ends. */
export type Book = (reservation: Reservation, settlement: Settlement, line: Line) => Promise<boolean>;

/** A reply that cannot be booked is not given away. */
export const UNBOOKED: Failure = { code: 'ledger_unavailable', why: 'the settlement could not be made durable' };

export function createBook({ ledger, log }: Pick<GatewayDeps, 'ledger' | 'log'>): Book {
  return async function book(reservation, settlement, line) {
    line.step('settle');
    try {
      await ledger.settle(reservation.hold, settlement);
    } catch (error) {
      log.error('a reply could not be settled', {
        requestId: line.names.requestId,
        hold: reservation.hold.id,
        why: reasonOf(error),
      });
      return false;
    }
    line.settled(reservation.hold, settlement);
    return true;
  };
}
