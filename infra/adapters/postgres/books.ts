// The books: what has been charged, read and booked, with the locks of an instance's ledger (LEDGER 2, 6, 8).
import type { QueryResultRow } from 'pg';
import type { Booked, Books, Entry, EntryKind, Reading } from '#core/ports/books.ts';
import type { ScopeId, ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { type BookingDeps, bookIn, inBooking } from './booking.ts';
import { lockForRecount } from './recount.ts';
import { BACKGROUND_LIMIT, GATEWAY_LIMIT, type Query } from './session.ts';

/** How much one statement is given, so that it keeps its limit whatever a caller has collected. */
const BATCH = 5000;
const QUESTION = 10_000;
/** Windows in one query of sums: all that a sweep asks for, within reason. */
const SUMS_QUESTION = 200_000;

export function createBooks(deps: BookingDeps): Books {
  const { session } = deps;
  return {
    book: async (instanceUid, entries, marks) => {
      const book = async (batch: ReadonlyArray<Entry>) => [
        await inBooking(deps, (booking) => bookIn(booking, instanceUid, batch, marks)),
      ];
      const done = await inPortions(entries, BATCH, book);
      return { ...done.at(-1), rejected: done.flatMap(({ rejected }) => rejected) };
    },
    ...readingBy((size, ...call) => session.query(size > QUESTION ? BACKGROUND_LIMIT : GATEWAY_LIMIT, ...call)),
    withLedgerLock: (instanceUid, work) =>
      session.transaction(GATEWAY_LIMIT, (query) => inLedgerLock(query, instanceUid, work)),
    scopesOfOtherInstances: async (instanceUid, scopes) => {
      const ask = (portion: ReadonlyArray<ScopeId>) =>
        session.query<{ scope: ScopeId }>(BACKGROUND_LIMIT, ELSEWHERE, [instanceUid, portion]);
      return new Set((await inPortions(scopes, QUESTION, ask)).map(({ scope }) => scope));
    },
    tryErrandLock: (instanceUid, errand, work) =>
      inBooking(deps, async (booking) => {
        const { query } = booking;
        const [row] = await query<{ mine: boolean }>(ALONE, [`${instanceUid} ${errand}`]);
        if (row?.mine !== true) return undefined;
        return work({
          ...readingBy((_, ...call) => query(...call)),
          book: (uid, entries, marks) => bookIn(booking, uid, entries, marks),
          withLedgerLock: (uid, read) => inLedgerLock(query, uid, read),
        });
      }),
  };
}

async function inLedgerLock<T>(query: Query, instanceUid: string, work: (reading: Reading) => Promise<T>): Promise<T> {
  await lockForRecount(query, instanceUid);
  return work(readingBy((_, ...call) => query(...call)));
}

/** Budgets for models have no rows (decision 0014): they stand in the policy of their key. */
const ELSEWHERE = `
select scope::text from gateway_operator.claim c cross join lateral unnest(array[c.scope_id] ||
  array(select (model ->> 'scopeId')::uuid from jsonb_array_elements(coalesce(c.policy -> 'modelScopes', '[]')) as model)) as scope
where c.scope_id = any($2::uuid[]) and c.instance_uid <> $1`;

const ALONE = 'select pg_try_advisory_xact_lock(hashtextextended($1, 7203418868)) as mine';

/** A statement about so many things. */
type Ask = <R extends QueryResultRow>(size: number, ...call: Parameters<Query>) => Promise<R[]>;

function readingBy(ask: Ask): Reading {
  const sumsOf = async (of: ReadonlyArray<ScopeWindow>): Promise<ReadonlyArray<ScopeSpend>> => {
    const windows = of.map(({ window }) => window);
    const columns = [
      of.map(({ scopeId }) => scopeId),
      windows.map(({ start }) => start),
      windows.map(({ end }) => end),
    ];
    const rows = await ask<{ place: string; amount: string }>(of.length, SUMS, columns);
    const spent = new Map(rows.map(({ place, amount }) => [Number(place) - 1, BigInt(amount)]));
    return of.map((each, place) => ({ ...each, spent: spent.get(place) ?? 0n }));
  };
  const bookedOf = async (ids: ReadonlyArray<string>) => {
    const sorted = ids.toSorted();
    const rows = await ask<BookedRow>(ids.length, BOOKED, [sorted, sorted[0], sorted.at(-1)]);
    return rows.map(({ id, kinds, costs }): [string, Booked[]] => [
      id,
      kinds.map((kind, place) => ({ kind, cost: BigInt(costs[place] ?? 0) })),
    ]);
  };
  return {
    sums: (of) => inPortions(of, SUMS_QUESTION, sumsOf),
    bookedOf: async (ids) => new Map(await inPortions(ids, QUESTION, bookedOf)),
  };
}

interface BookedRow {
  readonly id: string;
  readonly kinds: ReadonlyArray<EntryKind>;
  readonly costs: ReadonlyArray<string>;
}

/** One after the other: what one portion of at most `size` answers, then what the next does. */
async function inPortions<T, A>(
  all: ReadonlyArray<T>,
  size: number,
  ask: (portion: ReadonlyArray<T>) => Promise<ReadonlyArray<A>>,
): Promise<ReadonlyArray<A>> {
  const answers: A[] = [];
  for (let from = 0; from < all.length; from += size)
    for (const answer of await ask(all.slice(from, from + size))) answers.push(answer);
  return answers;
}

export const SUMS = {
  name: 'gateway-operator-sums',
  text: `
select t.place, s.amount::text as amount
from unnest($1::uuid[], $2::bigint[], $3::bigint[]) with ordinality as t (scope_id, window_start, window_end, place)
  join gateway_operator.sum s using (scope_id, window_start, window_end)`,
};

/** The bounds of the ids leave out the months that cannot have them. */
export const BOOKED = {
  name: 'gateway-operator-booked',
  text: `
select id, array_agg(kind order by kind) as kinds, array_agg(cost::text order by kind) as costs
from gateway_operator.entry where id = any($1::uuid[]) and id >= $2::uuid and id <= $3::uuid group by id`,
};
