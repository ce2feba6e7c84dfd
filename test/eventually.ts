// Waiting in a test for what comes about by itself. An `expect` that comes true by itself is `expect.poll`.
import { setTimeout as pause } from 'node:timers/promises';

/** Something hangs after this time. Not a measure of speed. */
const TIMEOUT = 30_000;
const LONGEST_PAUSE = 100;

/** Looks again until it is so, and answers what was seen; fails with what was last seen. A look that throws fails at once. */
export async function eventually<T>(
  look: () => T | Promise<T>,
  is: (seen: T) => boolean,
  timeout = TIMEOUT,
): Promise<T> {
  const end = Date.now() + timeout;
  for (let wait = 5; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
    const seen = await look();
    if (is(seen)) return seen;
    if (Date.now() > end) throw new Error(`still not so after ${timeout} ms: ${JSON.stringify(seen)}`);
    await pause(wait);
  }
}
