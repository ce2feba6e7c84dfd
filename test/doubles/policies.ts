// What do policies look like in a test? A function between the hash of one key and its record.
import type { FoundRecord, KeyRecord, Policies } from '#core/ports/policy.ts';

type OneRecord = KeyRecord | undefined;

export function policiesOf(find: (hash: string) => OneRecord | Promise<OneRecord>): Policies {
  const read = async (hash: string, maxSize: number): Promise<readonly [string, FoundRecord]> => {
    const record = await find(hash);
    return [hash, record !== undefined && record.size > maxSize ? { size: record.size } : record];
  };
  return {
    find: async (hashes, maxSize = Number.POSITIVE_INFINITY) =>
      new Map(await Promise.all(hashes.map((hash) => read(hash, maxSize)))),
  };
}

/** The size of a record with these policies. */
export const sizeOf = (scopes: KeyRecord['scopes']): number =>
  scopes.reduce((sum, scope) => sum + new TextEncoder().encode(JSON.stringify(scope)).length, 0);

/** The record of one key. */
export async function recordOf(policies: Policies, hash: string): Promise<OneRecord> {
  const found = (await policies.find([hash])).get(hash);
  if (found !== undefined && found.key === undefined) throw new Error(`the record of ${hash} was not read`);
  return found;
}
