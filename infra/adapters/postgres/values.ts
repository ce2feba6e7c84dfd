// Which values open a claim, how old are they, and until when do they work? Always by the database's clock.
import type { Millis } from '#core/ports/money.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { LiveValue } from '#core/ports/registry.ts';
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

interface Added {
  readonly scopeId: ScopeId;
  readonly hash: string;
  readonly asked: string | undefined;
}

/** The claim's row is locked first, so that it cannot retire meanwhile and leave a live value behind. */
export async function addValue(
  query: Query,
  { scopeId, hash, asked }: Added,
): Promise<ReadonlyArray<LiveValue> | undefined> {
  const [live] = await query(
    'select 1 from gateway_operator.claim where scope_id = $1 and retired_at is null for no key update',
    [scopeId],
  );
  if (live === undefined) throw new Error(`adding a value to scope ${scopeId}, which is retired or was never claimed`);
  // The hash may be ours (live: nothing to do), ours from before (revived at its age), or another's (refused), decided by the index.
  const [before] = await query<{ created_at: string }>(
    `delete from gateway_operator.key_value where scope_id = $1 and hash = $2 and retired_at is not null
     returning ${millis('created_at')} as created_at`,
    [scopeId, hash],
  );
  await query(ADD, [scopeId, hash, asked ?? null, before?.created_at ?? null]);
  const [owner] = await query<{ scope_id: ScopeId }>(
    'select scope_id from gateway_operator.key_value where hash = $1 and retired_at is null',
    [hash],
  );
  return owner?.scope_id === scopeId ? readValues(query, scopeId) : undefined;
}

/** A new value is younger than all before it, also when the clock was set back. */
const ADD = `
insert into gateway_operator.key_value (scope_id, hash, asked, created_at)
select $1, $2, coalesce($3, (array_agg(v.asked order by v.created_at desc, v.hash desc))[1]),
  coalesce(to_timestamp($4::bigint / 1000.0),
    greatest(date_trunc('milliseconds', clock_timestamp()), max(v.created_at) + interval '1 millisecond'))
from gateway_operator.key_value v where v.scope_id = $1 and v.retired_at is null
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
