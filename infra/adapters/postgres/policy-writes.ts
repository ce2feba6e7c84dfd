// Writes of policies, each in one transaction with its recounted windows.
import type { ScopeId } from '#core/ports/policy.ts';
import type { PolicyWrite, Registry } from '#core/ports/registry.ts';
import { lockForRecount, recount } from './recount.ts';
import { BACKGROUND_LIMIT, inPortions, type Query, type Session } from './session.ts';

/** Small enough for the limit, however many keys were edited at once; bookings wait for a portion of recounts. */
const PORTION = 10_000;
const RECOUNTED_PORTION = 500;

export function createPolicyWrites(session: Session): Pick<Registry, 'writePolicies'> {
  return {
    writePolicies: async (instanceUid, writes) => {
      const { recounted = [], plain = [] } = Object.groupBy(sorted(writes), (write) =>
        write.recounts === undefined ? 'plain' : 'recounted',
      );
      for (const portion of [...inPortions(recounted, RECOUNTED_PORTION), ...inPortions(plain, PORTION)]) {
        await session.transaction(BACKGROUND_LIMIT, (query) => writePortion(query, instanceUid, portion));
      }
    },
  };
}

/** The lock of recounts comes before any row: bookings hold it while they wait for sums. */
async function writePortion(query: Query, instanceUid: string, writes: ReadonlyArray<PolicyWrite>): Promise<void> {
  if (writes.some(({ recounts }) => recounts !== undefined)) await lockForRecount(query, instanceUid);
  const rows = await query<{ scope_id: ScopeId }>(LOCK, [
    instanceUid,
    writes.map(({ policy }) => policy.scopeId),
    writes.map(({ generation }) => generation),
  ]);
  const current = new Set(rows.map(({ scope_id }) => scope_id));
  const due = writes.filter(({ policy }) => current.has(policy.scopeId));
  const recounts = due.flatMap((write) => write.recounts ?? []);
  if (recounts.length > 0) await recount(query, instanceUid, recounts);
  if (due.length > 0)
    await query(WRITE, [JSON.stringify(due.map(({ policy, generation }) => ({ policy, generation })))]);
}

/** In the order of scopes, so that two writers never wait for each other. Rows of a later generation are left out. */
const LOCK = `
select c.scope_id from gateway_operator.claim c
  join unnest($2::uuid[], $3::bigint[]) as w (scope_id, generation) on w.scope_id = c.scope_id
where c.instance_uid = $1 and c.retired_at is null and coalesce(c.generation, 0) <= w.generation
order by c.scope_id for update of c`;

/** Unchanged rows are not written. */
const WRITE = `
with wanted as (
  select (w -> 'policy' ->> 'scopeId')::uuid as scope_id, w -> 'policy' as policy, (w ->> 'generation')::bigint as generation,
    array(select jsonb_array_elements_text(coalesce(w -> 'policy' -> 'charges', '[]')))::uuid[] as charges
  from jsonb_array_elements($1::jsonb) as w)
update gateway_operator.claim c set policy = w.policy, charges = w.charges, generation = w.generation
from wanted w where w.scope_id = c.scope_id and (c.policy, c.generation) is distinct from (w.policy, w.generation)`;

function sorted(writes: ReadonlyArray<PolicyWrite>): ReadonlyArray<PolicyWrite> {
  return writes.toSorted((one, other) => (one.policy.scopeId < other.policy.scopeId ? -1 : 1));
}
