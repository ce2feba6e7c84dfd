// Policies by hashes of keys: one statement by index, whatever the number of keys.
import type { KeyPolicy, KeyRecord, Policies, ScopePolicy } from '#core/ports/policy.ts';
import { GATEWAY_LIMIT, type Session } from './session.ts';

/** Bytes of records after which a query answers no more of them; one more must be within what a statement may answer. */
const PORTION = 4 * 1024 * 1024;

/**
 * A value that lives, of a claim that lives, in an open instance. A charged scope that was retired still counts, by its
 * last policy: until reconcile has rewritten the key's, neither refusing the key nor forgetting a budget would be
 * right.
 */
export const FIND = `
with found as (
select v.hash, c.policy, c.secret, array_length(c.charges, 1) as charged,
  (select coalesce(json_agg(s.policy order by charge.place), '[]')
    from unnest(c.charges) with ordinality as charge (scope_id, place)
    join gateway_operator.claim s on s.scope_id = charge.scope_id and s.policy is not null) as scopes
from gateway_operator.key_value v
  join gateway_operator.claim c on c.scope_id = v.scope_id
  join gateway_operator.instance i on i.uid = c.instance_uid
where v.hash = any($1) and v.retired_at is null and (v.not_after is null or v.not_after > clock_timestamp())
  and c.instance_uid = $2 and c.kind = 'key' and c.retired_at is null and c.policy is not null and i.closed_at is null),
sized as (select *, octet_length(policy::text) + octet_length(scopes::text) as size from found),
summed as (select *, sum(size) over (order by size, hash) - size < ${PORTION} as fits from sized)
select hash, secret, charged, case when fits then policy end as policy, case when fits then scopes end as scopes from summed`;

interface FoundRow {
  readonly hash: string;
  /** Null: there is no room for the record in this answer. */
  readonly policy: KeyPolicy | null;
  readonly secret: string;
  readonly charged: number | null;
  readonly scopes: ReadonlyArray<ScopePolicy> | null;
}

export function createPolicies(session: Session, instanceUid: string): Policies {
  return {
    find: async (hashes, onPortion) => {
      const found = new Map<string, KeyRecord>();
      for (let waiting = hashes; waiting.length > 0; ) {
        const rows = await session.query<FoundRow>(GATEWAY_LIMIT, FIND, [waiting, instanceUid]);
        const later = new Set(rows.flatMap(({ hash, policy }) => (policy === null ? [hash] : [])));
        const answered = waiting.filter((hash) => !later.has(hash));
        for (const row of rows) addRecord(found, row);
        if (later.size === 0) break;
        if (answered.length === 0) throw new Error('the database answers no record of those that it has');
        onPortion?.(answered, found);
        waiting = [...later];
      }
      return found;
    },
  };
}

/** A scope without a policy cannot be charged, and a key that cannot be charged does not work. */
function addRecord(found: Map<string, KeyRecord>, { hash, policy, scopes, secret, charged }: FoundRow): void {
  if (policy === null || scopes === null || scopes.length !== (charged ?? 0)) return;
  found.set(hash, { key: policy, scopes: [policy, ...scopes], secret });
}
