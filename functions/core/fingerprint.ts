// What is a short name for exactly this set of things?

const PRIME = 0x100000001b3n;
const OFFSET = 0xcbf29ce484222325n;
const MASK = 0xffff_ffff_ffff_ffffn;

/** Ten hexadecimal digits (of FNV-1a, 64 bits) that do not depend on the order. Names things for people; proves nothing to an adversary. */
export function fingerprint(things: Iterable<string>): string {
  let hash = OFFSET;
  for (const byte of new TextEncoder().encode([...things].sort().join('\n')))
    hash = ((hash ^ BigInt(byte)) * PRIME) & MASK;
  return hash.toString(16).padStart(16, '0').slice(0, 10);
}
