// Is this table there? As of now, also after having waited for a lock.
import type { Query } from './session.ts';

/**
 * Reads the catalog like any table. `to_regclass` would answer from a cache that a session refreshes when a transaction
 * begins: whoever waits for an advisory lock inside one would not see what the lock's last holder made.
 */
export async function hasTable(query: Query, name: string): Promise<boolean> {
  const [found] = await query(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'gateway_operator' and c.relname = $1`,
    [name],
  );
  return found !== undefined;
}

export async function hasSchema(query: Query): Promise<boolean> {
  const [found] = await query(`select 1 from pg_catalog.pg_namespace where nspname = 'gateway_operator'`);
  return found !== undefined;
}
