// Which monthly partitions must exist before an entry can be written? (LEDGER 2)
import type { Millis } from '#core/ports/money.ts';
import { timeOf } from '../ids.ts';
import { hasTable } from './catalog.ts';
import { BACKGROUND_LIMIT as LIMIT } from './limits.ts';
import type { Query, Session } from './session.ts';

const LOCK = 7_203_418_866;

/** Months since January 1970, UTC. */
type Month = number;

/** Ids are ours: a time outside 1970 to 2199 is no time, and PostgreSQL refuses the entry. */
const LAST_MONTH: Month = 230 * 12 - 1;

/** The least UUID of that millisecond: every id made then or later is not below it. */
export function leastId(time: Millis): string {
  const hex = Math.min(Math.max(Math.ceil(time), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

export interface Months {
  /** Whether the partitions of these ids' months, and of the months after them, are known to be there (or to have been dropped). */
  areMade(ids: ReadonlyArray<string>): boolean;
  /** Makes them, on a connection of its own. */
  ensure(ids: ReadonlyArray<string>): Promise<void>;
  /** This month and the next two, by the database's clock. */
  ahead(): Promise<void>;
  /** Its month was dropped when that was last looked at: it is not made again, for nobody can tell what was in it. */
  isDropped(id: string): boolean;
  /** What was there may be gone: a database restored from a backup, a month that somebody dropped. */
  forget(): void;
}

/** Months are made and dropped one after the other, whoever does it. */
export async function lockMonths(query: Query): Promise<void> {
  await query(`select pg_advisory_xact_lock(${LOCK})`);
}

/** One that somebody drops with SQL of his own is not remembered, and is made again. */
export async function readDropped(query: Query): Promise<ReadonlySet<Month>> {
  const rows = await query<{ month: string }>('select month from gateway_operator.dropped_month');
  return new Set(rows.map(({ month }) => monthOf(Date.parse(`${month.replace('_', '-')}-01T00:00:00Z`))));
}

export function createMonths(session: Session): Months {
  const known = new Set<Month>();
  let dropped: ReadonlySet<Month> = new Set();

  const missingOf = (months: ReadonlyArray<Month>) =>
    months.filter((month) => month >= 0 && month <= LAST_MONTH && !known.has(month));

  const make = async (months: ReadonlyArray<Month>) => {
    const missing = missingOf(months);
    if (missing.length === 0) return;
    await session.transaction(LIMIT, async (query) => {
      await lockMonths(query);
      dropped = await readDropped(query);
      for (const month of missing) if (!dropped.has(month)) await makeMonth(query, month);
    });
    for (const month of missing) known.add(month);
  };

  return {
    areMade: (ids) => missingOf(monthsOf(ids)).length === 0,
    ensure: (ids) => make(monthsOf(ids)),
    ahead: async () => {
      const [row] = await session.run(LIMIT, (query) =>
        query<{ now: string }>('select (extract(epoch from now()) * 1000)::bigint as now'),
      );
      const month = monthOf(Number(row?.now));
      await make([month, month + 1, month + 2]);
    },
    isDropped: (id) => {
      const time = timeOf(id);
      return time !== undefined && dropped.has(monthOf(time));
    },
    forget: () => known.clear(),
  };
}

function monthsOf(ids: ReadonlyArray<string>): ReadonlyArray<Month> {
  const months = new Set<Month>();
  for (const id of ids) {
    const time = timeOf(id);
    if (time !== undefined) months.add(monthOf(time)).add(monthOf(time) + 1);
  }
  return [...months];
}

export function monthOf(time: Millis): Month {
  const date = new Date(time);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}

/** Made aside and then attached: readers and writers of the other months are not stopped. */
async function makeMonth(query: Query, month: Month): Promise<void> {
  const start = new Date(Date.UTC(1970, month, 1));
  const suffix = start.toISOString().slice(0, 7).replace('-', '_');
  const range = `from ('${leastId(start.getTime())}') to ('${leastId(Date.UTC(1970, month + 1, 1))}')`;
  for (const table of ['entry', 'charge']) {
    if (await hasTable(query, `${table}_${suffix}`)) continue;
    const name = `gateway_operator.${table}_${suffix}`;
    await query(`create table ${name} (like gateway_operator.${table} including all);
      alter table gateway_operator.${table} attach partition ${name} for values ${range}`);
  }
}
