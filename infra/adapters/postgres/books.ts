// What has been charged? Entries in, sums up, in one transaction and exactly once (LEDGER 2, 8).
import pg from 'pg';
import type { Booked, Books, Entry, EntryKind, Marks, Reading } from '#core/ports/books.ts';
import type { Log } from '#core/ports/clock.ts';
import type { ScopeId, ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { book } from './book.ts';
import { BACKGROUND_LIMIT, GATEWAY_LIMIT } from './limits.ts';
import type { Months } from './months.ts';
import { inPortions } from './portions.ts';
import { lockForBooking, lockForRecount } from './recount.ts';
import type { Query, Session } from './session.ts';

/** How much one statement is given, so that it keeps its limit whatever a caller has collected. */
const BATCH = 5000;
const QUESTION = 10_000;
/** One question to the sums however many a sweep asks for, within reason. */
const SUMS_QUESTION = 200_000;

/** Twice would be as wrong as never: a person decides. */
const DROPPED = 'its month was dropped (RETAIN_MONTHS), and with it the record of whether it was booked';

const PUT_ASIDE = `
insert into gateway_operator.entry_rejected (id, kind, instance_uid, entry, reason)
select id, kind, $3, entry::json, $5 from unnest($1::text[], $2::text[], $4::text[]) as t (id, kind, entry)
on conflict (id, kind) do nothing`;

interface Deps {
  readonly session: Session;
  readonly months: Months;
  readonly log: Log;
}

export function createBooks({ session, months, log }: Deps): Books {
  /**
   * One transaction for `work`. A first attempt takes batches whole; where one is refused, or its month has no partition
   * yet, that is rolled back, the months are made, and `work` runs again with batches that are halved.
   */
  const inBooking = async <T>(work: (booking: Booking) => Promise<T>): Promise<T> => {
    const attempt = async (isHalving: boolean): Promise<T> => {
      const aside: Aside[] = [];
      const value = await session.transaction(BACKGROUND_LIMIT, (query) => {
        aside.length = 0;
        return work({ query, months, isHalving, aside });
      });
      for (const fields of aside)
        log.error('an entry was refused by the database and put aside in entry_rejected', { ...fields });
      return value;
    };
    try {
      return await attempt(false);
    } catch (error) {
      if (!(error instanceof BatchRefused)) throw error;
      months.forget();
      await months.ensure(error.ids);
      return attempt(true);
    }
  };

  return {
    book: async (instanceUid, entries, marks) => {
      const rejected: string[] = [];
      let epoch: number | undefined;
      for (const batch of inPortions(entries, BATCH)) {
        const done = await inBooking((booking) => bookIn(booking, instanceUid, batch, marks));
        rejected.push(...done.rejected);
        epoch = done.epoch;
      }
      return epoch === undefined ? { rejected } : { rejected, epoch };
    },
    ...readingBy((work, size) => session.run(size > QUESTION ? BACKGROUND_LIMIT : GATEWAY_LIMIT, work)),
    exclusively: (instanceUid, work) =>
      session.transaction(GATEWAY_LIMIT, (query) => exclusivelyIn(query, instanceUid, work)),
    elsewhere: async (instanceUid, scopes) => {
      const ask = (portion: ReadonlyArray<ScopeId>) =>
        session.run(BACKGROUND_LIMIT, (query) => query<{ scope: ScopeId }>(ELSEWHERE, [instanceUid, portion]));
      return new Set((await each(inPortions(scopes, QUESTION), ask)).map(({ scope }) => scope));
    },
    alone: (instanceUid, errand, work) =>
      inBooking(async (booking) => {
        const { query } = booking;
        const [row] = await query<{ mine: boolean }>(ALONE, [`${instanceUid} ${errand}`]);
        if (row?.mine !== true) return undefined;
        return work({
          ...readingBy((ask) => ask(query)),
          book: (uid, entries, marks) => bookIn(booking, uid, entries, marks),
          exclusively: (uid, read) => exclusivelyIn(query, uid, read),
        });
      }),
  };
}

/** The transaction in which a batch is booked, and what it has put aside. */
interface Booking {
  readonly query: Query;
  readonly months: Months;
  readonly isHalving: boolean;
  readonly aside: Aside[];
}

interface Aside {
  readonly id: string;
  readonly kind: EntryKind;
  readonly instance: string;
  readonly reason: string;
}

/** PostgreSQL does not take this batch as it is: its transaction is over. */
class BatchRefused extends Error {
  override readonly name = 'BatchRefused';
  readonly ids: ReadonlyArray<string>;
  constructor(ids: ReadonlyArray<string>, options?: ErrorOptions) {
    super('PostgreSQL does not take the batch as it is', options);
    this.ids = ids;
  }
}

async function bookIn(
  booking: Booking,
  instanceUid: string,
  entries: ReadonlyArray<Entry>,
  marks: Marks | undefined,
): Promise<{ readonly rejected: ReadonlyArray<string>; readonly epoch?: number }> {
  const { query, months, isHalving } = booking;
  await lockForBooking(query, instanceUid);
  const rejected = isHalving
    ? await bookHalving(booking, instanceUid, entries)
    : await bookWhole(query, months, instanceUid, entries);
  return marks === undefined ? { rejected } : { rejected, epoch: await mark(query, instanceUid, marks) };
}

async function bookWhole(
  query: Query,
  months: Months,
  instanceUid: string,
  entries: ReadonlyArray<Entry>,
): Promise<ReadonlyArray<string>> {
  const ids = entries.map(({ id }) => id);
  if (!months.areMade(ids)) throw new BatchRefused(ids);
  try {
    await book(query, instanceUid, entries);
  } catch (error) {
    throw refusalOf(error) === undefined ? error : new BatchRefused(ids, { cause: error });
  }
  return [];
}

/** Answers the ids that were put aside. A refused batch is halved until the bad rows stand alone (LEDGER 8). */
async function bookHalving(
  booking: Booking,
  instanceUid: string,
  entries: ReadonlyArray<Entry>,
): Promise<ReadonlyArray<string>> {
  const { query, months } = booking;
  const { dropped = [], others = [] } = Object.groupBy(entries, ({ id }) =>
    months.isDropped(id) ? 'dropped' : 'others',
  );
  if (dropped.length > 0) {
    const aside = await putAside(booking, instanceUid, dropped, DROPPED);
    return [...aside, ...(await bookHalving(booking, instanceUid, others))];
  }
  const refusal = await refusalIn(query, () => book(query, instanceUid, entries));
  if (refusal === undefined) return [];
  const [first, ...rest] = entries;
  if (first === undefined) return [];
  if (rest.length === 0) return putAside(booking, instanceUid, [first], refusal);
  const half = Math.ceil(entries.length / 2);
  const rejected = await bookHalving(booking, instanceUid, entries.slice(0, half));
  return [...rejected, ...(await bookHalving(booking, instanceUid, entries.slice(half)))];
}

async function putAside(
  { query, aside }: Booking,
  instanceUid: string,
  entries: ReadonlyArray<Entry>,
  reason: string,
): Promise<ReadonlyArray<string>> {
  const ids = entries.map(({ id }) => printable(id));
  const kinds = entries.map(({ kind }) => printable(kind));
  await query(PUT_ASIDE, [ids, kinds, instanceUid, entries.map(toJson), reason]);
  for (const { id, kind } of entries) aside.push({ id, kind, instance: instanceUid, reason });
  return entries.map(({ id }) => id);
}

/** Why PostgreSQL does not take what `work` writes, which is undone then; undefined when it took it. */
async function refusalIn(query: Query, work: () => Promise<void>): Promise<string | undefined> {
  await query('savepoint batch');
  try {
    await work();
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === undefined) throw error;
    await query('rollback to savepoint batch; release savepoint batch');
    return refusal;
  }
  await query('release savepoint batch');
  return undefined;
}

async function exclusivelyIn<T>(query: Query, instanceUid: string, work: (reading: Reading) => Promise<T>): Promise<T> {
  await lockForRecount(query, instanceUid);
  return work(readingBy((ask) => ask(query)));
}

/** Budgets for models have no rows (decision 0014): they stand in the policy of their key. */
const ELSEWHERE = `
select scope::text from gateway_operator.claim c cross join lateral unnest(array[c.scope_id] ||
  array(select (model ->> 'scopeId')::uuid from jsonb_array_elements(coalesce(c.policy -> 'modelScopes', '[]')) as model)) as scope
where c.scope_id = any($2::uuid[]) and c.instance_uid <> $1`;

const ALONE = 'select pg_try_advisory_xact_lock(hashtextextended($1, 7203418868)) as mine';

type Run = <T>(work: (query: Query) => Promise<T>, size: number) => Promise<T>;

function readingBy(run: Run): Reading {
  const sumsOf = (of: ReadonlyArray<ScopeWindow>) =>
    run(async (query): Promise<ReadonlyArray<ScopeSpend>> => {
      const rows = await query<{ place: string; amount: string }>(SUMS, [
        of.map(({ scopeId }) => scopeId),
        of.map(({ window }) => window.start),
        of.map(({ window }) => window.end),
      ]);
      const spent = new Map(rows.map(({ place, amount }) => [Number(place) - 1, BigInt(amount)]));
      return of.map((each, place) => ({ ...each, spent: spent.get(place) ?? 0n }));
    }, of.length);
  const bookedOf = (ids: ReadonlyArray<string>) =>
    run(async (query) => {
      const sorted = ids.toSorted();
      const rows = await query<BookedRow>(BOOKED, [sorted, sorted[0], sorted.at(-1)]);
      return rows.map(
        ({ id, kinds, costs }) => [id, kinds.map((kind, place) => toBooked(kind, costs[place]))] as const,
      );
    }, ids.length);
  return {
    sums: (of) => each(inPortions(of, SUMS_QUESTION), sumsOf),
    bookedOf: async (ids) => new Map(await each(inPortions(ids, QUESTION), bookedOf)),
  };
}

interface BookedRow {
  readonly id: string;
  readonly kinds: ReadonlyArray<EntryKind>;
  readonly costs: ReadonlyArray<string>;
}

const toBooked = (kind: EntryKind, cost = '0'): Booked => ({ kind, cost: BigInt(cost) });

/** Only of processes that have joined this epoch. Answers the one that holds now. */
async function mark(query: Query, instanceUid: string, { epoch, calls }: Marks): Promise<number> {
  const values = [instanceUid, [...calls.keys()], [...calls.values()], epoch];
  const [row] = await query<{ epoch: string }>(MARK, values);
  return Number(row?.epoch ?? 0);
}

export const MARK = `
with marked as (update gateway_operator.gateway_process p set calls = greatest(p.calls, m.calls)
  from unnest($2::text[], $3::bigint[]) as m (process, calls)
  where p.instance_uid = $1 and p.process = m.process and p.epoch = $4 and p.calls < m.calls)
select epoch from gateway_operator.store_epoch where instance_uid = $1`;

/** One after the other: what one portion answers, then what the next does. */
async function each<T, A>(
  portions: ReadonlyArray<ReadonlyArray<T>>,
  ask: (portion: ReadonlyArray<T>) => Promise<ReadonlyArray<A>>,
): Promise<ReadonlyArray<A>> {
  const answers: A[] = [];
  for (const portion of portions) for (const answer of await ask(portion)) answers.push(answer);
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

/** Why PostgreSQL does not take these rows; undefined where the error is about something else. */
function refusalOf(error: unknown): string | undefined {
  // Classes 22 (data), 23 (integrity) and 54 (limits) are about the rows.
  const isRefusal = error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? '');
  return isRefusal ? `${error.code}: ${error.message}` : undefined;
}

function toJson(entry: Entry): string {
  return JSON.stringify(entry, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}

/** PostgreSQL's text holds no NUL. */
function printable(text: string): string {
  return text.replaceAll('\u0000', '\\u0000');
}
