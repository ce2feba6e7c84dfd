// Recounts: the spend of a scope between two times, whatever windows its ledger rows name (LEDGER 5).
import type { Millis, Window } from '#core/ports/money.ts';
import type { Recount } from '#core/ports/registry.ts';
import { lowestId, monthOf, readDropped } from './partitions.ts';
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
 * hours come from `hour_sum`, the two edges from charges by the second: constant time for any number of rows. If the
 * charges of the first edge were dropped with their month, its whole hour counts: too much rather than too little. The
 * time in an id is of the process that made the reservation: a row may be on either side of an edge that is closer than
 * the difference of two clocks. Only the last window is remembered: a gateway that uses the old policy (for at most 5
 * s) after that window has ended counts only in the old window.
 */
export async function recount(query: Query, instanceUid: string, recounts: ReadonlyArray<Recount>): Promise<void> {
  await lockForRecount(query, instanceUid);
  const dropped = await readDropped(query);
  for (const { scopeId, window, from = scopeId } of recounts) {
    const edges = edgesOf(window, dropped.has(monthOf(window.start)));
    await query(RECOUNT, [scopeId, window.start, window.end, ...edges, from]);
  }
}

/**
 * The first and last whole hour, and the ids at which the first edge ends and the last edge begins. `isRounded`: the
 * hour of `start` counts as whole.
 */
export function edgesOf({ start, end }: Window, isRounded = false): ReadonlyArray<unknown> {
  const first = isRounded ? Math.floor(start / HOUR) : Math.ceil(start / HOUR);
  const last = Math.floor(end / HOUR);
  const [from, until] = [lowestId(start), lowestId(end)];
  // The window is inside one hour, so all of it is edge.
  if (first >= last) return [first, first, from, until, until, until];
  return [first, last, from, isRounded ? from : lowestId(first * HOUR), lowestId(last * HOUR), until];
}

export const RECOUNT = `
with counted as (
  select coalesce((select sum(amount) from gateway_operator.hour_sum
      where scope_id = $10 and hour >= $4::bigint and hour < $5::bigint), 0)
    + coalesce((select sum(cost) from gateway_operator.charge
      where scope_id = $10 and id >= $6::uuid and id < $7::uuid), 0)
    + coalesce((select sum(cost) from gateway_operator.charge
      where scope_id = $10 and id >= $8::uuid and id < $9::uuid), 0) as amount),
remembered as (
  insert into gateway_operator.recount (scope_id, window_start, window_end, from_id, until_id)
  values ($1, $2::bigint, $3::bigint, $6, $9)
  on conflict (scope_id) do update set window_start = $2::bigint, window_end = $3::bigint, from_id = $6, until_id = $9)
insert into gateway_operator.sum (scope_id, window_start, window_end, amount)
select $1, $2::bigint, $3::bigint, amount from counted
on conflict (scope_id, window_start, window_end) do update set amount = excluded.amount`;
