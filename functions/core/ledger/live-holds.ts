// Live holds of a process: requests in flight, and those whose end the store does not have yet.
import type { Booked } from '../ports/books.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { RateLimit } from '../ports/rates.ts';
import type { HoldNote, HoldOperation, Registration } from '../ports/store.ts';

/** 60 s, renewed every 15 s (LEDGER 3). */
export const LEASE: Millis = 60_000;

export interface LiveHold {
  readonly id: string;
  readonly amount: Nano;
  readonly note: HoldNote;
  readonly counters: HoldOperation['counters'];
  readonly since: Millis;
  /** The store's clock when the hold was taken. */
  readonly at: Millis;
  /** The cost of the reply so far. The cost may fall when the provider's own count arrives. */
  known: (() => Nano) | undefined;
  /** Called when the lease may have ended. */
  lost: (() => void) | undefined;
  /** Tokens that rates reserve for the request; undefined without rates. */
  readonly tokens: number | undefined;
  /** The rate limit of its model entry, if any. */
  entry: RateLimit | undefined;
  /** The last `known` in the outbox. */
  written: Nano | undefined;
  /** The store has the settlement or release. The outbox record may not be written yet. */
  isSettledInStore: boolean;
  /** The settled cost; `released` where nothing was consumed; undefined while the request is in flight. */
  outcome: Nano | 'released' | undefined;
  /** The hold was registered again in a later epoch: another process may have booked the end of its lease meanwhile. */
  isReRegistered: boolean;
  /** The store knows that its lease had ended in an earlier epoch. */
  isExpiredBefore: boolean;
  /** Set while it settles or releases: resolves when that is durable. The hold is removed when the store has it too. */
  ending: Promise<void> | undefined;
}

export type LiveHolds = Map<string, LiveHold>;

/** The charge of the hold's expired lease, where PostgreSQL has one. */
export const chargedOf = (booked: ReadonlyMap<string, ReadonlyArray<Booked>>, id: string): Nano | undefined =>
  booked.get(id)?.find(({ kind }) => kind === 'expired')?.cost;

/** The registration of a live hold with a rebuilt store; a settled one holds its cost only. */
export const toRegistration = (
  { id, amount, outcome, at, known, note }: LiveHold,
  charged: Nano | undefined,
): Registration => ({
  ...{ id, amount: typeof outcome === 'bigint' ? outcome : amount, at, note, lease: LEASE },
  ...(known === undefined ? {} : { known: known() }),
  ...(charged === undefined ? {} : { charged }),
});
