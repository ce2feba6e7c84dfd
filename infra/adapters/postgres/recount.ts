// Recounts: if a policy with another window is written, the spend of its scope between two times is computed, whatever
// windows the ledger rows name (LEDGER 5).
import type { Millis, Window } from '#core/ports/money.ts';
import type { Recount } from '#core/ports/registry.ts';
import { amountOf, type CountedHours, countHours, HOUR, type HourPart, hourOf, toHourParts } from './hour-parts.ts';
import { lowestId, readKeptFrom } from './partitions.ts';
import type { Query } from './session.ts';

/** Takes the lock of recounts: nothing is booked and no other recount runs until the transaction ends. */
export async function lockForRecount(query: Query, instanceUid: string): Promise<void> {
  await query(`select pg_advisory_xact_lock(${BOOKING_LOCK})`, [instanceUid]);
}

/**
 * Bookings of an instance share this lock, recounts take it exclusively: a batch is either wholly in a recount, or it
 * sees the recount and adds to the recounted window itself.
 */
export const BOOKING_LOCK = 'hashtextextended($1, 7203418867)';

/** The edges of recounts, as they were before the lock. */
export interface Edges {
  readonly keptFrom: Millis;
  readonly counted: CountedHours;
}

/**
 * Counts the edges of recounts, before the lock is taken: it may take seconds if many edges are in busy hours, and
 * bookings do not wait for it.
 */
export async function countEdges(query: Query, recounts: ReadonlyArray<Recount>): Promise<Edges> {
  await query(KEEP_DAYS);
  const keptFrom = await readKeptFrom(query);
  return { keptFrom, counted: await countHours(query, partsOf(recounts, keptFrom)) };
}

/**
 * No day is dropped from now until the end of the transaction. `only`: without it, each partition would be locked too.
 */
const KEEP_DAYS = 'lock table only gateway_operator.ledger_set, only gateway_operator.ledger_row in access share mode';

/**
 * Computes the sum of `window` from the ledger rows whose reservation was made inside it (the time in their id), and
 * remembers the window: rows of that time that are booked later and name another window are added to it too. Whole
 * hours come from `hour_sum`, the edges from the ledger rows of their hours. A window that begins before the first kept
 * day gets all that was spent before that day, with the opening balance (old-sums.ts): too much rather than too little.
 * The time in an id comes from the clock of the process that made the reservation, so a row near an edge may be on
 * either side of it. Only the last window is remembered: a gateway that uses the old policy (for at most 5 s) after
 * that window has ended counts only in the old window.
 *
 * Called under the lock. Edges in which something was booked after `countEdges` are counted again.
 */
export async function writeRecounts(
  query: Query,
  recounts: ReadonlyArray<Recount>,
  { keptFrom, counted: before }: Edges,
): Promise<void> {
  // A statement cannot write a row twice: of two recounts of a scope, the later one counts.
  const wanted = [...new Map(recounts.map((one) => [one.scopeId, one])).values()];
  const counted = await countHours(query, partsOf(wanted, keptFrom), before);
  await query(RECOUNT, [recountRows(wanted, keptFrom, counted)]);
}

/**
 * Counts those of these counters that were never counted: PostgreSQL has neither a sum of them nor a recount of their
 * scope. Bookings need not wait: a gateway uses such a counter only when it is counted, so nothing is booked in it
 * before. If two processes count the same counter, the first one writes.
 */
export async function countFirst(query: Query, recounts: ReadonlyArray<Recount>): Promise<void> {
  const { keptFrom, counted } = await countEdges(query, recounts);
  await query(COUNT_FIRST, [recountRows(recounts, keptFrom, counted)]);
}

/** The counters among these that were never counted. Returns their indexes, from 1. */
export const UNCOUNTED = `
select t.index::float8 as index
from unnest($1::uuid[], $2::bigint[], $3::bigint[]) with ordinality as t (scope_id, window_start, window_end, index)
where not exists (select from gateway_operator.recount r where r.scope_id = t.scope_id)
  and not exists (select from gateway_operator.sum s where s.scope_id = t.scope_id and s.window_start = t.window_start
    and s.window_end = t.window_end)`;

const partsOf = (recounts: ReadonlyArray<Recount>, keptFrom: Millis): ReadonlyArray<HourPart> =>
  recounts.flatMap((one) => spanOf(one, keptFrom).edges);

/** A window as whole hours from `first` until `last`, and the parts of hours before and after them. */
interface Span {
  readonly first: number;
  readonly last: number;
  readonly edges: ReadonlyArray<HourPart>;
}

function spanOf({ scopeId, window: { start, end }, from = scopeId }: Recount, keptFrom: Millis): Span {
  const last = hourOf(end);
  // The window begins before the kept days: it has no first edge, and all hours before the last edge count.
  if (start < keptFrom) return { first: 0, last, edges: toHourParts(from, last * HOUR, end) };
  const first = Math.ceil(start / HOUR);
  // The window has no whole hour: all of it is an edge.
  if (first >= last) return { first, last: first, edges: toHourParts(from, start, end) };
  return { first, last, edges: [...toHourParts(from, start, first * HOUR), ...toHourParts(from, last * HOUR, end)] };
}

/** The rows of `RECOUNT` as JSON. */
export function recountRows(recounts: ReadonlyArray<Recount>, keptFrom: Millis, counted: CountedHours): string {
  const rows = recounts.map((one) => {
    const { scopeId, window, from = scopeId } = one;
    const { start, end }: Window = window;
    const { first, last, edges } = spanOf(one, keptFrom);
    const amount = edges.reduce((sum, edge) => sum + amountOf(counted, edge), 0n);
    return [scopeId, start, end, first, last, lowestId(start), lowestId(end), from, start < keptFrom, `${amount}`];
  });
  return JSON.stringify(rows);
}

/** Windows of one VirtualKey often begin or end together: their whole hours are summed once. */
const recountBy = ({ onRecount, onSum }: { readonly onRecount: string; readonly onSum: string }) => `
with wanted as materialized (
  select (w ->> 0)::uuid as scope_id, (w ->> 1)::bigint as window_start, (w ->> 2)::bigint as window_end,
    (w ->> 3)::bigint as first_hour, (w ->> 4)::bigint as last_hour, (w ->> 5)::uuid as from_id, (w ->> 6)::uuid as until_id,
    (w ->> 7)::uuid as source, (w ->> 8)::boolean as has_opening, (w ->> 9)::numeric as edges
  from jsonb_array_elements($1::jsonb) as w),
whole_hours as materialized (
  select *, coalesce((select sum(amount) from gateway_operator.hour_sum h
      where h.scope_id = source and hour >= first_hour and hour < last_hour), 0) as amount
  from (select distinct source, first_hour, last_hour from wanted) as hours),
counted as (
  select scope_id, window_start, window_end, whole_hours.amount + edges
    + coalesce((select o.amount from gateway_operator.opening_balance o
      where o.scope_id = source and has_opening), 0) as amount
  from wanted join whole_hours using (source, first_hour, last_hour)),
remembered as (
  insert into gateway_operator.recount (scope_id, window_start, window_end, from_id, until_id)
  select scope_id, window_start, window_end, from_id, until_id from wanted
  on conflict (scope_id) do ${onRecount})
insert into gateway_operator.sum (scope_id, window_start, window_end, amount)
select scope_id, window_start, window_end, amount from counted
on conflict (scope_id, window_start, window_end) do ${onSum}`;

export const RECOUNT = recountBy({
  onRecount: `update set window_start = excluded.window_start, window_end = excluded.window_end, from_id = excluded.from_id,
    until_id = excluded.until_id`,
  onSum: 'update set amount = excluded.amount',
});

export const COUNT_FIRST = recountBy({ onRecount: 'nothing', onSum: 'nothing' });
