// Registrations: what a store is told of a hold that was taken in an earlier epoch.
import type { Booked } from '../ports/books.ts';
import type { Nano } from '../ports/money.ts';
import type { Registration } from '../ports/store.ts';
import { LEASE } from './acquire.ts';
import type { LiveHold } from './live-holds.ts';

/** What the end of its lease was charged, where PostgreSQL has that. */
export const chargedOf = (booked: ReadonlyMap<string, ReadonlyArray<Booked>>, id: string): Nano | undefined =>
  booked.get(id)?.find(({ kind }) => kind === 'expired')?.cost;

/** One that has told its cost needs no more than that. */
export const toRegistration = (
  { id, amount, outcome, at, known, note }: LiveHold,
  charged: Nano | undefined,
): Registration => ({
  ...{ id, amount: typeof outcome === 'bigint' ? outcome : amount, at, note, lease: LEASE },
  ...(known === undefined ? {} : { known: known() }),
  ...(charged === undefined ? {} : { charged }),
});
