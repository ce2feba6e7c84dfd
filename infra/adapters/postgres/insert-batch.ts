// The statements that write a batch of an account: its ledger rows in portions, then the additions of new rows to sums
// and hours, in portions too.
import type { LedgerRow, LedgerRowKind } from '#core/ports/ledger-rows.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import { createAdditions } from './additions.ts';
import { type BookingTransaction, insertAll } from './booking.ts';
import { inPortions } from './ledger-queries.ts';
import { literal } from './literal.ts';
import type { Query } from './session.ts';

/**
 * The maximum rows of a statement. After an outage a batch may have 100,000 rows: each statement must end within its
 * time limit, and the event loop continues between two statements.
 */
const PORTION = 2500;

interface RowsToInsert {
  readonly epoch: number;
  readonly storeCalls: number;
  readonly rows: ReadonlyArray<LedgerRow>;
}

/**
 * Writes the rows that are not there yet and adds them to the sums. Returns the rejected ids. Batches cannot deadlock,
 * because all of them write in one order: rows by id, then sums by scope, all of `sum` before `hour_sum`, and the row
 * of the epoch last.
 */
export async function insertBatch(
  booking: BookingTransaction,
  instanceUid: string,
  { rows, epoch, storeCalls }: RowsToInsert,
): Promise<ReadonlyArray<string>> {
  const { query, partitions } = booking;
  const sorted = rows.toSorted(byIdAndKind);
  await partitions.ensureFor(
    query,
    sorted.map(({ id }) => id),
  );
  const additions = createAdditions();
  const insert = async (portion: ReadonlyArray<LedgerRow>): Promise<void> =>
    additions.add(await insertNew(query, instanceUid, portion));
  const rejected = await inPortions(sorted, (portion) => insertAll(booking, instanceUid, portion, insert), PORTION);
  for (const { columns, isLast } of additions.portions())
    await query(ADD_SUMS, [...columns, instanceUid, epoch, isLast ? storeCalls : 0]);
  return rejected;
}

const byIdAndKind = (one: LedgerRow, other: LedgerRow): number => {
  if (one.id !== other.id) return one.id < other.id ? -1 : 1;
  return one.kind < other.kind ? -1 : 1;
};

/** Inserts rows; returns those that are new. If the same (id, kind) comes twice, the first row counts. */
async function insertNew(
  query: Query,
  instanceUid: string,
  rows: ReadonlyArray<LedgerRow>,
): Promise<ReadonlyArray<LedgerRow>> {
  const [row] = await query<{ newKeys: ReadonlyArray<string> | null }>(INSERT, [instanceUid, ...toColumns(rows)]);
  if (row === undefined || row.newKeys === null) return rows;
  const newKeys = new Set(row.newKeys);
  return rows.filter(({ id, kind }) => newKeys.delete(id + kind));
}

/** Returns the keys of the new rows; null if all rows are new. */
export const INSERT = `
with inserted as (
  insert into gateway_operator.ledger_row (instance_uid, id, kind, cost, input_tokens, output_tokens, cached_input_tokens,
      cache_write_tokens, model, identifier, estimated, settled_at, scope_ids, window_starts, window_ends)
  select $1, id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, model, identifier, estimated,
    to_timestamp(settled_at / 1000.0::float8), ($14::uuid[])[first:last], ($15::bigint[])[first:last], ($16::bigint[])[first:last]
  from unnest($2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[],
      $11::boolean[], $12::bigint[], $13::int[], $17::int[])
    as t (id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, model, identifier, estimated,
      settled_at, first, last)
  on conflict (id, kind) do nothing returning id, kind)
select case when count(*) < cardinality($2::uuid[]) then coalesce(array_agg(id::text || kind), '{}') end as "newKeys" from inserted`;

/**
 * New rows are added up by scope, window and second, and all sums are made from these totals. `from_id`: the lowest
 * UUID of the second. A row whose time was recounted into another window counts in both windows. A condition like
 * `count(*) >= 0` is always true: it makes PostgreSQL write the table before it first, so that all batches lock in one
 * order.
 */
export const ADD_SUMS = `
with added as materialized (
  select scope_id, window_start, window_end, from_id, sum(amount) as amount
  from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::uuid[], $5::numeric[])
    as t (scope_id, window_start, window_end, from_id, amount)
  group by scope_id, window_start, window_end, from_id),
seconds as (
  insert into gateway_operator.second_sum (scope_id, from_id, amount) select scope_id, from_id, amount from added),
counted as (
  select scope_id, window_start, window_end, amount from added
  union all
  select r.scope_id, r.window_start, r.window_end, a.amount
  from added a join gateway_operator.recount r on r.scope_id = a.scope_id
  where a.from_id >= r.from_id and a.from_id < r.until_id and (a.window_start, a.window_end) <> (r.window_start, r.window_end)),
summed as (
  insert into gateway_operator.sum as s (scope_id, window_start, window_end, amount)
  select scope_id, window_start, window_end, sum(amount) from counted
  group by scope_id, window_start, window_end order by scope_id, window_start, window_end
  on conflict (scope_id, window_start, window_end) do update set amount = s.amount + excluded.amount
  returning 1),
hours as (
  insert into gateway_operator.hour_sum as h (scope_id, hour, amount)
  select scope_id, hour, amount from unnest($6::uuid[], $7::bigint[], $8::numeric[]) as t (scope_id, hour, amount)
  where (select count(*) from summed) >= 0 order by scope_id, hour
  on conflict (scope_id, hour) do update set amount = h.amount + excluded.amount
  returning 1)
update gateway_operator.store_epoch set store_calls = $11
where (select count(*) from hours) >= 0 and instance_uid = $9 and epoch = $10 and store_calls < $11`;

/** One array per column of `INSERT`. Rows that share a list of scope windows write the list once. */
export function toColumns(rows: ReadonlyArray<LedgerRow>): ReadonlyArray<unknown> {
  const firsts = new Map<LedgerRow['scopeWindows'], number>();
  const scopeWindows: ScopeWindow[] = [];
  for (const row of rows) {
    if (firsts.has(row.scopeWindows)) continue;
    firsts.set(row.scopeWindows, scopeWindows.length + 1);
    scopeWindows.push(...row.scopeWindows);
  }
  const first = (row: LedgerRow): number => firsts.get(row.scopeWindows) ?? 0;
  return [
    literal(rows, ({ id }) => id),
    literal(rows, ({ kind }): LedgerRowKind => kind),
    literal(rows, ({ cost }) => cost),
    literal(rows, ({ tokens }) => tokens.input),
    literal(rows, ({ tokens }) => tokens.output),
    literal(rows, ({ tokens }) => tokens.cachedInput),
    literal(rows, ({ tokens }) => tokens.cacheWrite),
    rows.map(({ model }) => model),
    rows.map(({ identifier }) => identifier),
    literal(rows, ({ estimated }) => estimated),
    literal(rows, ({ settledAt }) => settledAt),
    literal(rows, first),
    literal(scopeWindows, ({ scopeId }) => scopeId),
    literal(scopeWindows, ({ window }) => window.start),
    literal(scopeWindows, ({ window }) => window.end),
    literal(rows, (row) => first(row) + row.scopeWindows.length - 1),
  ];
}
