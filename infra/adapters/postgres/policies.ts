// Policies by the hash of a key: one prepared statement by index, whatever the number of keys.
import type { KeyPolicy, Policies, ScopePolicy } from '#core/ports/policy.ts';
import { GATEWAY_LIMIT, type Session } from './session.ts';

/**
 * A value that lives, of a claim that lives, in an open instance. A charged scope that was retired still counts, by its
 * last policy: until reconcile has rewritten the key's, neither refusing the key nor forgetting a budget would be right.
 */
export const FIND = {
  name: 'gateway-operator-find',
  text: `
select c.policy, c.secret, array_length(c.charges, 1) as charged,
  array(select s.policy from unnest(c.charges) with ordinality as charge (scope_id, place)
    join gateway_operator.claim s on s.scope_id = charge.scope_id and s.policy is not null
    order by charge.place) as scopes
from gateway_operator.key_value v
  join gateway_operator.claim c on c.scope_id = v.scope_id
  join gateway_operator.instance i on i.uid = c.instance_uid
where v.hash = $1 and v.retired_at is null and (v.not_after is null or v.not_after > clock_timestamp())
  and c.instance_uid = $2 and c.kind = 'key' and c.retired_at is null and c.policy is not null and i.closed_at is null`,
};

interface FoundRow {
  readonly policy: KeyPolicy;
  readonly secret: string;
  readonly charged: number | null;
  readonly scopes: ReadonlyArray<ScopePolicy>;
}

export function createPolicies(session: Session, instanceUid: string): Policies {
  return {
    find: async (hash) => {
      const [row] = await session.query<FoundRow>(GATEWAY_LIMIT, FIND, [hash, instanceUid]);
      if (row === undefined) return undefined;
      const { policy, secret, charged, scopes } = row;
      // A scope without a policy cannot be charged, and a key that cannot be charged does not work.
      return scopes.length === (charged ?? 0) ? { key: policy, scopes: [policy, ...scopes], secret } : undefined;
    },
  };
}
