// Values of a claim: their age and their end, always by the database's clock.
import type { Millis } from '#core/ports/money.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { Added, LiveValue, NewValue } from '#core/ports/registry.ts';
import type { Query } from './session.ts';

/** A value as JSON, so that instants are numbers. */
export interface ValueRow {
  readonly hash: string;
  readonly created_at: Millis;
  readonly not_after: Millis | null;
  readonly asked: string | null;
}

export const millis = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint`;

/** SQL for the values of a scope, the oldest first. */
export function valuesOf(scopeId: string): string {
  return `coalesce((select json_agg(json_build_object('hash', v.hash, 'created_at', ${millis('v.created_at')},
      'not_after', ${millis('v.not_after')}, 'asked', v.asked) order by v.created_at, v.hash)
    from gateway_operator.key_value v where v.scope_id = ${scopeId} and v.retired_at is null), '[]')`;
}

export const toValue = ({ hash, created_at, not_after, asked }: ValueRow): LiveValue => ({
  hash,
  createdAt: created_at,
  ...(not_after === null ? {} : { notAfter: not_after }),
  ...(asked === null ? {} : { asked }),
});

/**
 * In one transaction. The claims' rows are locked first, so that none can retire meanwhile and leave a live value behind.
 * A hash may be ours (live: nothing to do), ours from before (revived at its age), or another's (refused), decided by the index.
 */
export async function addValues(query: Query, values: ReadonlyArray<NewValue>): Promise<ReadonlyArray<Added>> {
  const all = values.toSorted((one, other) => (one.scopeId < other.scopeId ? -1 : 1));
  const scopes = all.map(({ scopeId }) => scopeId);
  const locked = await query<{ scope_id: ScopeId }>(
    `select scope_id from gateway_operator.claim where scope_id = any($1) and retired_at is null
     order by scope_id for no key update`,
    [scopes],
  );
  const live = new Set(locked.map(({ scope_id }) => scope_id));
  const adding = all.filter(({ scopeId }) => live.has(scopeId));
  const revived = await query<{ scope_id: ScopeId; created_at: string }>(REVIVE, [
    adding.map(({ scopeId }) => scopeId),
    adding.map(({ hash }) => hash),
  ]);
  const ages = new Map(revived.map((row) => [row.scope_id, row.created_at]));
  await query(ADD, [
    adding.map(({ scopeId }) => scopeId),
    adding.map(({ hash }) => hash),
    adding.map(({ asked }) => asked ?? null),
    adding.map(({ scopeId }) => ages.get(scopeId) ?? null),
  ]);
  const rows = await query<{ scope_id: ScopeId; live: ReadonlyArray<ValueRow> }>(
    `select s.scope_id, ${valuesOf('s.scope_id')} as live from unnest($1::uuid[]) as s (scope_id)`,
    [adding.map(({ scopeId }) => scopeId)],
  );
  const found = new Map(rows.map((row) => [row.scope_id, row.live.map(toValue)]));
  return values.map(({ scopeId, hash }) => {
    const now = found.get(scopeId);
    if (now === undefined) return 'retired';
    return now.some((value) => value.hash === hash) ? now : 'another scope has it';
  });
}

const REVIVE = `
delete from gateway_operator.key_value v using unnest($1::uuid[], $2::text[]) as w (scope_id, hash)
where v.scope_id = w.scope_id and v.hash = w.hash and v.retired_at is not null
returning v.scope_id, ${millis('v.created_at')} as created_at`;

/** A new value is younger than all before it, also when the clock was set back. */
const ADD = `
insert into gateway_operator.key_value (scope_id, hash, asked, created_at)
select w.scope_id, w.hash, coalesce(w.asked, before.asked),
  coalesce(to_timestamp(w.created_at / 1000.0),
    greatest(date_trunc('milliseconds', clock_timestamp()), before.created_at + interval '1 millisecond'))
from unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[]) as w (scope_id, hash, asked, created_at)
  cross join lateral (
    select (array_agg(v.asked order by v.created_at desc, v.hash desc))[1] as asked, max(v.created_at) as created_at
    from gateway_operator.key_value v where v.scope_id = w.scope_id and v.retired_at is null) before
on conflict do nothing`;

export async function retireValues(
  query: Query,
  scopeId: ScopeId,
  hashes: ReadonlyArray<string>,
  overlap: Millis | undefined,
): Promise<ReadonlyArray<LiveValue>> {
  const end =
    overlap === undefined
      ? 'retired_at = now()'
      : "not_after = coalesce(not_after, clock_timestamp() + $3::bigint * interval '1 millisecond')";
  await query(
    `update gateway_operator.key_value set ${end} where scope_id = $1 and hash = any($2) and retired_at is null`,
    overlap === undefined ? [scopeId, hashes] : [scopeId, hashes, overlap],
  );
  return readValues(query, scopeId);
}

async function readValues(query: Query, scopeId: ScopeId): Promise<ReadonlyArray<LiveValue>> {
  const [row] = await query<{ live: ReadonlyArray<ValueRow> }>(`select ${valuesOf('$1')} as live`, [scopeId]);
  return (row?.live ?? []).map(toValue);
}
