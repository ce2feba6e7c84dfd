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
 * hours come from `hour_sum`, the two edges from the ledger rows of the first and the last hour. A window that begins
 * before the first kept day gets all that was spent before that day, with the opening balance (old-sums.ts): too much
 * rather than too little. The time in an id comes from the clock of the process that made the reservation, so a row
 * near an edge may be on either side of it. Only the last window is remembered: a gateway that uses the old policy (for
 * at most 5 s) after that window has ended counts only in the old window.
 */
export async function recount(query: Query, instanceUid: string, recounts: ReadonlyArray<Recount>): Promise<void> {
  await lockForRecount(query, instanceUid);
  // No day is dropped between this read and the statements. `only`: without it, each partition would be locked too.
  await query('lock table only gateway_operator.ledger_set, only gateway_operator.ledger_row in access share mode');
  const keptFrom = await readKeptFrom(query);
  // A statement cannot write a row twice: of two recounts of a scope, the later one counts.
  const byScope = new Map(recounts.map((one) => [one.scopeId, one]));
  const byDay = Map.groupBy(byScope.values(), ({ window }) => Math.floor(window.start / DAY));
  for (const ofDay of byDay.values())
    for (const portion of toPortions(ofDay)) await query(RECOUNT, recountValues(portion, keptFrom));
}

/**
 * The edges that one statement sums. Where more than `MAX_ROWS` rows of a busy scope are in a busy edge, one takes a
 * tenth of a second for 360,000 rows an hour.
 */
const MAX_EDGES = 8;

/** Portions with at most `MAX_EDGES` different edges, so that each statement ends within its time limit. */
function toPortions(recounts: ReadonlyArray<Recount>): ReadonlyArray<ReadonlyArray<Recount>> {
  const edgeOf = ({ scopeId, window: { start, end }, from = scopeId }: Recount) => `${from} ${start} ${end}`;
  const byEdge = [...Map.groupBy(recounts, edgeOf).values()];
  const portions: Recount[][] = [];
  for (let from = 0; from < byEdge.length; from += MAX_EDGES)
    portions.push(byEdge.slice(from, from + MAX_EDGES).flat());
  return portions;
}

/**
 * The values of `RECOUNT`: the recounts, and the days of all first and of all last edges. These windows begin on one
 * day, so that the days exclude the other partitions when PostgreSQL plans: it would lock all of them.
 */
export function recountValues(recounts: ReadonlyArray<Recount>, keptFrom: Millis = 0): ReadonlyArray<unknown> {
  const edges = recounts.map(({ window }) => edgesOf(window, window.start < keptFrom));
  const rows = recounts.map(({ scopeId, window: { start, end }, from = scopeId }, index) => {
    const { first, last, times } = edges[index] as Edges;
    const days = [...daysOf(times[0], times[1]), ...daysOf(times[2], times[3])].map(lowestId);
    return [scopeId, start, end, first, last, ...times.map(lowestId), from, start < keptFrom, ...days];
  });
  const bounds = [0, 2].flatMap((index) => {
    const days = edges.flatMap(({ times }) => daysOf(times[index] ?? 0, times[index + 1] ?? 0));
    return [Math.min(...days), Math.max(...days)].map(lowestId);
  });
  return [JSON.stringify(rows), ...bounds];
}

/** The begin of the first and the end of the last day of an edge. An empty edge has no day. */
function daysOf(from: Millis, until: Millis): readonly [Millis, Millis] {
  const begin = Math.floor(from / DAY) * DAY;
  return [begin, from < until ? Math.ceil(until / DAY) * DAY : begin];
}

/**
 * The first and last whole hour, and the times at which the edges begin and end. `hasOpening`: all hours before the
 * last edge count, and the window has no first edge.
 */
function edgesOf({ start, end }: Window, hasOpening: boolean): Edges {
  const last = Math.floor(end / HOUR);
  if (hasOpening) return { first: 0, last, times: [start, start, last * HOUR, end] };
  const first = Math.ceil(start / HOUR);
  // The window has no whole hour, so all of it is edge.
  if (first >= last) return { first, last: first, times: [start, end, end, end] };
  return { first, last, times: [start, first * HOUR, last * HOUR, end] };
}

/** Hours, and the times at which the first edge begins and ends, and the last edge begins and ends. */
interface Edges {
  readonly first: number;
  readonly last: number;
  readonly times: readonly [Millis, Millis, Millis, Millis];
}

/** The maximum ledger rows that are read to choose how an edge is summed. */
const MAX_ROWS = 5000;

interface EdgeColumns {
  /** The ids between which the rows of the edge are, and the ids between which the sets of its days are. */
  readonly ids: readonly [string, string];
  readonly days: readonly [string, string];
  /** Constants around the days of all edges. */
  readonly bounds: readonly [string, string];
}

/**
 * The sum of the ledger rows of an edge, which is less than two hours. If all scopes together have at most `MAX_ROWS`
 * there, these are read, and the set of each is looked up. Else the rows of the scope are found by its sets of the day;
 * if these are more than `MAX_ROWS`, the rows of the edge are read even so. Each way costs the same for any number of
 * sets and rows of other hours, also if PostgreSQL estimates them wrongly.
 */
const edgeSum = ({ ids: [from, until], days: [fromDay, untilDay], bounds: [first, last] }: EdgeColumns) => {
  const ofEdge = `r.id >= ${from} and r.id < ${until} and r.id >= ${first} and r.id < ${last}`;
  const ofDay = `s.id >= ${fromDay} and s.id < ${untilDay} and s.id >= ${first} and s.id < ${last}`;
  return `
  (select case when is_small or count(of_scope.id) > ${MAX_ROWS}
      then (with by_set as materialized (
          select r.set_id, sum(r.cost) as cost from gateway_operator.ledger_row r where ${ofEdge} group by r.set_id)
        select coalesce(sum(cost), 0) from by_set
        where (select s.scope_ids @> array[source] from gateway_operator.ledger_set s where s.id = set_id and ${ofDay}))
      else coalesce(sum(of_scope.cost) filter (where of_scope.id >= ${from} and of_scope.id < ${until}), 0) end
    from (select count(*) <= ${MAX_ROWS} as is_small
        from (select from gateway_operator.ledger_row r where ${ofEdge} limit ${MAX_ROWS + 1}) as of_edge) as edge
      left join lateral (
        select r.id, r.cost from gateway_operator.ledger_set s join gateway_operator.ledger_row r on r.set_id = s.id
        where s.scope_ids @> array[source] and ${ofDay} and r.id >= ${first} and r.id < ${last} and not is_small
        limit ${MAX_ROWS + 1}) as of_scope on true
    group by is_small)`;
};

/** Windows of one VirtualKey often begin or end together: their hours and each edge are summed once. */
export const RECOUNT = `
with wanted as materialized (
  select (w ->> 0)::uuid as scope_id, (w ->> 1)::bigint as window_start, (w ->> 2)::bigint as window_end,
    (w ->> 3)::bigint as first_hour, (w ->> 4)::bigint as last_hour, (w ->> 5)::uuid as from_id,
    (w ->> 6)::uuid as first_edge, (w ->> 7)::uuid as last_edge, (w ->> 8)::uuid as until_id, (w ->> 9)::uuid as source,
    (w ->> 10)::boolean as has_opening, (w ->> 11)::uuid as first_day, (w ->> 12)::uuid as after_first_day,
    (w ->> 13)::uuid as last_day, (w ->> 14)::uuid as after_last_day
  from jsonb_array_elements($1::jsonb) as w),
first_edges as materialized (
  select *, ${edgeSum({ ids: ['from_id', 'first_edge'], days: ['first_day', 'after_first_day'], bounds: ['$2::uuid', '$3::uuid'] })} as amount
  from (select distinct source, from_id, first_edge, first_day, after_first_day from wanted) as edge),
last_edges as materialized (
  select *, ${edgeSum({ ids: ['last_edge', 'until_id'], days: ['last_day', 'after_last_day'], bounds: ['$4::uuid', '$5::uuid'] })} as amount
  from (select distinct source, last_edge, until_id, last_day, after_last_day from wanted) as edge),
whole_hours as materialized (
  select *, coalesce((select sum(amount) from gateway_operator.hour_sum h
      where h.scope_id = source and hour >= first_hour and hour < last_hour), 0) as amount
  from (select distinct source, first_hour, last_hour from wanted) as hours),
counted as (
  select scope_id, window_start, window_end, whole_hours.amount + first_edges.amount + last_edges.amount
    + coalesce((select o.amount from gateway_operator.opening_balance o
      where o.scope_id = source and has_opening), 0) as amount
  from wanted join whole_hours using (source, first_hour, last_hour)
    join first_edges using (source, from_id, first_edge) join last_edges using (source, last_edge, until_id)),
remembered as (
  insert into gateway_operator.recount (scope_id, window_start, window_end, from_id, until_id)
  select scope_id, window_start, window_end, from_id, until_id from wanted
  on conflict (scope_id) do update set window_start = excluded.window_start, window_end = excluded.window_end,
    from_id = excluded.from_id, until_id = excluded.until_id)
insert into gateway_operator.sum (scope_id, window_start, window_end, amount)
select scope_id, window_start, window_end, amount from counted
on conflict (scope_id, window_start, window_end) do update set amount = excluded.amount`;
