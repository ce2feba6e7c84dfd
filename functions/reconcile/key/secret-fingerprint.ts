// The fingerprint of a Secret's data, which shows whether the data is as desired without keeping the data.
import { toUtf8 } from '#core/json/bytes.ts';

/**
 * The fingerprint is the same for the same keys and values in any order: their number, and the sum of a 32-bit hash
 * (FNV-1a) of each. The names of a Secret are neither sorted nor kept, because a Secret may have 1,000. The
 * fingerprint is no proof: whoever creates other data with the same fingerprint only prevents a repair.
 */
export function fingerprintOf(data: Readonly<Record<string, string>>, toBytes: (value: string) => Uint8Array): string {
  let [count, sum] = [0, 0];
  for (const name in data) {
    count += 1;
    sum = (sum + hashOf(toBytes(data[name] ?? ''), hashOf(toUtf8(`${name}\n`)))) >>> 0;
  }
  return `${count} ${sum}`;
}

function hashOf(bytes: Uint8Array, before = 0x811c9dc5): number {
  let hash = before;
  for (let at = 0; at < bytes.length; at += 1) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return hash;
}
