// Liveness of the store: whether it is unresponsive, or a question only has many before it. On a busy machine one late answer says little (decision 0028).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { StoreClock } from './store-clock.ts';

export interface StoreLiveness {
  /** The question's outcome. Until it comes, the store owes an answer. */
  expect<T>(question: Promise<T>): Promise<T>;
  /** Since when the store owes answers and has given none to this process; undefined: it owes none. */
  unresponsiveSince(): Millis | undefined;
  /** When a question of that time last came nearer to its turn: what was sent before it was answered. Long ago where it was overtaken. */
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
