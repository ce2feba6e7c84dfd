// Policies by hashes of key values: one statement with an index, whatever the number of hashes.
import type { KeyPolicy, KeyRecord, Policies, ScopePolicy } from '#core/ports/policy.ts';
import { GATEWAY_LIMIT, type Session } from './session.ts';

/** A reply has records until their sum reaches this number of bytes: it may be larger by one record. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Finds live key values of live claims in an open instance. A retired scope is still charged, by its last policy, until
 * the reconciler has rewritten the VirtualKey's policy: it would be wrong to refuse the VirtualKey or to ignore the
 * budget.
 */
export const FIND = `
with found as (
select v.hash, c.scope_id, c.secret, c.charges, c.policy_size + coalesce((select sum(s.policy_size)
    from unnest(c.charges) as charge (scope_id) join gateway_operator.claim s on s.scope_id = charge.scope_id), 0) as size
from gateway_operator.key_value v
  join gateway_operator.claim c on c.scope_id = v.scope_id
  join gateway_operator.instance i on i.uid = c.instance_uid
where v.hash = any($1) and v.retired_at is null and (v.not_after is null or v.not_after > clock_timestamp())
  and c.instance_uid = $2 and c.kind = 'key' and c.retired_at is null and c.policy is not null and i.closed_at is null),
summed as (select *, sum(size) over (order by size, hash) - size < ${MAX_BYTES} as is_read from found)
select f.hash, f.secret, array_length(f.charges, 1) as charged, case when f.is_read then c.policy end as policy,
  case when f.is_read then (select coalesce(json_agg(s.policy order by charge.place), '[]')
    from unnest(f.charges) with ordinality as charge (scope_id, place)
    join gateway_operator.claim s on s.scope_id = charge.scope_id and s.policy is not null) end as scopes
from summed f join gateway_operator.claim c on c.scope_id = f.scope_id`;

interface PolicyRow {
  readonly hash: string;
  /** Null: the record is not in this reply. */
  readonly policy: KeyPolicy | null;
  readonly secret: string;
  readonly charged: number | null;
  readonly scopes: ReadonlyArray<ScopePolicy> | null;
}

export function createPolicies(session: Session, instanceUid: string): Policies {
  return {
    find: async (hashes) => {
      const rows = await session.query<PolicyRow>(GATEWAY_LIMIT, FIND, [hashes, instanceUid]);
      const unread = new Set(rows.flatMap(({ hash, policy }) => (policy === null ? [hash] : [])));
      const records = new Map(rows.map((row) => [row.hash, toRecord(row)]));
      if (hashes.length > 0 && unread.size === hashes.length)
        throw new Error('PostgreSQL returned no record for any of these hashes (our error)');
      return new Map(hashes.flatMap((hash) => (unread.has(hash) ? [] : [[hash, records.get(hash)] as const])));
    },
  };
}

/** The record; none if a charged scope has no policy: it cannot be charged, so its VirtualKey does not work. */
function toRecord({ policy, scopes, secret, charged }: PolicyRow): KeyRecord | undefined {
  if (policy === null || scopes === null || scopes.length !== (charged ?? 0)) return undefined;
  return { key: policy, scopes: [policy, ...scopes], secret };
}
