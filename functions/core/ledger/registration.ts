// Registrations: live holds of an earlier epoch, as the rebuilt store is told of them.
import type { Booked } from '../ports/books.ts';
import type { Nano } from '../ports/money.ts';
import type { Registration } from '../ports/store.ts';
import { LEASE } from './acquire.ts';
import type { LiveHold } from './live-holds.ts';

/** The charge of the hold's expired lease, where PostgreSQL has one. */
export const chargedOf = (booked: ReadonlyMap<string, ReadonlyArray<Booked>>, id: string): Nano | undefined =>
  booked.get(id)?.find(({ kind }) => kind === 'expired')?.cost;

/** The registration of a live hold; a settled one holds its cost only. */
export const toRegistration = (
  { id, amount, outcome, at, known, note }: LiveHold,
  charged: Nano | undefined,
): Registration => ({
  ...{ id, amount: typeof outcome === 'bigint' ? outcome : amount, at, note, lease: LEASE },
  ...(known === undefined ? {} : { known: known() }),
  ...(charged === undefined ? {} : { charged }),
});
