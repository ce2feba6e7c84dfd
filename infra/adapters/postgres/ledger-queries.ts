// Queries of ledger rows: sums of counters, and the rows of ids, in statements of bounded size.
import type { QueryResultRow } from 'pg';
import type { BookedLedgerRow, LedgerQueries, LedgerRowKind } from '#core/ports/ledger-rows.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { timeOf } from '../process/ids.ts';
import { DAY } from './partitions.ts';
import { toNano } from './row.ts';
import { BACKGROUND_LIMIT, GATEWAY_LIMIT, type Query, type Session } from './session.ts';

/** The maximum ids in one statement. */
const MAX_IDS = 10_000;
/** The maximum windows in one query of sums: the reply must fit into the limit of a statement (reply-meter.ts). */
const MAX_WINDOWS = 100_000;

/** Queries on connections of the session. */
export function createQueries(session: Session): LedgerQueries {
  return queriesBy((size, ...call) => session.query(size > MAX_IDS ? BACKGROUND_LIMIT : GATEWAY_LIMIT, ...call));
}

/** Runs a statement with this number of ids or windows. */
type SizedQuery = <R extends QueryResultRow>(size: number, ...call: Parameters<Query>) => Promise<R[]>;

function queriesBy(ask: SizedQuery): LedgerQueries {
  const sumsOf = async (counters: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<ScopeSpend>> => {
    const rows = await ask<{ index: string; amount: string }>(counters.length, SUMS, toColumns(counters));
    const spent = new Map(rows.map(({ index, amount }) => [Number(index) - 1, toNano(amount)]));
    return counters.map((counter, index) => ({ ...counter, spent: spent.get(index) ?? 0n }));
  };
  const bookedOf = async (ids: ReadonlyArray<string>) => {
    const sorted = ids.toSorted();
    const rows = await ask<BookedRow>(ids.length, SELECT_BOOKED, [sorted, sorted[0], sorted.at(-1)]);
    return rows.map(({ id, kinds, costs }): [string, BookedLedgerRow[]] => [
      id,
      kinds.map((kind, index) => ({ kind, cost: toNano(costs[index] ?? '0') })),
    ]);
  };
  return {
    sums: (counters) => inPortions(counters, sumsOf, MAX_WINDOWS),
    bookedOf: async (ids) => {
      const byDay = Map.groupBy(ids, (id) => Math.floor((timeOf(id) ?? 0) / DAY));
      const booked = new Map<string, ReadonlyArray<BookedLedgerRow>>();
      for (const ofDay of byDay.values())
        for (const [id, rows] of await inPortions(ofDay, bookedOf)) booked.set(id, rows);
      return booked;
    },
  };
}

/** One array per column of a table of counters. */
export const toColumns = (counters: ReadonlyArray<ScopeWindow>): ReadonlyArray<unknown> => [
  counters.map(({ scopeId }) => scopeId),
  counters.map(({ window }) => window.start),
  counters.map(({ window }) => window.end),
];

interface BookedRow {
  readonly id: string;
  readonly kinds: ReadonlyArray<LedgerRowKind>;
  readonly costs: ReadonlyArray<string>;
}

/** Calls `ask` with portions of at most `size` elements, one after the other; returns all results in order. */
export async function inPortions<T, A>(
  all: ReadonlyArray<T>,
  ask: (portion: ReadonlyArray<T>) => Promise<ReadonlyArray<A>>,
  size = MAX_IDS,
): Promise<ReadonlyArray<A>> {
  const results: A[] = [];
  for (let from = 0; from < all.length; from += size)
    for (const result of await ask(all.slice(from, from + size))) results.push(result);
  return results;
}

/**
 * Sums with rejected rows: a rejected row counts as spent until a person decides. It counts in the window that it
 * charged, and in a window that contains the time in its id: that one may have replaced the other by an edit.
 */
export const SUMS = `
select t.index, (coalesce(s.amount, 0) + coalesce(r.amount, 0))::text as amount
from unnest($1::uuid[], $2::bigint[], $3::bigint[]) with ordinality as t (scope_id, window_start, window_end, index)
  left join gateway_operator.sum s using (scope_id, window_start, window_end)
  left join lateral (
    select sum(cost) as amount from gateway_operator.entry_rejected cross join lateral json_array_elements(scope_windows) as scope_window
    where scope_ids @> array[t.scope_id::text] and scope_window ->> 'scopeId' = t.scope_id::text
      and (scope_window -> 'window' ->> 'start' = t.window_start::text and scope_window -> 'window' ->> 'end' = t.window_end::text
        or left(replace(id, '-', ''), 12) collate "C" >= lpad(to_hex(t.window_start), 12, '0')
          and left(replace(id, '-', ''), 12) collate "C" < lpad(to_hex(t.window_end), 12, '0'))
  ) r on true
where s.amount is not null or r.amount is not null`;

/**
 * Each day is asked for its own ids: PostgreSQL looks for all of them in each partition that their bounds do not
 * exclude.
 */
export const SELECT_BOOKED = `
select id, array_agg(kind order by kind) as kinds, array_agg(cost::text order by kind) as costs
from gateway_operator.ledger_row where id = any($1::uuid[]) and id >= $2::uuid and id <= $3::uuid group by id`;
