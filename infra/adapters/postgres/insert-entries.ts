// The statement that writes a batch of entries with its charges, sums and hours.
import type { Entry } from '#core/ports/books.ts';
import type { Millis } from '#core/ports/money.ts';
import { timeOf } from '../ids.ts';
import { lowestId } from './months.ts';
import { hourOf } from './recount.ts';
import type { Query } from './session.ts';

/** Writes what is not there yet and adds it to the sums. The same (id, kind) twice in one batch is one entry: the first. */
export async function insertEntries(query: Query, instanceUid: string, entries: ReadonlyArray<Entry>): Promise<void> {
  await query(BOOK, [instanceUid, ...toColumns(entries)]);
}

/**
 * Entries are written in id order, then sums are added in scope order, all of `sum` before any of `hour_sum`, one row per
 * scope and batch: two batches wait for each other in one direction only. New entries are added up once, by scope,
 * window and second; charges, sums and hours are made of that. An entry of a recounted time that names another
 * window counts in both. Not prepared: a plan made without the arrays' lengths would join a thousand rows by nested loops.
 */
export const BOOK = `
with input as materialized (
  select distinct on (id, kind) * from unnest($2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
      $9::text[], $10::text[], $11::boolean[], $12::bigint[], $13::uuid[], $14::bigint[], $15::int[], $16::int[])
    with ordinality as t (id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
      model, identifier, estimated, settled_at, second, hour, first_charge, last_charge, place)
  order by id, kind, place),
inserted as (
  insert into gateway_operator.entry (id, kind, instance_uid, cost, input_tokens, output_tokens, cached_input_tokens,
      cache_write_tokens, model, identifier, estimated, settled_at, scope_ids, window_starts, window_ends)
  select id, kind, $1, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
    model, identifier, estimated, to_timestamp(settled_at / 1000.0::float8), ($18::uuid[])[first_charge:last_charge],
    ($19::bigint[])[first_charge:last_charge], ($20::bigint[])[first_charge:last_charge]
  from input order by id, kind on conflict (id, kind) do nothing
  returning id, kind),
charged as materialized (
  select t.scope_id, t.window_start, t.window_end, i.second, i.hour, sum(i.cost) as amount
  from unnest($17::int[], $18::uuid[], $19::bigint[], $20::bigint[]) as t (place, scope_id, window_start, window_end)
    join input i using (place) join inserted using (id, kind)
  group by t.scope_id, t.window_start, t.window_end, i.second, i.hour),
kept as (
  insert into gateway_operator.charge (scope_id, id, cost) select scope_id, second, amount from charged),
remembered as materialized (
  select * from gateway_operator.recount where scope_id in (select scope_id from charged)),
counted as (
  select scope_id, window_start, window_end, amount from charged
  union all
  select r.scope_id, r.window_start, r.window_end, c.amount
  from charged c join remembered r on r.scope_id = c.scope_id
  where c.second >= r.from_id and c.second < r.until_id and (c.window_start, c.window_end) <> (r.window_start, r.window_end)),
summed as (
  insert into gateway_operator.sum as s (scope_id, window_start, window_end, amount)
  select scope_id, window_start, window_end, sum(amount) from counted
  group by scope_id, window_start, window_end order by scope_id, window_start, window_end
  on conflict (scope_id, window_start, window_end) do update set amount = s.amount + excluded.amount
  returning 1)
insert into gateway_operator.hour_sum as h (scope_id, hour, amount)
select scope_id, hour, sum(amount) from charged
where (select count(*) from summed) > 0
group by scope_id, hour order by scope_id, hour
on conflict (scope_id, hour) do update set amount = h.amount + excluded.amount`;

/** One array per column: of the entries, then of their charges, which name their entry by its place and lie in its order. */
export function toColumns(entries: ReadonlyArray<Entry>): ReadonlyArray<unknown> {
  const times = entries.map(({ id }) => timeOf(id) ?? 0);
  const charges = entries.flatMap((entry) => entry.charges);
  const places = entries.flatMap((entry, place) => entry.charges.map(() => place + 1));
  let last = 0;
  const lasts = entries.map((entry) => {
    last += entry.charges.length;
    return last;
  });
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
    literal(times, (time) => lowestId(time - (time % SECOND))),
    literal(times, hourOf),
    literal(entries, (entry, place) => (lasts[place] ?? 0) - entry.charges.length + 1),
    `{${lasts}}`,
    `{${places}}`,
    literal(charges, ({ scopeId }) => scopeId),
    literal(charges, ({ window }) => window.start),
    literal(charges, ({ window }) => window.end),
  ];
}

const SECOND: Millis = 1000;

/**
 * PostgreSQL's array text, exact for numbers of any size and a third of the client library's time. Not for free text: a comma
 * would be one element more, and columns of unequal length are refused (the missing ones are null).
 */
function literal<T>(
  rows: ReadonlyArray<T>,
  column: (row: T, place: number) => string | number | bigint | boolean,
): string {
  return `{${rows.map(column).join(',')}}`;
}
