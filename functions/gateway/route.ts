// Which upstream? The entries that can be reached and have room, in the order in which they are tried, each with how much it may say.
import type { Failure } from '#core/failure.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Rank, Ranking, Reachable } from './rank.ts';
import type { Line } from './record.ts';
import { outputLimit, type Reservation } from './reserve.ts';
import type { Recipient } from './wire/dialect.ts';

const made: unique symbol = Symbol('Targets');

export interface Target extends Reachable, Recipient {}

/** At least one target, in order. Only `route` makes them. */
export interface Targets {
  readonly [made]: true;
  readonly reservation: Reservation;
  /** The one whose room was taken with the hold. */
  readonly first: Target;
  readonly others: ReadonlyArray<Target>;
}

/** Why an entry is passed over. */
export const FULL = 'full: its requests or tokens per minute are used up';

export type Route = (reservation: Reservation, line: Line) => Result<Targets, Failure>;

export function createRoute(rank: Rank): Route {
  return function route(reservation, line) {
    const { order } = reservation.ranking ?? fresh(reservation, line);
    const taken = reservation.hold.entry ?? 0;
    for (const { entry } of order.slice(0, taken)) line.skipped(entry.identifier, FULL);
    const [first, ...others] = order.slice(taken).map((reachable) => toTarget(reservation, reachable));
    return first === undefined
      ? err({ code: 'no_healthy_target', model: reservation.grant.chat.model })
      : ok({ [made]: true, reservation, first, others });
  };

  /** Nothing is limited: who is best is asked as late as can be. */
  function fresh({ grant }: Reservation, line: Line): Ranking {
    const ranking = rank(grant, line);
    ranking.settled();
    return ranking;
  }
}

/** Member by member: a spread of as many takes ten times as long, and each request makes one. */
function toTarget(reservation: Reservation, reachable: Reachable): Target {
  const { entry, price, provider, dialect, base, credentials } = reachable;
  const limit = outputLimit(reservation, reachable);
  return { entry, price, provider, dialect, base, credentials, limit };
}
