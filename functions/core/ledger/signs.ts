// Is the store silent, or is it only that a question has many before it? On a busy machine one late answer says little (decision 0028).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { StoreClock } from './store-clock.ts';

export interface Signs {
  /** The question's outcome. Until it comes, the store owes an answer. */
  expect<T>(question: Promise<T>): Promise<T>;
  /** Since when it owes answers and has given none to anybody in this process; undefined: it owes none. */
  silentSince(): Millis | undefined;
  /** When a question of that time last came nearer to its turn: what was sent before it was answered. Long ago where it was overtaken. */
  nearerAt(askedAt: Millis): Millis;
}

export interface SignsDependencies {
  readonly clock: Clock;
  readonly storeClock: StoreClock;
}

export function createSigns({ clock, storeClock: { last } }: SignsDependencies): Signs {
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
    silentSince: () => (owed === 0 ? undefined : Math.max(since, last.heardAt)),
    nearerAt: (askedAt) => (last.sentAt <= askedAt ? last.heardAt : Number.NEGATIVE_INFINITY),
  };
}
