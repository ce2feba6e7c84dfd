// Liveness of the store: unresponsive, or only busy with earlier questions. On a busy machine one late answer proves little (decision 0028).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { StoreClock } from './store-clock.ts';

export interface StoreLiveness {
  /** The question's outcome. Until it arrives, the store owes an answer. */
  expect<T>(question: Promise<T>): Promise<T>;
  /** Since when the store has owed answers and given none to this process; undefined: it owes none. */
  unresponsiveSince(): Millis | undefined;
  /** When the store last answered a question sent no later than `askedAt`. Minus infinity where later ones were answered first. */
  lastProgressAt(askedAt: Millis): Millis;
}

export interface StoreLivenessDependencies {
  readonly clock: Clock;
  readonly storeClock: StoreClock;
}

export function createStoreLiveness({ clock, storeClock: { last } }: StoreLivenessDependencies): StoreLiveness {
  let owed = 0;
  let since: Millis = 0;
  return {
    async expect(question) {
      if (owed === 0) since = clock.now();
      owed += 1;
      try {
        return await question;
      } finally {
        owed -= 1;
      }
    },
    unresponsiveSince: () => (owed === 0 ? undefined : Math.max(since, last.heardAt)),
    lastProgressAt: (askedAt) => (last.sentAt <= askedAt ? last.heardAt : Number.NEGATIVE_INFINITY),
  };
}
