// Timeouts of promises.
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';

/** An answer did not arrive in time. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/** The timeout of store and PostgreSQL where no request waits. */
export const TIMEOUT: Millis = 2000;

/** After the timer fires, answers that have already arrived are read for this long: a process that was paused finds its timers first. */
export const TIMER_SKEW: Millis = 50;

/** The promise's outcome, or a `TimeoutError` that names `whom`. The promise itself continues; its late failure is ignored. */
export function withTimeout<T>(timer: Timer, millis: Millis, whom: string, promise: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let cancel = timer(millis - TIMER_SKEW, () => {
      cancel = timer(TIMER_SKEW, () => reject(new TimeoutError(`${whom} did not answer in ${millis} ms`)));
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
