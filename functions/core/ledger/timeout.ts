// Timeouts: an answer that does not come in so many milliseconds counts as none.
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';

/** A question was not answered in time. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/** For store and PostgreSQL, where no request waits. */
export const TIMEOUT: Millis = 2000;

/** After the timer goes off, answers that have arrived meanwhile are read for so long: a process that could do nothing for a while finds its timers first. */
export const TIMER_SKEW: Millis = 50;

/** The promise's outcome, or a `TimeoutError` that names `whom`. The promise itself goes on; a late failure of it is ignored. */
export function withTimeout<T>(timer: Timer, millis: Millis, whom: string, promise: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let cancel = timer(millis - TIMER_SKEW, () => {
      cancel = timer(TIMER_SKEW, () => reject(new TimeoutError(`${whom} kept silent for ${millis} ms`)));
    });
    promise.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error) => {
        cancel();
        reject(error);
      },
    );
  });
}
