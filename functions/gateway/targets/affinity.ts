// Affinity of conversations: all requests of a conversation try the same model entry first. Their names decide,
// without any state.
import type { SnapshotEntry } from '#core/models/snapshot.ts';

/** The part of a target by which targets are ordered. */
export interface WeightedModelEntry {
  readonly entry: Pick<SnapshotEntry, 'identifier' | 'weight' | 'priority'>;
}

/**
 * The targets in the order of this conversation. Over many conversations, each model entry comes first according to its
 * share of the weights.
 */
export function orderByConversation<T extends WeightedModelEntry>(
  targets: ReadonlyArray<T>,
  strategy: string,
  conversation: string,
): ReadonlyArray<T> {
  // A conversation's name may be as long as a body, so it is hashed only once.
  const hash = fnv(`${conversation}\n`);
  const ranked = targets.map((target) => ({ target, rank: rankOf(target, hash) }));
  ranked.sort((a, b) => a.rank - b.rank);
  const order = ranked.map(({ target }) => target);
  return strategy === 'Priority' ? order.sort((a, b) => a.entry.priority - b.entry.priority) : order;
}

/** The mark of a model entry, which is added to parts of its replies that no other model entry can read. */
export function modelEntryMarkOf({ identifier }: WeightedModelEntry['entry']): string {
  return mix(fnv(identifier)).toString(16).padStart(8, '0');
}

/**
 * Weighted rendezvous hashing: a new or removed model entry moves only its own conversations. `conversation`: the hash
 * of the name.
 */
function rankOf({ entry: { identifier, weight } }: WeightedModelEntry, conversation: number): number {
  return -Math.log((mix(fnv(identifier, conversation)) + 1) / 2 ** 32) / weight;
}

/** FNV-1a of a text. `before`: the hash of the text before it. */
function fnv(text: string, before = 0x811c9dc5): number {
  let bits = before;
  for (let at = 0; at < text.length; at += 1) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193);
  return bits;
}

/** The 32 bits of a hash, spread evenly by the last step of MurmurHash3. */
function mix(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
