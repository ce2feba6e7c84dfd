// Look-ups of records that add to each key the budget and limits which the key policy of its namespace has for it.
import { withPerKey } from '#core/keys/per-key-budget.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { FoundRecord, Policies } from '#core/ports/policy.ts';

/** Finds the same records as `policies`, each with the budget and limits of `perKey`. */
export function withPerKeyBudgets(policies: Policies, hash: Hash): Policies {
  const add = (record: FoundRecord): FoundRecord => (record?.key === undefined ? record : withPerKey(record, hash));
  return {
    find: async (...asked) => {
      const found = await policies.find(...asked);
      return new Map([...found].map(([value, record]) => [value, add(record)]));
    },
  };
}
