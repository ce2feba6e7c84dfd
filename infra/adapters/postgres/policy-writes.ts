// How does reconcile tell the gateways what holds now? Policies, and recounted windows, in one transaction.
import type { PolicyWrite, Registry } from '#core/ports/registry.ts';
import { BACKGROUND_LIMIT } from './limits.ts';
import { recount } from './recount.ts';
import type { Session } from './session.ts';

export function createPolicyWrites(session: Session): Pick<Registry, 'writePolicies'> {
  return {
    writePolicies: async (instanceUid, writes) => {
      if (writes.length === 0) return;
      await session.transaction(BACKGROUND_LIMIT, async (query) => {
        const recounts = writes.flatMap(({ policy, recount: window }) =>
          window === undefined ? [] : [{ scopeId: policy.scopeId, window }],
        );
        if (recounts.length > 0) await recount(query, instanceUid, recounts);
        await query(WRITE, [instanceUid, JSON.stringify(sorted(writes).map(({ policy }) => policy))]);
      });
    },
  };
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
