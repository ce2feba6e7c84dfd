// Monthly partitions of ledger rows: made before a row needs its month, dropped whole after RETAIN_MONTHS (LEDGER 2).
import type { Millis } from '#core/ports/money.ts';
import { timeOf } from '../process/ids.ts';
import { hasTable } from './schema.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';

const LOCK = 7_203_418_866;

/** Months since January 1970, UTC. */
type Month = number;

/**
 * The last month with a partition. Our ids have times from 1970 to 2199; PostgreSQL refuses a row with another time.
 */
const LAST_MONTH: Month = 230 * 12 - 1;

/** The lowest UUID of this millisecond: no id of this time or later is below it. */
export function lowestId(time: Millis): string {
  const hex = Math.min(Math.max(Math.ceil(time), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

export type Months = ReturnType<typeof createMonths>;

/** Takes the lock under which processes make and drop months, one after the other. */
async function lockMonths(query: Query): Promise<void> {
  await query(`select pg_advisory_xact_lock(${LOCK})`);
}

/**
 * Reads the months that `drop` has dropped. Months that a person drops with SQL are not recorded: they are made again.
 */
export async function readDropped(query: Query): Promise<ReadonlySet<Month>> {
  const rows = await query<{ month: string }>('select month from gateway_operator.dropped_month');
  return new Set(rows.map(({ month }) => monthOf(Date.parse(`${month.replace('_', '-')}-01T00:00:00Z`))));
}

export function createMonths(session: Session) {
  const knownMonths = new Set<Month>();
  let dropped: ReadonlySet<Month> = new Set();

  const make = async (query: Query, months: ReadonlyArray<Month>) => {
    const unknown = months.filter((month) => month >= 0 && month <= LAST_MONTH && !knownMonths.has(month));
    if (unknown.length === 0) return;
    // This read is without the lock, which a booking would keep until its end: on Workers every request books.
    for (const month of await presentOf(query, unknown)) knownMonths.add(month);
    const missing = unknown.filter((month) => !knownMonths.has(month));
    if (missing.length === 0) return;
    await lockMonths(query);
    dropped = await readDropped(query);
    for (const month of missing) if (!dropped.has(month)) await makeMonth(query, month);
    for (const month of missing) knownMonths.add(month);
  };

  return {
    /**
     * Makes the partitions of these ids' months, and of the months after them, in the transaction of `query`. Does
     * nothing for months that this process knows.
     */
    ensureMonths: (query: Query, ids: ReadonlyArray<string>) => make(query, monthsOf(ids)),
    /**
     * Forgets the known months, since other processes drop months: the next `ensureMonths` looks for all of them again.
     */
    reset: () => knownMonths.clear(),
    /** Makes this month and the next two, by the database's clock. */
    ensureUpcoming: () =>
      session.transaction(LIMIT, async (query) => {
        const [row] = await query<{ now: string }>('select (extract(epoch from now()) * 1000)::bigint as now');
        const month = monthOf(Number(row?.now));
        await make(query, [month, month + 1, month + 2]);
      }),
    /**
     * Whether the id's month was dropped, as of the last read. It is not made again, because its former rows are
     * unknown.
     */
    isDropped: (id: string) => {
      const time = timeOf(id);
      return time !== undefined && dropped.has(monthOf(time));
    },
    /**
     * Drops whole months, one transaction each. The current month, `keptMonths` months before it, and months that the
     * window of a budget may reach are kept (an edit of its duration counts single seconds at the edge). Then forgets
     * the accounts of dropped months. Returns the months dropped now, like `2026_01`.
     */
    drop: async (keptMonths: number) => {
      const rows = await session.query<{ month: string }>(LIMIT, UNNEEDED, [keptMonths]);
      for (const { month } of rows) {
        await session.transaction(LIMIT, (query) => dropMonth(query, month));
        knownMonths.clear();
      }
      await forgetAccounts(session);
      return rows.map(({ month }) => month);
    },
  };
}

function monthsOf(ids: ReadonlyArray<string>): ReadonlyArray<Month> {
  const days = new Set<number>();
  for (const id of ids) {
    const time = timeOf(id);
    if (time !== undefined) days.add(Math.floor(time / DAY));
  }
  const months = [...days].map((day) => monthOf(day * DAY));
  return [...new Set(months.flatMap((month) => [month, month + 1]))];
}

const DAY: Millis = 86_400_000;

export function monthOf(time: Millis): Month {
  const date = new Date(time);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}

/** `2026_01`. */
const suffixOf = (month: Month): string =>
  new Date(Date.UTC(1970, month, 1)).toISOString().slice(0, 7).replace('-', '_');

/** Returns those of these months that have their partitions. */
async function presentOf(query: Query, months: ReadonlyArray<Month>): Promise<ReadonlyArray<Month>> {
  const suffixes = months.map(suffixOf);
  const rows = await query<{ month: string }>(PRESENT, [
    suffixes.flatMap((suffix) => [`ledger_row_${suffix}`, `second_sum_${suffix}`]),
  ]);
  const present = new Set(rows.map(({ month }) => month));
  return months.filter((_, place) => present.has(suffixes[place] ?? ''));
}

const PRESENT = `
select right(c.relname, 7) as month from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'gateway_operator' and c.relname = any($1::text[]) group by 1 having count(*) = 2`;

/** Makes the tables first and then attaches them, so that readers and writers of other months need not wait. */
async function makeMonth(query: Query, month: Month): Promise<void> {
  const suffix = suffixOf(month);
  const range = `from ('${lowestId(Date.UTC(1970, month, 1))}') to ('${lowestId(Date.UTC(1970, month + 1, 1))}')`;
  for (const table of ['ledger_row', 'second_sum']) {
    if (await hasTable(query, `${table}_${suffix}`)) continue;
    const name = `gateway_operator.${table}_${suffix}`;
    await query(`create table ${name} (like gateway_operator.${table} including all);
      alter table gateway_operator.${table} attach partition ${name} for values ${range}`);
  }
}

/**
 * Months that are older than $1 months before the current month, and older than the month in which the longest current
 * window may have begun. A calendar month is up to a thirtieth longer than 30 days.
 */
const UNNEEDED = `
with duration as (
  select policy -> 'budget' ->> 'duration' as text from gateway_operator.claim where retired_at is null
  union
  select further ->> 'duration'
  from gateway_operator.claim cross join lateral jsonb_array_elements(coalesce(policy -> 'furtherBudgets', '[]')) as further
  where retired_at is null),
longest as (
  select max(substring(text from '^[0-9]+')::bigint * case substring(text from '[a-z]+$')
    when 's' then 1 when 'm' then 60 when 'h' then 3600 when 'd' then 86400 when 'w' then 604800 when 'mo' then 2592000 end) as seconds
  from duration where text is not null)
select distinct right(c.relname, 7) as month
from pg_catalog.pg_inherits i
  join pg_catalog.pg_class c on c.oid = i.inhrelid
  join pg_catalog.pg_class p on p.oid = i.inhparent
  join pg_catalog.pg_namespace n on n.oid = p.relnamespace
where n.nspname = 'gateway_operator' and p.relname in ('ledger_row', 'second_sum') and c.relname ~ '^(ledger_row|second_sum)_[0-9]{4}_[0-9]{2}$'
  and right(c.relname, 7) < to_char(now() at time zone 'UTC' - make_interval(months => $1), 'YYYY_MM')
  and right(c.relname, 7) < (select to_char(now() at time zone 'UTC' - make_interval(secs => coalesce(seconds, 0) * 31 / 30.0), 'YYYY_MM')
    from longest)
order by 1`;

/**
 * Waits for bookings and reads in progress, and does not stop them. If the lock is not granted in time, the next resync
 * tries again.
 */
async function dropMonth(query: Query, month: string): Promise<void> {
  await query('set local lock_timeout = 2000');
  await lockMonths(query);
  await query('insert into gateway_operator.dropped_month (month) values ($1) on conflict do nothing', [month]);
  // The tables are dropped in the order in which a booking locks them.
  for (const table of ['ledger_row', 'second_sum'])
    await query(`drop table if exists gateway_operator.${table}_${month}`);
}

/** The maximum accounts, and the maximum rows of `expired_row`, that one transaction deletes. */
const PORTION = 2000;

/**
 * Forgets the accounts that were closed before the end of the last dropped month, with their expired rows. An account may
 * have 150,000 of them, so no booking waits for this: portions in transactions of their own, after the
 * months are dropped. If the process ends before all are forgotten, the next resync continues.
 */
async function forgetAccounts(session: Session): Promise<void> {
  for (let isOver = false; !isOver; )
    isOver = await session.transaction(LIMIT, async (query) => {
      const rows = await query(FORGET_EXPIRED_ROWS, [PORTION]);
      return rows.length < PORTION && (await query(FORGET_ACCOUNTS, [PORTION])).length < PORTION;
    });
}

/** Accounts of dropped months. A row that another transaction has locked is left to the next time. */
const OLD_ACCOUNTS = `
select a.instance_uid, a.account from gateway_operator.account a
where a.closed_at < (
  select (to_date(max(month), 'YYYY_MM') + interval '1 month') at time zone 'UTC' from gateway_operator.dropped_month)`;

const FORGET_EXPIRED_ROWS = `
delete from gateway_operator.expired_row where ctid = any(array(
  select e.ctid from (${OLD_ACCOUNTS}) a join gateway_operator.expired_row e using (instance_uid, account)
  limit $1 for update of e skip locked))
returning 1`;

/** Without expired rows, nothing is left to cascade. */
const FORGET_ACCOUNTS = `
delete from gateway_operator.account where (instance_uid, account) in (
  ${OLD_ACCOUNTS} and not exists (
    select from gateway_operator.expired_row e where e.instance_uid = a.instance_uid and e.account = a.account)
  limit $1 for update skip locked)
returning 1`;
