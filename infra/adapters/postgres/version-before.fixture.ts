// What did the version before this one say to PostgreSQL? Kept word for word, so that a test can mix the two.
import type { Entry } from '#core/ports/books.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import { timeOf } from '../ids.ts';
import { leastId } from './months.ts';
import { hourOf, lockForBooking, lockForRecount } from './recount.ts';
import type { Query } from './session.ts';

/** Of the schema. A new migration that changes what is written here comes with the statements that it replaces. */
export const VERSION_BEFORE = 4;

/** Inside a transaction. */
export async function bookBefore(query: Query, instanceUid: string, entries: ReadonlyArray<Entry>): Promise<void> {
  await lockForBooking(query, instanceUid);
  await query(BOOK, [instanceUid, ...toColumns(entries)]);
}

/** Inside a transaction. */
export async function recountBefore(
  query: Query,
  instanceUid: string,
  { scopeId, window }: ScopeWindow,
): Promise<void> {
  await lockForRecount(query, instanceUid);
  await query(RECOUNT, [scopeId, window.start, window.end, ...edgesOf(window)]);
}

const HOUR = 3_600_000;

const BOOK = `
with input as materialized (
  select * from unnest($2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
      $9::text[], $10::text[], $11::boolean[], $12::bigint[], $13::bigint[])
    as t (id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
      model, identifier, estimated, settled_at, hour)),
inserted as (
  insert into gateway_operator.entry (id, kind, instance_uid, cost, input_tokens, output_tokens, cached_input_tokens,
      cache_write_tokens, model, identifier, estimated, settled_at)
  select id, kind, $1, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
    model, identifier, estimated, to_timestamp(settled_at / 1000.0)
  from input order by id, kind on conflict (id, kind) do nothing
  returning id, kind),
charged as (
  select t.scope_id, i.id, i.kind, t.window_start, t.window_end, i.cost, i.hour
  from unnest($14::uuid[], $15::text[], $16::uuid[], $17::bigint[], $18::bigint[])
      as t (id, kind, scope_id, window_start, window_end)
    join inserted using (id, kind) join input i using (id, kind)),
kept as (
  insert into gateway_operator.charge (scope_id, id, kind, window_start, window_end, cost)
  select scope_id, id, kind, window_start, window_end, cost from charged),
counted as (
  select scope_id, window_start, window_end, cost from charged
  union all
  select r.scope_id, r.window_start, r.window_end, c.cost
  from charged c join gateway_operator.recount r on r.scope_id = c.scope_id
  where c.id >= r.from_id and c.id < r.until_id and (c.window_start, c.window_end) <> (r.window_start, r.window_end)),
summed as (
  insert into gateway_operator.sum as s (scope_id, window_start, window_end, amount)
  select scope_id, window_start, window_end, sum(cost) from counted
  group by scope_id, window_start, window_end order by scope_id, window_start, window_end
  on conflict (scope_id, window_start, window_end) do update set amount = s.amount + excluded.amount
  returning 1)
insert into gateway_operator.hour_sum as h (scope_id, hour, amount)
select scope_id, hour, sum(cost) from charged
where (select count(*) from summed) > 0
group by scope_id, hour order by scope_id, hour
on conflict (scope_id, hour) do update set amount = h.amount + excluded.amount`;

const RECOUNT = `
with counted as (
  select coalesce((select sum(amount) from gateway_operator.hour_sum
      where scope_id = $1 and hour >= $4::bigint and hour < $5::bigint), 0)
    + coalesce((select sum(cost) from gateway_operator.charge
      where scope_id = $1 and id >= $6::uuid and id < $7::uuid), 0)
    + coalesce((select sum(cost) from gateway_operator.charge
      where scope_id = $1 and id >= $8::uuid and id < $9::uuid), 0) as amount),
remembered as (
  insert into gateway_operator.recount (scope_id, window_start, window_end, from_id, until_id)
  values ($1, $2::bigint, $3::bigint, $6, $9)
  on conflict (scope_id) do update set window_start = $2::bigint, window_end = $3::bigint, from_id = $6, until_id = $9)
insert into gateway_operator.sum (scope_id, window_start, window_end, amount)
select $1, $2::bigint, $3::bigint, amount from counted
on conflict (scope_id, window_start, window_end) do update set amount = excluded.amount`;

function toColumns(entries: ReadonlyArray<Entry>): ReadonlyArray<unknown> {
  const charges = entries.flatMap(({ id, kind, charges: paid }) => paid.map((charge) => ({ id, kind, ...charge })));
  return [
    literal(entries, ({ id }) => id),
    literal(entries, ({ kind }) => kind),
    literal(entries, ({ cost }) => cost),
    literal(entries, ({ tokens }) => tokens.input),
    literal(entries, ({ tokens }) => tokens.output),
    literal(entries, ({ tokens }) => tokens.cachedInput),
    literal(entries, ({ tokens }) => tokens.cacheWrite),
    entries.map(({ model }) => model),
    entries.map(({ identifier }) => identifier),
    literal(entries, ({ estimated }) => estimated),
    literal(entries, ({ settledAt }) => settledAt),
    literal(entries, ({ id }) => hourOf(timeOf(id) ?? 0)),
    literal(charges, ({ id }) => id),
    literal(charges, ({ kind }) => kind),
    literal(charges, ({ scopeId }) => scopeId),
    literal(charges, ({ window }) => window.start),
    literal(charges, ({ window }) => window.end),
  ];
}

/** First and last whole hour, and the ids that end the first edge and begin the last. */
function edgesOf({ start, end }: ScopeWindow['window']): ReadonlyArray<unknown> {
  const first = Math.ceil(start / HOUR);
  const last = Math.floor(end / HOUR);
  const [from, until] = [leastId(start), leastId(end)];
  // Inside one hour: all of it is edge.
  if (first >= last) return [first, first, from, until, until, until];
  return [first, last, from, leastId(first * HOUR), leastId(last * HOUR), until];
}

function literal<T>(rows: ReadonlyArray<T>, column: (row: T) => string | number | bigint | boolean): string {
  return `{${rows.map(column).join(',')}}`;
}
