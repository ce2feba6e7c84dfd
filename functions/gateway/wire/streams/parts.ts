// Parts of a stream that a provider numbers: answers, blocks, items.
import { UpstreamBroke } from '#core/ports/serving.ts';

/** The maximum number of parts: what a reader keeps of each lasts as long as the stream. No provider sends as many. */
export const MAX_PARTS = 4096;

/** Keeps a value of a part. Throws `UpstreamBroke` where the stream has too many parts. */
export function setPart<T>(parts: Map<unknown, T>, key: unknown, value: T): void {
  if (parts.size >= MAX_PARTS && !parts.has(key))
    throw new UpstreamBroke('broken', `a stream of the upstream has more than ${MAX_PARTS} parts`);
  parts.set(key, value);
}
