// Which months of entries are dropped? Whole ones, older than somebody said and than any budget looks back; sums, hours and what was put aside stay for ever.
import { BACKGROUND_LIMIT as LIMIT } from './limits.ts';
import { lockMonths } from './months.ts';
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

/** Where the longest window in force may have begun; a calendar month is up to a thirtieth longer than 30 days. */
const LOOKED_BACK = `
with duration as (
  select policy -> 'budget' ->> 'duration' as text from gateway_operator.claim where retired_at is null
  union
  select model -> 'budget' ->> 'duration'
  from gateway_operator.claim cross join lateral jsonb_array_elements(coalesce(policy -> 'modelScopes', '[]')) as model
  where retired_at is null),
longest as (
  select max(substring(text from '^[0-9]+')::bigint * case substring(text from '[a-z]+$')
    when 's' then 1 when 'm' then 60 when 'h' then 3600 when 'd' then 86400 when 'w' then 604800 when 'mo' then 2592000 end) as seconds
  from duration where text is not null)
select to_char(now() at time zone 'UTC' - make_interval(secs => coalesce(seconds, 0) * 31 / 30.0), 'YYYY_MM') as month from longest`;

/**
 * Keeps the current month and so many before it, and every month that a budget's window may reach into: an edit of its
 * duration counts single charges at the edge. Answers the months that were dropped, like `2026_01`. One transaction each.
 */
export async function dropMonths(session: Session, kept: number): Promise<ReadonlyArray<string>> {
  const old = await session.run(LIMIT, (query) => query<{ month: string }>(MONTHS, [kept]));
  if (old.length === 0) return [];
  const [needed] = await session.run(LIMIT, (query) => query<{ month: string }>(LOOKED_BACK));
  const months = old.flatMap(({ month }) => (needed === undefined || month < needed.month ? [month] : []));
  for (const month of months) await session.transaction(LIMIT, (query) => dropMonth(query, month));
  return months;
}

/** Whoever books or reads meanwhile is waited for, not stopped; a lock that does not come is tried again by the next sweep. */
async function dropMonth(query: Query, month: string): Promise<void> {
  await query('set local lock_timeout = 2000');
  await lockMonths(query);
  await query('insert into gateway_operator.dropped_month (month) values ($1) on conflict do nothing', [month]);
  for (const table of ['charge', 'entry']) await query(`drop table if exists gateway_operator.${table}_${month}`);
}
