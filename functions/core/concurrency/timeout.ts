// Ends of waiting: after a time, or at a signal. The work itself continues.
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';

/**
 * The time after a timer fires in which replies that have already arrived are read: a process that was paused handles
 * its timers first.
 */
const TIMER_SKEW: Millis = 50;

/** The work's outcome, or an error that names `whom`. A late failure of the work is ignored. */
export function withTimeout<T>(timer: Timer, millis: Millis, whom: string, work: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let cancel = timer(millis - TIMER_SKEW, () => {
      cancel = timer(TIMER_SKEW, () => reject(new Error(`${whom} did not answer in ${millis} ms`)));
    });
    work.then(resolve, reject).finally(() => cancel());
  });
}

/** The work's outcome. Rejects with the signal's reason if the signal aborts first. */
export function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
