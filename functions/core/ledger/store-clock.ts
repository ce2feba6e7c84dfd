// The store's clock, the only one of leases, deadlines and windows, and when the store last answered (LEDGER 5).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { LastAnswer } from './deps.ts';

export interface StoreClock {
  /** Our clock, corrected by the store's last answer. */
  now(): Millis;
  /** Records the store's answer `storeNow` to a call sent at `sentAt` on our clock. */
  learn(storeNow: Millis, sentAt: Millis): void;
  /** The last answer: when it arrived, and when its call was sent, on our clock. */
  readonly last: Readonly<LastAnswer>;
}

export const noAnswer = (): LastAnswer => ({ heardAt: Number.NEGATIVE_INFINITY, sentAt: Number.NEGATIVE_INFINITY });

/** Keeps `last` up to date. */
export function createStoreClock(clock: Clock, last: LastAnswer = noAnswer()): StoreClock {
  let ahead: Millis = 0;
  return {
    now: () => clock.now() + ahead,
    learn(storeNow, sentAt) {
      last.heardAt = clock.now();
      last.sentAt = sentAt;
      ahead = Math.round(storeNow - (sentAt + last.heardAt) / 2);
    },
    last,
  };
}
