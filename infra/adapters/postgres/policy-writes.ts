// How does reconcile tell the gateways what holds now? Policies, each in one transaction with its recounted window.
import type { PolicyWrite, Registry } from '#core/ports/registry.ts';
import { BACKGROUND_LIMIT } from './limits.ts';
import { inPortions } from './portions.ts';
import { recount } from './recount.ts';
import type { Query, Session } from './session.ts';

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

async function writePortion(query: Query, instanceUid: string, writes: ReadonlyArray<PolicyWrite>): Promise<void> {
  const recounts = writes.flatMap((write) => write.recounts ?? []);
  if (recounts.length > 0) await recount(query, instanceUid, recounts);
  await query(WRITE, [instanceUid, JSON.stringify(writes.map(({ policy }) => policy))]);
}

/** In the order of scopes, so that two writers never wait for each other. Unchanged rows are not written. */
const WRITE = `
with wanted as (
  select (policy ->> 'scopeId')::uuid as scope_id, policy,
    array(select jsonb_array_elements_text(coalesce(policy -> 'charges', '[]')))::uuid[] as charges
  from jsonb_array_elements($2::jsonb) as policy),
locked as (
  select c.scope_id from gateway_operator.claim c join wanted w on w.scope_id = c.scope_id
  where c.instance_uid = $1 and c.retired_at is null and c.policy is distinct from w.policy
  order by c.scope_id for update of c)
update gateway_operator.claim c set policy = w.policy, charges = w.charges
from wanted w where w.scope_id = c.scope_id and c.scope_id in (select scope_id from locked)`;

function sorted(writes: ReadonlyArray<PolicyWrite>): ReadonlyArray<PolicyWrite> {
  return writes.toSorted((one, other) => (one.policy.scopeId < other.policy.scopeId ? -1 : 1));
}
