// Recounts: if a policy with another window is written, the spend of its scope between two times is computed, whatever
// windows the ledger rows name (LEDGER 5).
import type { Millis, Window } from '#core/ports/money.ts';
import type { Recount } from '#core/ports/registry.ts';
import { DAY, lowestId, readKeptFrom } from './partitions.ts';
import type { Query } from './session.ts';

const HOUR: Millis = 3_600_000;

/** Hours since the Unix epoch: the unit of `hour_sum`. */
export function hourOf(time: Millis): number {
  return Math.floor(time / HOUR);
}

/** Takes the lock of recounts: nothing is booked and no other recount runs until the transaction ends. */
export async function lockForRecount(query: Query, instanceUid: string): Promise<void> {
  await query(`select pg_advisory_xact_lock(${BOOKING_LOCK})`, [instanceUid]);
}

/**
 * Bookings of an instance share this lock, recounts take it exclusively: a batch is either wholly in a recount, or it
 * sees the recount and adds to the recounted window itself.
 */
export const BOOKING_LOCK = 'hashtextextended($1, 7203418867)';

/**
 * Computes the sum of `window` from the ledger rows whose reservation was made inside it (the time in their id), and
 * remembers the window: rows of that time that are booked later and name another window are added to it too. Whole
 * hours come from `hour_sum`, the two edges from `second_sum`: constant time for any number of rows. A window that
 * begins before the first kept day gets all that was spent before that day, with the opening balance (old-sums.ts): too
 * much rather than too little. The time in an id comes from the clock of the process that made the reservation, so a
 * row near an edge may be on either side of it. Only the last window is remembered: a gateway that uses the old policy
 * (for at most 5 s) after that window has ended counts only in the old window.
 */
export async function recount(query: Query, instanceUid: string, recounts: ReadonlyArray<Recount>): Promise<void> {
  await lockForRecount(query, instanceUid);
  // No day is dropped between this read and the statements. `only`: without it, each partition would be locked too.
  await query('lock table only gateway_operator.second_sum in access share mode');
  const keptFrom = await readKeptFrom(query);
  // A statement cannot write a row twice: of two recounts of a scope, the later one counts.
  const byScope = new Map(recounts.map((one) => [one.scopeId, one]));
  const byDay = Map.groupBy(byScope.values(), ({ window }) => Math.floor(window.start / DAY));
  for (const ofDay of byDay.values()) await query(RECOUNT, recountValues(ofDay, keptFrom));
}

/**
 * The values of `RECOUNT`: the recounts, and the bounds of all first and of all last edges. These windows begin on one
 * day, so that the bounds exclude the other partitions when PostgreSQL plans: it would lock all of them.
 */
export function recountValues(recounts: ReadonlyArray<Recount>, keptFrom: Millis = 0): ReadonlyArray<unknown> {
  const edges = recounts.map(({ window }) => edgesOf(window, window.start < keptFrom));
  const rows = recounts.map(({ scopeId, window: { start, end }, from = scopeId }, index) => {
    const { first, last, ids } = edges[index] as Edges;
    return [scopeId, start, end, first, last, ...ids, from, start < keptFrom];
  });
  const [begins, firsts, lasts, ends] = [0, 1, 2, 3].map((index) => edges.map(({ ids }) => ids[index]).sort());
  return [JSON.stringify(rows), begins?.[0], firsts?.at(-1), lasts?.[0], ends?.at(-1)];
}

/**
 * The first and last whole hour, and the ids at which the first edge ends and the last edge begins. `hasOpening`: all
 * hours before the last edge count, and the window has no first edge.
 */
function edgesOf({ start, end }: Window, hasOpening: boolean): Edges {
  const last = Math.floor(end / HOUR);
  const [from, until] = [lowestId(start), lowestId(end)];
  if (hasOpening) return { first: 0, last, ids: [from, from, lowestId(last * HOUR), until] };
  const first = Math.ceil(start / HOUR);
  // The window is inside one hour, so all of it is edge.
  if (first >= last) return { first, last: first, ids: [from, until, until, until] };
  return { first, last, ids: [from, lowestId(first * HOUR), lowestId(last * HOUR), until] };
}

/** Hours, and the ids at which the first edge begins and ends, and the last edge begins and ends. */
interface Edges {
  readonly first: number;
  readonly last: number;
  readonly ids: readonly [string, string, string, string];
}

export const RECOUNT = `
with wanted as (
  select (w ->> 0)::uuid as scope_id, (w ->> 1)::bigint as window_start, (w ->> 2)::bigint as window_end,
    (w ->> 3)::bigint as first_hour, (w ->> 4)::bigint as last_hour, (w ->> 5)::uuid as from_id,
    (w ->> 6)::uuid as first_edge, (w ->> 7)::uuid as last_edge, (w ->> 8)::uuid as until_id, (w ->> 9)::uuid as source,
    (w ->> 10)::boolean as has_opening
  from jsonb_array_elements($1::jsonb) as w),
counted as (
  select scope_id, window_start, window_end, coalesce((select sum(amount) from gateway_operator.hour_sum h
      where h.scope_id = source and hour >= first_hour and hour < last_hour), 0)
    + coalesce((select sum(amount) from gateway_operator.second_sum s
      where s.scope_id = source and s.from_id >= wanted.from_id and s.from_id < first_edge
        and s.from_id >= $2::uuid and s.from_id < $3::uuid), 0)
    + coalesce((select sum(amount) from gateway_operator.second_sum s
      where s.scope_id = source and s.from_id >= last_edge and s.from_id < until_id
        and s.from_id >= $4::uuid and s.from_id < $5::uuid), 0)
    + coalesce((select o.amount from gateway_operator.opening_balance o
      where o.scope_id = source and has_opening), 0) as amount
  from wanted),
remembered as (
  insert into gateway_operator.recount (scope_id, window_start, window_end, from_id, until_id)
  select scope_id, window_start, window_end, from_id, until_id from wanted
  on conflict (scope_id) do update set window_start = excluded.window_start, window_end = excluded.window_end,
    from_id = excluded.from_id, until_id = excluded.until_id)
insert into gateway_operator.sum (scope_id, window_start, window_end, amount)
select scope_id, window_start, window_end, amount from counted
on conflict (scope_id, window_start, window_end) do update set amount = excluded.amount`;
