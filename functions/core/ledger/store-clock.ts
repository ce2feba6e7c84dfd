// What time is it at the store? Its clock is the only one of leases, deadlines and windows (LEDGER 4).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';

export interface StoreClock {
  /** Our clock, corrected by what the store last said. */
  now(): Millis;
  /** The store said `storeNow` in answer to what was sent at `sentAt` on our clock. */
  learn(storeNow: Millis, sentAt: Millis): void;
}

export function createStoreClock(clock: Clock): StoreClock {
  let ahead: Millis = 0;
  return {
    now: () => clock.now() + ahead,
    learn(storeNow, sentAt) {
      ahead = Math.round(storeNow - (sentAt + clock.now()) / 2);
    },
  };
}
