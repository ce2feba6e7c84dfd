// The value under a name in a KV namespace, a short while old at most. The last good one is kept, as with a mounted
// file.
import type { Clock } from '#core/ports/clock.ts';

/** How long a value is trusted without looking: KV itself takes up to a minute to reach every place. */
const LOOK_AGAIN_AFTER = 5_000;

/** `parse` throws, or answers undefined, for what it cannot read. */
export function createMountedText<T>(clock: Clock, parse: (text: string) => T | undefined) {
  let text: string | undefined;
  let value: T | undefined;
  let at = Number.NEGATIVE_INFINITY;
  return {
    /** Where it cannot be read now, what was read before; undefined before the first good one. */
    async read(get: () => Promise<string | null>): Promise<T | undefined> {
      if (value !== undefined && clock.now() - at < LOOK_AGAIN_AFTER) return value;
      try {
        const found = await get();
        at = clock.now();
        if (found === null || found === text) return value;
        text = found;
        value = parse(found) ?? value;
      } catch {
        // Kept as it was.
      }
      return value;
    },
  };
}
