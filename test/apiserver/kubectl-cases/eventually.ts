// When has something come true that takes a moment?
import { setTimeout as pause } from 'node:timers/promises';

/** Repeats the check until it no longer throws, for at most half a minute. */
export async function eventually(check: () => void | Promise<void>): Promise<void> {
  for (const end = Date.now() + 30_000; ; await pause(100)) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}
