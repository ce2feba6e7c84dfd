// The statements that write a batch of an account: its entries, in portions, then what the new ones add to sums and
// hours.
import type { LedgerRow, LedgerRowKind } from '#core/ports/ledger-rows.ts';
import type { Millis, Nano, Window } from '#core/ports/money.ts';
import type { ScopeId, ScopeWindow } from '#core/ports/policy.ts';
import { timeOf } from '../process/ids.ts';
import { type Booking, insertAll } from './booking.ts';
import { inPortions } from './ledger-queries.ts';
import { lowestId } from './partitions.ts';
import { hourOf } from './recount.ts';
import type { Query } from './session.ts';

/**
 * After an outage a batch may hold 100,000 entries: each statement keeps its limit, and the event loop continues
 * between two.
 */
const PORTION = 2500;

interface InsertResult {
  readonly epoch: number;
  readonly calls: number;
  readonly entries: ReadonlyArray<LedgerRow>;
}

/**
 * Writes what is not there yet and adds it to the sums. Returns the rejected ids. Batches wait for each other in one
 * direction only, however many portions they have: entries are written in id order, then sums in scope order, all of
 * `sum` before any of `hour_sum`, the epoch's row last.
 */
export async function insertBatch(
  booking: Booking,
  instanceUid: string,
  { entries, epoch, calls }: InsertResult,
): Promise<ReadonlyArray<string>> {
  const { query, months } = booking;
  const sorted = entries.toSorted(byIdAndKind);
  await months.ensure(
    query,
    sorted.map(({ id }) => id),
  );
  const added: LedgerRow[] = [];
  const insert = async (some: ReadonlyArray<LedgerRow>): Promise<void> => {
    for (const entry of await insertNew(query, instanceUid, some)) added.push(entry);
  };
  const rejected = await inPortions(sorted, (some) => insertAll(booking, instanceUid, some, insert), PORTION);
  await query(ADD, [...toAdditions(added), instanceUid, epoch, calls]);
  return rejected;
}

const byIdAndKind = (one: LedgerRow, other: LedgerRow): number => {
  if (one.id !== other.id) return one.id < other.id ? -1 : 1;
  return one.kind < other.kind ? -1 : 1;
};

/** Inserts entries; returns those that were not there. The same (id, kind) twice is one entry: the first. */
async function insertNew(
  query: Query,
  instanceUid: string,
  entries: ReadonlyArray<LedgerRow>,
): Promise<ReadonlyArray<LedgerRow>> {
  const [row] = await query<{ some: ReadonlyArray<string> | null }>(INSERT, [instanceUid, ...toColumns(entries)]);
  if (row === undefined || row.some === null) return entries;
  const fresh = new Set(row.some);
  return entries.filter(({ id, kind }) => fresh.delete(id + kind));
}

/** Answers the new entries only where others were there. */
export const INSERT = `
with inserted as (
  insert into gateway_operator.entry (instance_uid, id, kind, cost, input_tokens, output_tokens, cached_input_tokens,
      cache_write_tokens, model, identifier, estimated, settled_at, scope_ids, window_starts, window_ends)
  select $1, id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, model, identifier, estimated,
    to_timestamp(settled_at / 1000.0::float8), ($14::uuid[])[first:last], ($15::bigint[])[first:last], ($16::bigint[])[first:last]
  from unnest($2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[],
      $11::boolean[], $12::bigint[], $13::int[], $17::int[])
    as t (id, kind, cost, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, model, identifier, estimated,
      settled_at, first, last)
  on conflict (id, kind) do nothing returning id, kind)
select case when count(*) < cardinality($2::uuid[]) then coalesce(array_agg(id::text || kind), '{}') end as some from inserted`;

/**
 * New entries are added up by scope, window and second; charges, sums and hours are made of that. An entry of a
 * recounted time that names another window counts in both.
 */
export const ADD = `
with added as materialized (
  select scope_id, window_start, window_end, second, hour, sum(amount) as amount
  from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::uuid[], $5::bigint[], $6::numeric[])
    as t (scope_id, window_start, window_end, second, hour, amount)
  group by scope_id, window_start, window_end, second, hour),
kept as (
  insert into gateway_operator.charge (scope_id, id, cost) select scope_id, second, amount from added),
counted as (
  select scope_id, window_start, window_end, amount from added
  union all
  select r.scope_id, r.window_start, r.window_end, a.amount
  from added a join gateway_operator.recount r on r.scope_id = a.scope_id
  where a.second >= r.from_id and a.second < r.until_id and (a.window_start, a.window_end) <> (r.window_start, r.window_end)),
summed as (
  insert into gateway_operator.sum as s (scope_id, window_start, window_end, amount)
  select scope_id, window_start, window_end, sum(amount) from counted
  group by scope_id, window_start, window_end order by scope_id, window_start, window_end
  on conflict (scope_id, window_start, window_end) do update set amount = s.amount + excluded.amount
  returning 1),
hours as (
  insert into gateway_operator.hour_sum as h (scope_id, hour, amount)
  select scope_id, hour, sum(amount) from added
  where (select count(*) from summed) > 0
  group by scope_id, hour order by scope_id, hour
  on conflict (scope_id, hour) do update set amount = h.amount + excluded.amount
  returning 1)
update gateway_operator.store_epoch set calls = $9
where (select count(*) from hours) >= 0 and instance_uid = $7 and epoch = $8 and calls < $9`;

/** One array per column of `INSERT`. Charges of entries that share a list are written once. */
export function toColumns(entries: ReadonlyArray<LedgerRow>): ReadonlyArray<unknown> {
  const firsts = new Map<LedgerRow['scopeWindows'], number>();
  const charges: ScopeWindow[] = [];
  for (const entry of entries) {
    if (firsts.has(entry.scopeWindows)) continue;
    firsts.set(entry.scopeWindows, charges.length + 1);
    charges.push(...entry.scopeWindows);
  }
  const first = (entry: LedgerRow): number => firsts.get(entry.scopeWindows) ?? 0;
  return [
    literal(entries, ({ id }) => id),
    literal(entries, ({ kind }): LedgerRowKind => kind),
    literal(entries, ({ cost }) => cost),
    literal(entries, ({ tokens }) => tokens.input),
    literal(entries, ({ tokens }) => tokens.output),
    literal(entries, ({ tokens }) => tokens.cachedInput),
    literal(entries, ({ tokens }) => tokens.cacheWrite),
    entries.map(({ model }) => model),
    entries.map(({ identifier }) => identifier),
    literal(entries, ({ estimated }) => estimated),
    literal(entries, ({ settledAt }) => settledAt),
    literal(entries, first),
    literal(charges, ({ scopeId }) => scopeId),
    literal(charges, ({ window }) => window.start),
    literal(charges, ({ window }) => window.end),
    literal(entries, (entry) => first(entry) + entry.scopeWindows.length - 1),
  ];
}

const SECOND: Millis = 1000;

/**
 * One array per column of what entries add: a row for each counter and second. Entries come in the order of their time,
 * so the latest row of a scope nearly always fits; a counter that has two rows of a second is added up by `ADD`.
 */
export function toAdditions(entries: ReadonlyArray<LedgerRow>): ReadonlyArray<string> {
  const latest = new Map<ScopeId, Addition>();
  const rows: Addition[] = [];
  for (const { id, scopeWindows, cost } of entries) {
    const time = timeOf(id) ?? 0;
    const second = time - (time % SECOND);
    for (const { scopeId, window } of scopeWindows) {
      const row = latest.get(scopeId);
      if (row?.second === second && row.start === window.start && row.end === window.end) row.amount += cost;
      else {
        const next = { scopeId, start: window.start, end: window.end, second, amount: cost };
        latest.set(scopeId, next);
        rows.push(next);
      }
    }
  }
  return [
    literal(rows, ({ scopeId }) => scopeId),
    literal(rows, ({ start }) => start),
    literal(rows, ({ end }) => end),
    literal(rows, ({ second }) => lowestId(second)),
    literal(rows, ({ second }) => hourOf(second)),
    literal(rows, ({ amount }) => amount),
  ];
}

interface Addition extends Window {
  readonly scopeId: ScopeId;
  readonly second: Millis;
  amount: Nano;
}

/**
 * PostgreSQL's array text, exact for numbers of any size and a third of the client library's time. Not for free text: a
 * comma would be one element more, and columns of unequal length are refused (the missing ones are null).
 */
function literal<T>(rows: ReadonlyArray<T>, column: (row: T) => string | number | bigint | boolean): string {
  return `{${rows.map(column).join(',')}}`;
}
