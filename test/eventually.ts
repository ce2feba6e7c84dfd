// How does a test wait for what comes about by itself?
import { setTimeout as pause } from 'node:timers/promises';

/** Asks again until it is so, or fails with what was last seen. */
export async function eventually<T>(look: () => Promise<T>, is: (seen: T) => boolean, patience = 15_000): Promise<T> {
  for (const until = Date.now() + patience; ; await pause(100)) {
    const seen = await look();
    if (is(seen)) return seen;
    if (Date.now() > until) throw new Error(`still not so after ${patience} ms: ${JSON.stringify(seen)}`);
  }
}
