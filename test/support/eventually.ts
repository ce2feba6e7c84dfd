// Polling in tests until a condition is true. An assertion that becomes true is `expect.poll`.
import { setTimeout as pause } from 'node:timers/promises';

/** The timeout: something hangs. Not a measure of speed. */
const TIMEOUT = 30_000;
const MAX_PAUSE = 100;

/**
 * Polls until the condition is true, and returns the value; fails with the last value. A poll that throws fails
 * immediately.
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  is: (seen: T) => boolean,
  timeout = TIMEOUT,
): Promise<T> {
  const end = Date.now() + timeout;
  for (let wait = 5; ; wait = Math.min(2 * wait, MAX_PAUSE)) {
    const seen = await look();
    if (is(seen)) return seen;
    if (Date.now() > end) throw new Error(`condition not met after ${timeout} ms: ${toText(seen)}`);
    await pause(wait);
  }
}

const toText = (seen: unknown): string =>
  JSON.stringify(seen, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));
