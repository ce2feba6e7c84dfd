// Parts of a stream that a provider numbers: answers, blocks, items.
import { member, textOf } from '#core/json/json.ts';
import { copyOf } from '#core/json/text.ts';
import { UpstreamError } from '#core/ports/upstream.ts';

/**
 * The maximum number of parts: a reader keeps something of each part until the stream ends. No provider sends as many.
 */
export const MAX_PARTS = 4096;

/** The maximum length of the id of a part. */
const MAX_ID = 256;

/**
 * Sets the value of a part, by the provider's index or id. Throws `UpstreamError` if the stream has too many parts, or
 * the key is neither.
 */
export function setPart<T>(parts: Map<unknown, T>, key: unknown, value: T): void {
  if (parts.size >= MAX_PARTS && !parts.has(key))
    throw new UpstreamError('broken', `a stream of the upstream has more than ${MAX_PARTS} parts`);
  const isKey = key === undefined || typeof key === 'number' || (typeof key === 'string' && key.length <= MAX_ID);
  if (!isKey) throw new UpstreamError('broken', 'a part of the upstream has neither an index nor an id');
  parts.set(key, value);
}

/** The id of a message, a call or a model, cut to its maximum length: it may be written into every chunk. */
export function idIn(holder: unknown, name: string): string | undefined {
  const id = textOf(member(holder, name));
  return id === undefined ? undefined : copyOf(id.slice(0, MAX_ID));
}
