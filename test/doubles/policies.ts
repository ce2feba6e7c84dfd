// What do policies look like in a test? A function between the hash of one key and its record.
import type { KeyRecord, Policies } from '#core/ports/policy.ts';

type FoundRecord = KeyRecord | undefined;

export function policiesOf(find: (hash: string) => FoundRecord | Promise<FoundRecord>): Policies {
  return {
    find: async (hashes) => {
      const found = new Map<string, KeyRecord>();
      for (const hash of hashes) {
        const record = await find(hash);
        if (record !== undefined) found.set(hash, record);
      }
      return found;
    },
  };
}

/** The record of one key. */
export async function recordOf(policies: Policies, hash: string): Promise<KeyRecord | undefined> {
  return (await policies.find([hash])).get(hash);
}
