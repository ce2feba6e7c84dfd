// Queries about the ledger rows of all instances, and the scopes that other instances have now (LEDGER 2, 6).
import type { LedgerReader } from '#core/ports/ledger-rows.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { createQueries, inPortions } from './ledger-queries.ts';
import { BACKGROUND_LIMIT, type Session } from './session.ts';

export function createLedgerReader(session: Session): LedgerReader {
  return {
    ...createQueries(session),
    scopesOfOtherInstances: async (instanceUid, scopes) => {
      const ask = (portion: ReadonlyArray<ScopeId>) =>
        session.query<{ scope: ScopeId }>(BACKGROUND_LIMIT, OTHER_INSTANCES, [instanceUid, portion]);
      return new Set((await inPortions(scopes, ask)).map(({ scope }) => scope));
    },
  };
}

/** Budgets for models have no claim rows (decision 0014): they are in the policy of their VirtualKey. */
const OTHER_INSTANCES = `
select scope::text from gateway_operator.claim c cross join lateral unnest(array[c.scope_id] ||
  array(select (model ->> 'scopeId')::uuid from jsonb_array_elements(coalesce(c.policy -> 'furtherBudgets', '[]')) as model)) as scope
where c.scope_id = any($2::uuid[]) and c.instance_uid <> $1`;
