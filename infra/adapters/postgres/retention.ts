// Which months of entries are dropped? Whole ones, older than somebody said; sums, hours and what was put aside stay for ever.
import { BACKGROUND_LIMIT as LIMIT } from './limits.ts';
import type { Query, Session } from './session.ts';

const MONTHS = `
select distinct right(c.relname, 7) as month
from pg_catalog.pg_inherits i
  join pg_catalog.pg_class c on c.oid = i.inhrelid
  join pg_catalog.pg_class p on p.oid = i.inhparent
  join pg_catalog.pg_namespace n on n.oid = p.relnamespace
where n.nspname = 'gateway_operator' and p.relname in ('entry', 'charge') and c.relname ~ '^(entry|charge)_[0-9]{4}_[0-9]{2}$'
  and right(c.relname, 7) < to_char(now() at time zone 'UTC' - make_interval(months => $1), 'YYYY_MM')
order by 1`;

/** Keeps the current month and so many before it. Answers the months that were dropped, like `2026_01`. One transaction each. */
export async function dropMonths(session: Session, kept: number): Promise<ReadonlyArray<string>> {
  const rows = await session.run(LIMIT, (query) => query<{ month: string }>(MONTHS, [kept]));
  for (const { month } of rows) await session.transaction(LIMIT, (query) => dropMonth(query, month));
  return rows.map(({ month }) => month);
}

/** Whoever books or reads meanwhile is waited for, not stopped; a lock that does not come is tried again by the next sweep. */
async function dropMonth(query: Query, month: string): Promise<void> {
  await query('set local lock_timeout = 2000');
  for (const table of ['charge', 'entry']) await query(`drop table if exists gateway_operator.${table}_${month}`);
}
