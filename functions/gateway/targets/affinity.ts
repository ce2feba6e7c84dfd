// Affinity of conversations: all requests of one try the same entry first, told by its names alone, without any state.
import type { SnapshotEntry } from '#core/models/snapshot.ts';

interface Choice {
  readonly entry: Pick<SnapshotEntry, 'identifier' | 'weight' | 'priority'>;
}

/**
 * The targets in the order of this conversation. Over many conversations an entry comes first as often as its share of
 * the weights says.
 */
export function orderByConversation<T extends Choice>(
  targets: ReadonlyArray<T>,
  strategy: string,
  conversation: string,
): ReadonlyArray<T> {
  // A conversation's name may be as long as a body: it is hashed once, not for each target.
  const begun = fnv(`${conversation}\n`);
  const ranked = targets.map((target) => ({ target, rank: rankOf(target, begun) }));
  ranked.sort((a, b) => a.rank - b.rank);
  const order = ranked.map(({ target }) => target);
  return strategy === 'Priority' ? order.sort((a, b) => a.entry.priority - b.entry.priority) : order;
}

/** The mark of an entry on parts of its replies that no other can read. */
export function entryMarkOf({ identifier }: Choice['entry']): string {
  return mix(fnv(identifier)).toString(16).padStart(8, '0');
}

/**
 * Weighted rendezvous hashing: another entry that comes or goes moves only the conversations that it gains or had.
 * `conversation`: the hash of its name.
 */
function rankOf({ entry: { identifier, weight } }: Choice, conversation: number): number {
  return -Math.log((mix(fnv(identifier, conversation)) + 1) / 2 ** 32) / weight;
}

/** FNV-1a of the text, behind one that was hashed before. */
function fnv(text: string, before = 0x811c9dc5): number {
  let bits = before;
  for (let at = 0; at < text.length; at += 1) bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193);
  return bits;
}

/** The 32 bits of a hash, evenly spread, as MurmurHash3 does at its end. */
function mix(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
