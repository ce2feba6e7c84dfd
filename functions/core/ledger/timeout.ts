// Timeouts of the ledger, and pauses between its attempts.
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';

/**
 * The deadline of a request after its arrival: it is refused if the store or the database does not reply, or live
 * reservations do not end.
 */
export const REQUEST_DEADLINE: Millis = 900;
/** The minimum time that remains for a request that has already waited for the database. */
export const MIN_WAIT: Millis = 500;
/** The timeout of the store and of PostgreSQL while no request waits. */
export const IDLE_TIMEOUT: Millis = 2000;

/** Pauses between attempts: each is twice the previous one. */
export const FIRST_PAUSE: Millis = 50;
/** The pause after this one: twice as long, at most a second. */
export const nextPause = (millis: Millis): Millis => Math.min(1000, 2 * millis);

export const pause = (timer: Timer, millis: Millis): Promise<void> =>
  new Promise((resolve) => void timer(millis, resolve));
