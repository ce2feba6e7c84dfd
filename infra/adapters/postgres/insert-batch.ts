// The statements that write a batch of an account: its sets and its ledger rows in portions, then the additions of new
// rows to sums and hours, in portions too.
import type { LedgerRow, LedgerRowKind } from '#core/ports/ledger-rows.ts';
import { createAdditions } from './additions.ts';
import { type BookingTransaction, insertAll, refusalIn } from './booking.ts';
import { inPortions } from './ledger-queries.ts';
import {
  ABSENT_SETS,
  createSets,
  INSERT_SETS,
  type LedgerSet,
  type LedgerSets,
  sortSets,
  toSetColumns,
} from './ledger-sets.ts';
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
  /** The sets of the rows, which were written before the transaction. Absent: they are written in it. */
  readonly sets?: LedgerSets;
}

/**
 * Writes the sets of a batch that this process does not know and that are not there, in the order in which all bookings
 * write them. Before the transaction of the batch, so that no other process waits for them until it is booked: sets
 * whose batch is not booked are deleted with their day.
 */
export async function writeSets(
  query: Query,
  instanceUid: string,
  sets: LedgerSets,
  rows: ReadonlyArray<LedgerRow>,
): Promise<ReadonlyArray<LedgerSet>> {
  const ofRows = await inPortions(rows, async (portion) => sets.of(portion), PORTION);
  const unknown = sortSets(ofRows.filter(({ isKnown }) => !isKnown));
  const absent = await inPortions(unknown, (portion) => absentSets(query, portion), PORTION);
  await insertSets(query, instanceUid, absent);
  return unknown;
}

/**
 * Writes the rows that are not there yet and adds them to the sums. Returns the rejected ids. Batches cannot deadlock,
 * because all of them write in one order: sets by id, rows by id, then sums by scope, all of `sum` before `hour_sum`,
 * and the row of the epoch last. Usage is a new row, which no other batch waits for.
 */
export async function insertBatch(
  booking: BookingTransaction,
  instanceUid: string,
  { rows, epoch, storeCalls, sets: written }: RowsToInsert,
): Promise<ReadonlyArray<string>> {
  const { query, partitions } = booking;
  const sorted = rows.toSorted(byIdAndKind);
  await partitions.ensureFor(
    query,
    sorted.map(({ id }) => id),
  );
  const sets = written ?? createSets(instanceUid);
  // If PostgreSQL refuses a set, each portion writes its own sets, and the bad row is found by halves.
  if (written === undefined)
    await refusalIn(query, async () => void (await writeSets(query, instanceUid, sets, sorted)));
  const additions = createAdditions();
  const insert = async (portion: ReadonlyArray<LedgerRow>): Promise<void> =>
    additions.add(await insertNew(query, instanceUid, portion, sets));
  const rejected = await inPortions(sorted, (portion) => insertAll(booking, instanceUid, portion, insert), PORTION);
  for (const { columns, isLast } of additions.portions())
    await query(ADD_SUMS, [...columns, instanceUid, epoch, isLast ? storeCalls : 0]);
  return rejected;
}

async function absentSets(query: Query, sets: ReadonlyArray<LedgerSet>): Promise<ReadonlyArray<LedgerSet>> {
  const ids = sets.map(({ id }) => id);
  const rows = await query<{ id: string }>(ABSENT_SETS, [`{${ids.join(',')}}`, ids[0], ids.at(-1)]);
  return among(sets, new Set(rows.map(({ id }) => id)));
}

const among = (sets: ReadonlyArray<LedgerSet>, ids: ReadonlySet<string>): ReadonlyArray<LedgerSet> =>
  ids.size === 0 ? [] : sets.filter(({ id }) => ids.has(id));

async function insertSets(query: Query, instanceUid: string, sets: ReadonlyArray<LedgerSet>): Promise<void> {
  await inPortions(sets, (portion) => query(INSERT_SETS, [instanceUid, ...toSetColumns(portion)]), PORTION);
}

const byIdAndKind = (one: LedgerRow, other: LedgerRow): number => {
  if (one.id !== other.id) return one.id < other.id ? -1 : 1;
  return one.kind < other.kind ? -1 : 1;
};

/**
 * Inserts rows; returns those that are new. If the same (id, kind) comes twice, the first row counts. Sets that are
 * gone, or were never written, are written first.
 */
async function insertNew(
  query: Query,
  instanceUid: string,
  rows: ReadonlyArray<LedgerRow>,
  sets: LedgerSets,
): Promise<ReadonlyArray<LedgerRow>> {
  const values = toRowColumns(rows, sets.idOf);
  const [first] = await query<InsertResult>(INSERT_ROWS, values);
  const absent = first?.absent.length ? among(sortSets(sets.of(rows)), new Set(first.absent)) : [];
  await insertSets(query, instanceUid, absent);
  const [row] = absent.length === 0 ? [first] : await query<InsertResult>(INSERT_ROWS, values);
  if (row === undefined || row.newKeys === null) return rows;
  const newKeys = new Set(row.newKeys);
  return rows.filter(({ id, kind }) => newKeys.delete(id + kind));
}

interface InsertResult {
  readonly newKeys: ReadonlyArray<string> | null;
  readonly absent: ReadonlyArray<string>;
}

/**
 * Returns the keys of the new rows; null if all rows are new. If a set is absent, inserts nothing and returns the
 * absent ones. So every booked row has its set, and no day is dropped between the look-up and the end of the
 * transaction. The bounds of the ids exclude the other days. `is null`, not `not exists`: each set is looked up in its
 * index, however many sets the day has.
 */
export const INSERT_ROWS = `
with t as materialized (
  select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[]) as t (id, set_id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, settled_at)),
absent as materialized (
  select set_id from (select distinct set_id from t) as named
  where (select true from gateway_operator.ledger_set s where s.id = set_id and s.id >= $10::uuid and s.id <= $11::uuid) is null),
inserted as (
  insert into gateway_operator.ledger_row (id, set_id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
      settled_at)
  select id, set_id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens,
    to_timestamp(settled_at / 1000.0::float8)
  from t where not exists (select from absent)
  on conflict (id, kind) do nothing returning id, kind)
select case when count(*) < cardinality($1::uuid[]) then coalesce(array_agg(id::text || kind), '{}') end as "newKeys",
  array(select set_id::text from absent) as absent
from inserted`;

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
  returning 1),
usage as (
  insert into gateway_operator.usage_added (instance_uid, scope_ids, models, model_indexes, days, requests, input_tokens, output_tokens,
      cached_input_tokens, cache_write_tokens, costs)
  select $19, $9::uuid[], $10::text[], $11::smallint[], $12::int[], $13::int[], $14::numeric[], $15::numeric[], $16::numeric[],
    $17::numeric[], $18::numeric[]
  where (select count(*) from hours) >= 0 and cardinality($9::uuid[]) > 0
  returning 1)
update gateway_operator.store_epoch set store_calls = $21
where (select count(*) from usage) >= 0 and instance_uid = $19 and epoch = $20 and store_calls < $21`;

/** One array per column of `INSERT_ROWS`, and the bounds of the sets. */
export function toRowColumns(rows: ReadonlyArray<LedgerRow>, setIdOf: LedgerSets['idOf']): ReadonlyArray<unknown> {
  const setIds = rows.map(setIdOf);
  return [
    literal(rows, ({ id }) => id),
    `{${setIds.join(',')}}`,
    literal(rows, ({ kind }): LedgerRowKind => kind),
    literal(rows, ({ cost }) => cost),
    literal(rows, ({ tokens }) => tokens.input),
    literal(rows, ({ tokens }) => tokens.output),
    literal(rows, ({ tokens }) => tokens.cachedInput),
    literal(rows, ({ tokens }) => tokens.cacheWrite),
    literal(rows, ({ settledAt }) => settledAt),
    setIds.reduce((low, id) => (id < low ? id : low), setIds[0] ?? ''),
    setIds.reduce((high, id) => (id > high ? id : high), ''),
  ];
}
