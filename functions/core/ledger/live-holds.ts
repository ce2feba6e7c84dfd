// Live holds of this process, and what is known of each.
import type { Millis, Nano } from '../ports/money.ts';
import type { RateLimit } from '../ports/rates.ts';
import type { HoldNote, HoldOperation } from '../ports/store.ts';

export interface LiveHold {
  readonly id: string;
  readonly amount: Nano;
  readonly note: HoldNote;
  readonly counters: HoldOperation['counters'];
  readonly since: Millis;
  /** When it was taken, on the store's clock. */
  readonly at: Millis;
  /** What the reply has cost so far; it may be less than a moment ago, when the provider has counted. */
  known: (() => Nano) | undefined;
  /** To be told that its lease may have ended. */
  lost: (() => void) | undefined;
  /** The tokens that rates reserve for it; undefined: it uses no rates. */
  readonly tokens: number | undefined;
  /** The entry's limit that it uses, if that has one. */
  entry: RateLimit | undefined;
  /** What the outbox has of `known`. */
  written: Nano | undefined;
  /** The store has its settlement or release: it is not under way any more, though its record may not be written yet. */
  isSettledInStore: boolean;
  /** What its settlement says that it cost; `released` where nothing was consumed; undefined while it is under way. */
  outcome: Nano | 'released' | undefined;
  /** Registered under a later epoch than it was taken in: another process may have booked the end of its lease meanwhile. */
  isReRegistered: boolean;
  /** The store knows it as one whose lease had ended, in an earlier epoch. */
  isExpiredBefore: boolean;
  /** Settling or releasing: resolves when that is durable. Gone from here when the store has it too. */
  ending: Promise<void> | undefined;
}

export type LiveHolds = Map<string, LiveHold>;
