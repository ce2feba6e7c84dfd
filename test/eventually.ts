// How does a test wait for what comes about by itself?
import { setTimeout as pause } from 'node:timers/promises';

/** It says that something hangs, not how fast it is. */
const PATIENCE = 30_000;

/** Asks again until it is so, or fails with what was last seen. */
export async function eventually<T>(look: () => Promise<T>, is: (seen: T) => boolean, patience = PATIENCE): Promise<T> {
  for (const until = Date.now() + patience; ; await pause(100)) {
    const seen = await look();
    if (is(seen)) return seen;
    if (Date.now() > until) throw new Error(`still not so after ${patience} ms: ${JSON.stringify(seen)}`);
  }
}
