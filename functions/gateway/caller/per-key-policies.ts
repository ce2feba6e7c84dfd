// Policies with the budget and limits that the key policy of a namespace has for each of its keys.
import { withPerKey } from '#core/keys/per-key-budget.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { FoundRecord, Policies } from '#core/ports/policy.ts';

/** Finds records as these policies do, each with the budget and limits of `perKey`. */
export function withPerKeyPolicies(policies: Policies, hash: Hash): Policies {
  const add = (record: FoundRecord): FoundRecord => (record?.key === undefined ? record : withPerKey(record, hash));
  return {
    find: async (...asked) => {
      const found = await policies.find(...asked);
      return new Map([...found].map(([value, record]) => [value, add(record)]));
    },
  };
}
