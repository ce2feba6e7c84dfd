// How does a batch of entries become rows and sums in one statement?
import type { Entry } from '#core/ports/books.ts';
import { timeOf } from '../ids.ts';
import { hourOf, lockForBooking } from './recount.ts';
import type { Query } from './session.ts';

/** Writes what is not there yet and adds it to the sums. To be called inside a transaction of its own. */
export async function book(query: Query, instanceUid: string, entries: ReadonlyArray<Entry>): Promise<void> {
  await lockForBooking(query, instanceUid);
  await query(BOOK, [instanceUid, ...toColumns(distinct(entries))]);
}

/** The same (id, kind) twice in one batch is one entry: the first. */
function distinct(entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> {
  const byId = new Map<string, Entry>();
  for (const entry of entries) {
    const key = `${entry.id.toLowerCase()} ${entry.kind}`;
    if (!byId.has(key)) byId.set(key, entry);
  }
  return byId.size === entries.length ? entries : [...byId.values()];
}

/**
 * Entries are written in id order, then sums are added in scope order, all of `sum` before any of `hour_sum`, one row per
 * scope and batch: two batches wait for each other in one direction only. An entry of a recounted time that names another
 * window counts in both. Not prepared: a plan made without the arrays' lengths would join a thousand rows by nested loops.
 */
export const BOOK = `
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

/** One array per column. */
export function toColumns(entries: ReadonlyArray<Entry>): ReadonlyArray<unknown> {
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

/**
 * PostgreSQL's array text, exact for numbers of any size and a third of the client library's time. Not for free text: a comma
 * would be one element more, and columns of unequal length are refused (the missing ones are null).
 */
function literal<T>(rows: ReadonlyArray<T>, column: (row: T) => string | number | bigint | boolean): string {
  return `{${rows.map(column).join(',')}}`;
}
