// Policies by hashes of key values: one statement with an index, whatever the number of hashes.
import type { FoundRecord, KeyPolicy, Policies, ScopePolicy } from '#core/ports/policy.ts';
import { GATEWAY_LIMIT, type Session } from './session.ts';

/** The maximum bytes of records in a reply, unless its only record is larger. A reply arrives as one piece. */
const MAX_BYTES = 256 * 1024;

/**
 * Finds live key values of live claims in an open instance, with the policy of their namespace: a key whose namespace has
 * none is not found. A retired scope is still charged, by its last policy, until the reconciler has rewritten the
 * policy that names it: it would be wrong to refuse the VirtualKey or to ignore the budget.
 */
export const FIND = `
with keys as (
select v.hash, c.scope_id, c.secret, c.holder_uid, c.policy_size, c.charged_scope_ids || n.scope_id ||
    array(select team from unnest(n.charged_scope_ids) as team where team <> all(c.charged_scope_ids)) as charged_scope_ids
from gateway_operator.key_value v
  join gateway_operator.claim c on c.scope_id = v.scope_id
  join gateway_operator.claim n on n.instance_uid = c.instance_uid and n.kind = 'namespace' and n.alias = c.holder_namespace
  join gateway_operator.instance i on i.uid = c.instance_uid
where v.hash = any($1) and v.retired_at is null and (v.not_after is null or v.not_after > clock_timestamp())
  and c.instance_uid = $2 and c.kind = 'key' and c.retired_at is null and c.policy is not null and n.retired_at is null
  and i.closed_at is null),
found as (
select k.*, k.policy_size + coalesce((select sum(s.policy_size)
    from unnest(k.charged_scope_ids) as charged (scope_id) join gateway_operator.claim s on s.scope_id = charged.scope_id), 0) as size
from keys k),
summed as (select *, size <= $3::float8 and sum(size) over (order by size, hash) <= greatest(size, ${MAX_BYTES}) as is_read
  from found)
select f.hash, f.secret, f.holder_uid as "holderUid", f.size::float8 as size, array_length(f.charged_scope_ids, 1) as charged,
  case when f.is_read then c.policy end as policy,
  case when f.is_read then (select coalesce(json_agg(s.policy order by charged.index), '[]')
    from unnest(f.charged_scope_ids) with ordinality as charged (scope_id, index)
    join gateway_operator.claim s on s.scope_id = charged.scope_id and s.policy is not null) end as scopes
from summed f join gateway_operator.claim c on c.scope_id = f.scope_id`;

interface PolicyRow {
  readonly hash: string;
  /** Null: the record is not in this reply. */
  readonly policy: KeyPolicy | null;
  readonly holderUid: string;
  readonly secret: string;
  readonly size: number;
  readonly charged: number;
  readonly scopes: ReadonlyArray<ScopePolicy> | null;
}

export function createPolicies(session: Session, instanceUid: string): Policies {
  return {
    find: async (hashes, maxSize = Number.POSITIVE_INFINITY) => {
      const rows = await session.query<PolicyRow>(GATEWAY_LIMIT, FIND, [hashes, instanceUid, maxSize]);
      if (rows.length > 0 && rows.every(({ policy, size }) => policy === null && size <= maxSize))
        throw new Error('PostgreSQL returned no record for any of these hashes (our error)');
      const records = new Map(rows.map((row) => [row.hash, toRecord(row)]));
      return new Map(hashes.map((hash) => [hash, records.get(hash)]));
    },
  };
}

/** The record; none if a charged scope has no policy: it cannot be charged, so its VirtualKey does not work. */
function toRecord({ policy, scopes, size, charged, ...ofKey }: PolicyRow): FoundRecord {
  if (policy === null || scopes === null) return { size };
  const { holderUid, secret } = ofKey;
  return scopes.length === charged ? { key: policy, scopes: [policy, ...scopes], holderUid, secret, size } : undefined;
}
