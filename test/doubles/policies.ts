// What do policies look like in a test? A function between the hash of one key and its record.
import type { KeyRecord, Policies } from '#core/ports/policy.ts';

type FoundRecord = KeyRecord | undefined;

export function policiesOf(find: (hash: string) => FoundRecord | Promise<FoundRecord>): Policies {
  return {
    find: async (hashes) => new Map(await Promise.all(hashes.map(async (hash) => [hash, await find(hash)] as const))),
  };
}

/** The record of one key. */
export async function recordOf(policies: Policies, hash: string): Promise<KeyRecord | undefined> {
  return (await policies.find([hash])).get(hash);
}
