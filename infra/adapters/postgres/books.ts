// What has been charged? Entries in, sums up, in one transaction and exactly once (LEDGER 2, 8).
import pg from 'pg';
import type { Booked, Books, Entry, EntryKind, Marks, Reading } from '#core/ports/books.ts';
import type { Log } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ScopeId, ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { book } from './book.ts';
import { BACKGROUND_LIMIT, ERRAND_LIMIT, GATEWAY_LIMIT } from './limits.ts';
import type { Months } from './months.ts';
import { inPortions } from './portions.ts';
import { lockForRecount } from './recount.ts';
import { ConnectionBroke } from './refusal.ts';
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

/** SQLSTATE of a row without a partition (and of other checks, which are refused again). */
const NO_PARTITION = '23514';

interface Deps {
  readonly session: Session;
  readonly months: Months;
  readonly log: Log;
}

export function createBooks({ session, months, log }: Deps): Books {
  const putAside = async (instanceUid: string, entries: ReadonlyArray<Entry>, reason: string) => {
    for (const { id, kind } of entries) {
      const fields = { id, kind, instance: instanceUid, reason };
      log.error('an entry was refused by the database and put aside in entry_rejected', fields);
    }
    await session.run(BACKGROUND_LIMIT, (query) =>
      query(PUT_ASIDE, [
        entries.map(({ id }) => printable(id)),
        entries.map(({ kind }) => printable(kind)),
        instanceUid,
        entries.map(toJson),
        reason,
      ]),
    );
    return entries.map(({ id }) => id);
  };

  /** Answers the ids that were refused. A refused batch is halved until the bad rows stand alone. */
  const bookBatch = async (
    instanceUid: string,
    entries: ReadonlyArray<Entry>,
    marks?: Marks,
    onEpoch: (epoch: number) => void = () => undefined,
  ): Promise<ReadonlyArray<string>> => {
    const attempt = () =>
      session.transaction(BACKGROUND_LIMIT, async (query) => {
        await book(query, instanceUid, entries);
        if (marks !== undefined) onEpoch(await mark(query, instanceUid, marks));
      });
    let refusal = await refusalOf(attempt);
    if (refusal?.startsWith(NO_PARTITION)) {
      months.forget();
      await months.ensure(entries.map(({ id }) => id));
      const { dropped = [], others = [] } = Object.groupBy(entries, ({ id }) =>
        months.isDropped(id) ? 'dropped' : 'others',
      );
      if (dropped.length > 0) {
        const aside = await putAside(instanceUid, dropped, DROPPED);
        return [...aside, ...(await bookBatch(instanceUid, others, marks, onEpoch))];
      }
      refusal = await refusalOf(attempt);
    }
    if (refusal === undefined) return [];
    const [first, ...others] = entries;
    if (first === undefined) return [];
    if (others.length === 0) return putAside(instanceUid, [first], refusal);
    const half = Math.ceil(entries.length / 2);
    const rejected = await bookBatch(instanceUid, entries.slice(0, half), marks, onEpoch);
    return [...rejected, ...(await bookBatch(instanceUid, entries.slice(half), marks, onEpoch))];
  };

  return {
    book: async (instanceUid, entries, marks) => {
      await months.ensure(entries.map(({ id }) => id));
      let epoch: number | undefined;
      const onEpoch = (seen: number): void => {
        epoch = seen;
      };
      const book = (batch: ReadonlyArray<Entry>) => bookBatch(instanceUid, batch, marks, onEpoch);
      const rejected = await each(inPortions(entries, BATCH), book);
      return epoch === undefined ? { rejected } : { rejected, epoch };
    },
    ...readingBy((work, size) => session.run(size > QUESTION ? BACKGROUND_LIMIT : GATEWAY_LIMIT, work)),
    exclusively: async (instanceUid, work) => {
      const outcome = await session.transaction(GATEWAY_LIMIT, async (query) => {
        await query(`set local idle_in_transaction_session_timeout = ${IDLE}`);
        await lockForRecount(query, instanceUid);
        return outcomeOf(work(readingBy((ask) => ask(query))));
      });
      if ('failure' in outcome) throw outcome.failure;
      return outcome.value;
    },
    elsewhere: async (instanceUid, scopes) => {
      const ask = (portion: ReadonlyArray<ScopeId>) =>
        session.run(BACKGROUND_LIMIT, (query) => query<{ scope: ScopeId }>(ELSEWHERE, [instanceUid, portion]));
      return new Set((await each(inPortions(scopes, QUESTION), ask)).map(({ scope }) => scope));
    },
    alone: (instanceUid, errand, work) =>
      session.transaction(ERRAND_LIMIT, async (query) => {
        const [row] = await query<{ mine: boolean }>(ALONE, [`${instanceUid} ${errand}`]);
        return row?.mine === true ? work() : undefined;
      }),
  };
}

/** What fails beside PostgreSQL leaves the connection as it was. */
async function outcomeOf<T>(work: Promise<T>): Promise<{ readonly value: T } | { readonly failure: unknown }> {
  try {
    return { value: await work };
  } catch (failure) {
    if (failure instanceof pg.DatabaseError || failure instanceof ConnectionBroke) throw failure;
    return { failure };
  }
}

/** Budgets for models have no rows (decision 0014): they stand in the policy of their key. */
const ELSEWHERE = `
select scope::text from gateway_operator.claim c cross join lateral unnest(array[c.scope_id] ||
  array(select (model ->> 'scopeId')::uuid from jsonb_array_elements(coalesce(c.policy -> 'modelScopes', '[]')) as model)) as scope
where c.scope_id = any($2::uuid[]) and c.instance_uid <> $1`;

/** What a lock is worth to whoever holds it and falls silent. */
const IDLE: Millis = 1500;

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

/** Why PostgreSQL does not take these rows, or undefined when it took them. Throws when it could not be asked. */
async function refusalOf(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    // Classes 22 (data), 23 (integrity) and 54 (limits) are about the rows; everything else is not.
    if (error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? ''))
      return `${error.code}: ${error.message}`;
    throw error;
  }
}

function toJson(entry: Entry): string {
  return JSON.stringify(entry, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}

/** PostgreSQL's text holds no NUL. */
function printable(text: string): string {
  return text.replaceAll('\u0000', '\\u0000');
}
