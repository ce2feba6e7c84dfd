// Policies by hashes of keys: one statement by index, whatever the number of keys.
import type { KeyPolicy, KeyRecord, Policies, ScopePolicy } from '#core/ports/policy.ts';
import { GATEWAY_LIMIT, type Session } from './session.ts';

/**
 * A value that lives, of a claim that lives, in an open instance. A charged scope that was retired still counts, by its
 * last policy: until reconcile has rewritten the key's, neither refusing the key nor forgetting a budget would be
 * right.
 */
export const FIND = `
select v.hash, c.policy, c.secret, array_length(c.charges, 1) as charged,
  (select coalesce(json_agg(s.policy order by charge.place), '[]')
    from unnest(c.charges) with ordinality as charge (scope_id, place)
    join gateway_operator.claim s on s.scope_id = charge.scope_id and s.policy is not null) as scopes
from gateway_operator.key_value v
  join gateway_operator.claim c on c.scope_id = v.scope_id
  join gateway_operator.instance i on i.uid = c.instance_uid
where v.hash = any($1) and v.retired_at is null and (v.not_after is null or v.not_after > clock_timestamp())
  and c.instance_uid = $2 and c.kind = 'key' and c.retired_at is null and c.policy is not null and i.closed_at is null`;

interface FoundRow {
  readonly hash: string;
  readonly policy: KeyPolicy;
  readonly secret: string;
  readonly charged: number | null;
  readonly scopes: ReadonlyArray<ScopePolicy>;
}

export function createPolicies(session: Session, instanceUid: string): Policies {
  return {
    find: async (hashes) => {
      const rows = await session.query<FoundRow>(GATEWAY_LIMIT, FIND, [hashes, instanceUid]);
      // A scope without a policy cannot be charged, and a key that cannot be charged does not work.
      const working = rows.filter(({ charged, scopes }) => scopes.length === (charged ?? 0));
      return new Map(
        working.map(({ hash, policy, secret, scopes }): [string, KeyRecord] => [
          hash,
          { key: policy, scopes: [policy, ...scopes], secret },
        ]),
      );
    },
  };
}
