// Live holds of a process: requests in flight, and those whose end the store does not have yet.
import type { Millis, Nano } from '../ports/money.ts';
import type { RateLimit } from '../ports/rates.ts';
import type { HoldNote, HoldOperation } from '../ports/store.ts';

export interface LiveHold {
  readonly id: string;
  readonly amount: Nano;
  readonly note: HoldNote;
  readonly counters: HoldOperation['counters'];
  readonly since: Millis;
  /** The store's clock when the hold was taken. */
  readonly at: Millis;
  /** The cost of the reply so far. It may fall, when the provider's own count arrives. */
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
