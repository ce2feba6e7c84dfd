// Daily partitions of ledger rows: made before a row needs its day, dropped whole after RETAIN_DAYS (LEDGER 2).
import pg from 'pg';
import type { Millis } from '#core/ports/money.ts';
import { timeOf } from '../process/ids.ts';
import { hasTable } from './schema.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';

const LOCK = 7_203_418_866;

/** Days since the Unix epoch, UTC. */
type Day = number;

export const DAY: Millis = 86_400_000;
/** The tables with a partition of each day, in the order in which a booking locks them. */
const TABLES = ['ledger_set', 'ledger_row'];
/**
 * The last day with a partition. Our ids have times from 1970 to 2199; PostgreSQL refuses a row with another time.
 */
const LAST_DAY: Day = Date.UTC(2200, 0, 1) / DAY - 1;
/**
 * The days for which partitions are made before they begin: bookings rarely make one, also while no reconciler runs.
 */
const DAYS_AHEAD = 7;
/** The maximum days that one call drops. */
const MAX_DROPPED = 100;
/** Milliseconds that a drop waits for transactions in progress. Bookings that begin meanwhile wait too. */
const DROP_WAIT: Millis = 100;

/** The lowest UUID of this millisecond: no id of this time or later is below it. */
export function lowestId(time: Millis): string {
  return uuidAt(time, '0'.repeat(20));
}

/** The UUID of this millisecond with these 20 hexadecimal digits. */
export function uuidAt(time: Millis, digits: string): string {
  const hex = Math.min(Math.max(Math.ceil(time), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-${digits.slice(0, 4)}-${digits.slice(4, 8)}-${digits.slice(8)}`;
}

/** Conditions of the drop of a day. Days are like `2026-01-31`. */
export interface DropCheck {
  /** Called before the transaction of the drop. */
  isReady(day: string): Promise<boolean>;
  /** Called in the transaction of the drop. */
  isComplete(query: Query, day: string): Promise<boolean>;
}

interface DropOrder {
  readonly keptDays: number;
  readonly now: Millis;
  readonly check: DropCheck | undefined;
  readonly isOver: () => boolean;
}

export type Partitions = ReturnType<typeof createPartitions>;

/** Takes the lock under which processes make and drop days, one after the other. */
async function lockDays(query: Query): Promise<void> {
  await query(`select pg_advisory_xact_lock(${LOCK})`);
}

/**
 * Reads when the first kept day begins; 0: all are kept. Days before it are not made again. Days that a person drops
 * with SQL are not recorded: they are made again. The present day is kept, also if all clocks were ahead at a drop.
 */
export async function readKeptFrom(query: Query): Promise<Millis> {
  const [row] = await query<{ time: number }>(
    `select extract(epoch from least(kept_from, (now() at time zone 'UTC')::date))::float8 * 1000 as time
    from gateway_operator.retention`,
  );
  return row?.time ?? 0;
}

export function createPartitions(session: Session) {
  const knownDays = new Set<Day>();
  let keptFrom: Millis = 0;

  const make = async (query: Query, days: ReadonlyArray<Day>) => {
    const unknown = days.filter((day) => day >= 0 && day <= LAST_DAY && !knownDays.has(day));
    if (unknown.length === 0) return;
    // This read is without the lock, which a booking would keep until its end: on Workers every request books.
    for (const day of await presentOf(query, unknown)) knownDays.add(day);
    const missing = unknown.filter((day) => !knownDays.has(day));
    if (missing.length === 0) return;
    await lockDays(query);
    keptFrom = await readKeptFrom(query);
    for (const day of missing) if (day * DAY >= keptFrom) await makeDay(query, day);
    for (const day of missing) knownDays.add(day);
  };

  return {
    /**
     * Makes the partitions of these ids' days in the transaction of `query`. Does nothing for days that this process
     * knows.
     */
    ensureFor: (query: Query, ids: ReadonlyArray<string>) => make(query, daysOf(ids)),
    /** Forgets the known days, since other processes drop days: the next `ensureFor` looks for all of them again. */
    reset: () => knownDays.clear(),
    /** Makes this day and the next days, by the database's clock. */
    ensureUpcoming: () =>
      session.transaction(LIMIT, async (query) => {
        const [row] = await query<{ now: string }>('select (extract(epoch from now()) * 1000)::bigint as now');
        const today = Math.floor(Number(row?.now) / DAY);
        await make(
          query,
          Array.from({ length: 1 + DAYS_AHEAD }, (_, ahead) => today + ahead),
        );
      }),
    /** Whether the id's day was dropped, as of the last read. It is not made again: its former rows are unknown. */
    isDropped: (id: string) => {
      const time = timeOf(id);
      return time !== undefined && time < keptFrom;
    },
    /**
     * Drops whole days, one transaction each. `now`: the caller's clock. This clock or the database's counts, whichever
     * is behind: a clock that is ahead for a moment deletes nothing. The current day, `keptDays` days before it, and
     * days that the window of a budget of at most `keptDays` may reach are kept (an edit of its duration counts single
     * seconds at the edge). Then forgets the accounts of dropped days. Returns the days dropped now, like `2026_01_31`.
     * If transactions in progress last longer than bookings may wait, or days are left, or `isOver` returns true, the next
     * resync continues. A day for which `check` is false stays, and so do the days after it.
     */
    drop: async (own: Session, { keptDays, now, check, isOver }: DropOrder) => {
      const [row] = await own.query<DropPlan>(LIMIT, DROP_PLAN, [keptDays, MAX_DROPPED, now]);
      const { days = [], keptFrom: bound = null } = row ?? {};
      const dropped: string[] = [];
      for (const day of days) {
        if (isOver() || !(await tryDropDay(own, day, check))) break;
        dropped.push(day);
        knownDays.clear();
      }
      if (dropped.length === days.length && days.length < MAX_DROPPED) await own.query(LIMIT, KEEP_FROM, [bound]);
      await forgetAccounts(own, isOver);
      return dropped;
    },
  };
}

function daysOf(ids: ReadonlyArray<string>): ReadonlyArray<Day> {
  const days = new Set<Day>();
  for (const id of ids) {
    const time = timeOf(id);
    if (time === undefined) continue;
    days.add(Math.floor(time / DAY));
  }
  return [...days];
}

/** `2026_01_31`. */
const suffixOf = (day: Day): string => new Date(day * DAY).toISOString().slice(0, 10).replaceAll('-', '_');

/** Returns those of these days that have their partitions. */
async function presentOf(query: Query, days: ReadonlyArray<Day>): Promise<ReadonlyArray<Day>> {
  const suffixes = days.map(suffixOf);
  const rows = await query<{ day: string }>(PRESENT, [
    suffixes.flatMap((suffix) => [`ledger_set_${suffix}`, `ledger_row_${suffix}`]),
  ]);
  const present = new Set(rows.map(({ day }) => day));
  return days.filter((_, index) => present.has(suffixes[index] ?? ''));
}

const PRESENT = `
select right(c.relname, 10) as day from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'gateway_operator' and c.relname = any($1::text[]) group by 1 having count(*) = 2`;

/** Makes the tables first and then attaches them, so that readers and writers of other days need not wait. */
async function makeDay(query: Query, day: Day): Promise<void> {
  const suffix = suffixOf(day);
  const range = `from ('${lowestId(day * DAY)}') to ('${lowestId((day + 1) * DAY)}')`;
  for (const table of TABLES) {
    if (await hasTable(query, `${table}_${suffix}`)) continue;
    const name = `gateway_operator.${table}_${suffix}`;
    await query(`create table ${name} (like gateway_operator.${table} including all);
      alter table gateway_operator.${table} attach partition ${name} for values ${range}`);
  }
}

interface DropPlan {
  readonly days: ReadonlyArray<string>;
  readonly keptFrom: string;
}

/**
 * The first kept day: $1 days before today, or the day in which a current window of at most $1 days may have begun, if
 * that is earlier. And the days before it that have partitions, at most $2. A calendar month is up to a thirtieth longer
 * than 30 days, and a day of summer time up to an hour longer. Longer windows keep no day: any tenant of the database can
 * write one, and a budget that never resets has a window of a hundred years. Their recounts need the hours and the
 * opening balance only (old-sums.ts), which are exact for a window that begins with its scope.
 */
const DROP_PLAN = `
with duration as (
  select policy -> 'budget' ->> 'duration' as text from gateway_operator.claim where retired_at is null
  union
  select policy -> 'perKey' -> 'budget' ->> 'duration' from gateway_operator.claim where kind = 'namespace' and retired_at is null
  union
  select further ->> 'duration'
  from gateway_operator.claim cross join lateral jsonb_array_elements(coalesce(policy -> 'furtherBudgets', '[]')) as further
  where retired_at is null),
length as (
  select substring(text from '^[0-9]+')::bigint * case substring(text from '[a-z]+$')
    when 's' then 1 when 'm' then 60 when 'h' then 3600 when 'd' then 86400 when 'w' then 604800 when 'mo' then 2592000 end as seconds
  from duration where text is not null),
longest as (select max(seconds) as seconds from length where seconds <= $1::int * 86400::bigint),
bound as (
  select least(today - make_interval(days => $1::int),
    today - make_interval(days => 1, secs => coalesce(seconds, 0) * 31 / 30.0))::date as day
  from longest, (select least(now(), to_timestamp($3::float8 / 1000)) at time zone 'UTC' as today) as clock),
present as (
  select distinct right(c.relname, 10) as day
  from pg_catalog.pg_inherits i
    join pg_catalog.pg_class c on c.oid = i.inhrelid
    join pg_catalog.pg_class p on p.oid = i.inhparent
    join pg_catalog.pg_namespace n on n.oid = p.relnamespace
  where n.nspname = 'gateway_operator' and p.relname in ('ledger_set', 'ledger_row')
    and c.relname ~ '^(ledger_set|ledger_row)_[0-9]{4}_[0-9]{2}_[0-9]{2}$'
    and right(c.relname, 10) < (select to_char(day, 'YYYY_MM_DD') from bound)
  order by 1 limit $2)
select (select day::text from bound) as "keptFrom", array(select day from present order by 1) as days`;

const KEEP_FROM = `
insert into gateway_operator.retention as r (kept_from) values ($1::date)
on conflict (is_only) do update set kept_from = excluded.kept_from where r.kept_from < excluded.kept_from`;

/**
 * Drops a day, unless a transaction in progress still uses the tables after a moment: no booking waits for a long
 * report. The tables are locked in the order in which a booking locks them.
 */
async function tryDropDay(session: Session, day: string, check: DropCheck | undefined): Promise<boolean> {
  const date = day.replaceAll('_', '-');
  if ((await check?.isReady(date)) === false) return false;
  return session.transaction(LIMIT, async (query) => {
    try {
      await query(`set local lock_timeout = ${DROP_WAIT}`);
      if ((await check?.isComplete(query, date)) === false) return false;
      await lockDays(query);
      await query(KEEP_FROM, [new Date(Date.parse(date) + DAY).toISOString().slice(0, 10)]);
      for (const table of TABLES) await query(`drop table if exists gateway_operator.${table}_${day}`);
      await query('delete from gateway_operator.archived_file where day = $1::date', [date]);
      return true;
    } catch (error) {
      // PostgreSQL has aborted the transaction: its commit undoes it.
      if (error instanceof pg.DatabaseError && error.code === LOCK_NOT_AVAILABLE) return false;
      throw error;
    }
  });
}

const LOCK_NOT_AVAILABLE = '55P03';

/** The maximum accounts, and the maximum rows of `expired_row`, that one transaction deletes. */
const PORTION = 2000;

/**
 * Forgets the accounts that were closed before the first kept day, with their expired rows. An account may have 150,000
 * of them, so no booking waits for this: portions in transactions of their own, after the days are dropped. If `isOver`
 * returns true, or the process ends before all are forgotten, the next resync continues.
 */
async function forgetAccounts(session: Session, isOver: () => boolean): Promise<void> {
  for (let isDone = false; !isDone && !isOver(); )
    isDone = await session.transaction(LIMIT, async (query) => {
      const rows = await query(FORGET_EXPIRED_ROWS, [PORTION]);
      return rows.length < PORTION && (await query(FORGET_ACCOUNTS, [PORTION])).length < PORTION;
    });
}

/** Accounts of dropped days. A row that another transaction has locked is left to the next time. */
const OLD_ACCOUNTS = `
select a.instance_uid, a.account from gateway_operator.account a
where a.closed_at < (select kept_from::timestamp at time zone 'UTC' from gateway_operator.retention)`;

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
