// The end of a claim, with its values.
import type { ScopeId } from '#core/ports/policy.ts';
import type { Query } from './session.ts';

/** Claims first, in the order in which everybody locks them, then their values. */
export async function retire(query: Query, scopeIds: ReadonlyArray<ScopeId>): Promise<void> {
  await query(
    'select 1 from gateway_operator.claim where scope_id = any($1) and retired_at is null order by scope_id for update',
    [scopeIds],
  );
  for (const table of ['claim', 'key_value']) {
    await query(
      `update gateway_operator.${table} set retired_at = now() where scope_id = any($1) and retired_at is null`,
      [scopeIds],
    );
  }
}
