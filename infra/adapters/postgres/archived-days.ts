// The record of what an archive has: files of ledger rows by day, each of a range of ids (docs/operate/archive.md).
import * as z from 'zod';
import { haveSameFigures, type RowFigures } from '#core/ports/archive.ts';
import type { Millis } from '#core/ports/money.ts';
import { type IdRange, readFigures, readRows } from './archived-rows.ts';
import { DAY, lowestId } from './partitions.ts';
import { AmountText, checkRows, Uuid } from './row.ts';
import { hasTable } from './schema.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';

/** The time after its end at which a day is written. */
const SETTLED_AFTER: Millis = 2 * DAY;
/**
 * Seconds for which one reconciler may write: more than it needs in one resync. If it dies, others wait for this time.
 */
const LEASE = 60;

/** The right to write to one archive for a while, which one reconciler has at a time. */
export interface ArchiveLease {
  readonly url: string;
  readonly lease: string;
  /** The folder of this database in the archive. */
  readonly folder: string;
}

/** A file of the archive. */
export interface ArchivedFile extends IdRange {
  /** `2026-01-31`. */
  readonly day: string;
  /** Whether a file with these rows or more is in the archive. */
  readonly isWritten: boolean;
  /** The sums of its rows; absent: it must be written. */
  readonly figures?: RowFigures;
  /** PostgreSQL's count of inserts into the day. The file is current if it was compared at this count. */
  readonly inserts: string;
}

/** Methods that change the record do nothing and return false if the lease has ended, except `recordOverwritten`. */
export type ArchivedDays = ReturnType<typeof createArchivedDays>;

export function createArchivedDays(session: Session) {
  const setFile = async (
    { url, lease }: ArchiveLease,
    { from, until, inserts }: ArchivedFile,
    { end = until, figures, isWritten }: FileChange,
  ): Promise<boolean> => {
    const { rows = null, cost = null, ids = null } = figures ?? {};
    const values = [url, lease, from, end, until, isWritten, figures ? inserts : null, rows, cost, ids];
    return (await session.query(LIMIT, SET_FILE, values)).length > 0;
  };
  return {
    /** Undefined: another reconciler has the lease. */
    lease: async (url: string): Promise<ArchiveLease | undefined> => {
      const [row] = checkRows(LeaseRowSchema, await session.query<LeaseRow>(LIMIT, TAKE, [url, LEASE]));
      return row && { url, lease: row.lease, folder: row.folder };
    },
    release: ({ url, lease }: ArchiveLease) => session.query(LIMIT, RELEASE, [url, lease]),
    /**
     * The next file that must be written or compared, of the oldest day that ended 48 hours ago; undefined: none. The
     * last file of a day comes first: rows that move out of the range of a file are already in the file after it.
     */
    nextFile: async ({ url }: ArchiveLease, now: Millis): Promise<ArchivedFile | undefined> => {
      const [row] = checkRows(
        FileRowSchema,
        await session.query<FileRow>(LIMIT, NEXT, [url, now, SETTLED_AFTER / 1000]),
      );
      return row && toFile(row);
    },
    /** The number of days that ended 48 hours ago and whose rows may not all be in the archive. */
    waitingDays: async (url: string, now: Millis): Promise<number> => {
      const values = [url, now, SETTLED_AFTER / 1000];
      const [row] = checkRows(WaitingRowSchema, await session.query<{ days: number }>(LIMIT, WAITING, values));
      return row?.days ?? 0;
    },
    /** Reads the first rows of the range. */
    rows: (range: IdRange, count: number) => readRows(session, range, count),
    /** Adds up the rows in PostgreSQL. */
    figures: (range: IdRange) => session.run(LIMIT, (query) => readFigures(query, range)),
    /** The file has the rows up to `end`. The rest of its range becomes another file, which must be written. */
    recordWritten: (lease: ArchiveLease, file: ArchivedFile, { end, figures }: { end: string; figures: RowFigures }) =>
      setFile(lease, file, { end, figures, isWritten: file.isWritten || figures.rows > 0 }),
    /** The file has the rows that PostgreSQL has. */
    recordCompared: async ({ url, lease }: ArchiveLease, { from, inserts }: ArchivedFile): Promise<boolean> =>
      (await session.query(LIMIT, COMPARED, [url, lease, from, inserts])).length > 0,
    /** The rows from `at` on become another file. It must be written, and then this file again without them. */
    recordSplit: (lease: ArchiveLease, file: ArchivedFile, at: string) =>
      setFile(lease, file, { end: at, isWritten: file.isWritten }),
    /** The archive lacks the file, or some of its rows: it must be written again. */
    recordIncomplete: (lease: ArchiveLease, file: ArchivedFile) => setFile(lease, file, { isWritten: file.isWritten }),
    /**
     * For a file that was written without the lease: another reconciler may have written it too, so it must be written
     * again.
     */
    recordOverwritten: ({ url }: ArchiveLease, { from }: ArchivedFile) =>
      session.query(LIMIT, WRITE_AGAIN, [url, from]),
    /** The next file of a day that was not read back; undefined: all were. */
    nextUnread: async ({ url }: ArchiveLease, day: string): Promise<ArchivedFile | undefined> => {
      const [row] = checkRows(FileRowSchema, await session.query<FileRow>(LIMIT, UNREAD, [url, day]));
      return row && toFile(row);
    },
    /** The file was read back, and has the rows of its figures. */
    recordReadBack: ({ url, lease }: ArchiveLease, { from }: ArchivedFile) =>
      session.query(LIMIT, READ_BACK, [url, lease, from]),
    /**
     * Whether the files of a day were read back and have all rows that PostgreSQL has, in the transaction of `query`:
     * until its end, no row comes. If not, they are compared again.
     */
    hasAllRows: async (query: Query, { url }: ArchiveLease, day: string): Promise<boolean> => {
      const table = `ledger_row_${day.replaceAll('-', '_')}`;
      if (!(await hasTable(query, table))) return true;
      await query(`lock table gateway_operator.${table} in share row exclusive mode`);
      const hasAll = await haveAllRows(query, day, (await query<FileRow>(READ_FILES, [url, day])).map(toFile));
      if (!hasAll) await query(COMPARE_AGAIN, [url, day]);
      return hasAll;
    },
  };
}

async function haveAllRows(query: Query, day: string, files: ReadonlyArray<ArchivedFile>): Promise<boolean> {
  let end = lowestId(Date.parse(day));
  for (const { from, until, figures } of files) {
    if (from !== end || figures === undefined) return false;
    if (!haveSameFigures(await readFigures(query, { from, until }), figures)) return false;
    end = until;
  }
  return end === lowestId(Date.parse(day) + DAY);
}

interface FileChange {
  readonly end?: string;
  readonly figures?: RowFigures;
  readonly isWritten: boolean;
}

// A tenant's database may answer anything, and these texts become the path of a file.
const WaitingRowSchema = z.object({ days: z.int().min(0) });
const LeaseRowSchema = z.object({ lease: Uuid, folder: Uuid });
const FileRowSchema = z.object({
  day: z.string().regex(/^\d{4}-\d{2}-\d{2}$/),
  from: Uuid,
  until: Uuid,
  isWritten: z.boolean(),
  inserts: z.string(),
  rows: AmountText.nullable(),
  cost: AmountText.nullable(),
  ids: AmountText.nullable(),
});
type LeaseRow = z.output<typeof LeaseRowSchema>;
type FileRow = z.output<typeof FileRowSchema>;

const toFile = ({ rows, cost, ids, ...file }: FileRow): ArchivedFile => ({
  ...file,
  ...(rows !== null && { figures: { rows: Number(rows), cost: BigInt(cost ?? 0), ids: BigInt(ids ?? 0) } }),
});

const TAKE = `
insert into gateway_operator.archive as a (url, lease, leased_until)
values ($1, gen_random_uuid(), now() + make_interval(secs => $2))
on conflict (url) do update set lease = excluded.lease, leased_until = excluded.leased_until where a.leased_until < now()
returning lease::text, folder::text`;

const RELEASE = `
update gateway_operator.archive set leased_until = '-infinity' where url = $1 and lease = $2::uuid`;

/** The days that ended a while ago, by the caller's clock or the database's, whichever is behind. */
const ENDED = `
ended as (
  select to_date(right(c.relname, 10), 'YYYY_MM_DD') as day, pg_stat_get_tuples_inserted(c.oid) as inserts
  from pg_catalog.pg_inherits i
    join pg_catalog.pg_class c on c.oid = i.inhrelid
    join pg_catalog.pg_class p on p.oid = i.inhparent
    join pg_catalog.pg_namespace n on n.oid = p.relnamespace
  where n.nspname = 'gateway_operator' and p.relname = 'ledger_row' and c.relname ~ '^ledger_row_[0-9]{4}_[0-9]{2}_[0-9]{2}$'
    and to_date(right(c.relname, 10), 'YYYY_MM_DD') + 1
      <= (least(now(), to_timestamp($2::float8 / 1000)) - make_interval(secs => $3)) at time zone 'UTC'),
waiting as (
  select day, inserts from ended e where not exists (select from gateway_operator.archived_file f where f.url = $1 and f.day = e.day)
    or exists (select from gateway_operator.archived_file f
      where f.url = $1 and f.day = e.day and f.inserts is distinct from e.inserts))`;

const WAITING = `with ${ENDED} select count(*)::int as days from waiting`;

const COLUMNS = `f.day::text, f.from_id::text as from, f.until_id::text as until, f.is_written as "isWritten",
  f.row_count::text as rows, f.cost::text, f.id_sum::text as ids`;

/** The lowest UUID of a day. */
const lowest = (day: string): string =>
  `rpad(lpad(to_hex(extract(epoch from ${day})::bigint * 1000), 12, '0'), 32, '0')::uuid`;

const NEXT = `
with ${ENDED},
oldest as (select day, inserts from waiting order by day limit 1),
made as (
  insert into gateway_operator.archived_file (url, day, from_id, until_id)
  select $1, day, ${lowest('day')}, ${lowest('(day + 1)')} from oldest
  where not exists (select from gateway_operator.archived_file f where f.url = $1 and f.day = oldest.day)
  returning *),
files as (
  select * from made
  union all
  select f.* from gateway_operator.archived_file f join oldest using (day)
  where f.url = $1 and f.inserts is distinct from oldest.inserts)
select ${COLUMNS}, oldest.inserts::text as inserts
from files f cross join oldest order by f.from_id desc limit 1`;

/** A file that must be written again must also be read back again. */
const SET_FILE = `
with leased as (
  select url from gateway_operator.archive where url = $1 and lease = $2::uuid and leased_until > now() for update),
changed as (
  update gateway_operator.archived_file f set until_id = $4::uuid, is_written = $6, inserts = $7::bigint, row_count = $8::bigint,
    cost = $9::numeric, id_sum = $10::numeric, is_read_back = false
  from leased where f.url = leased.url and f.from_id = $3::uuid and f.until_id = $5::uuid
  returning f.url, f.day),
following as (
  insert into gateway_operator.archived_file (url, day, from_id, until_id)
  select url, day, $4::uuid, $5::uuid from changed where $4::uuid <> $5::uuid)
select from changed`;

const WRITE_AGAIN = `
update gateway_operator.archived_file set inserts = null, row_count = null, is_read_back = false
where url = $1 and from_id = $2::uuid`;

const READ_FILES = `
select ${COLUMNS}, '' as inserts from gateway_operator.archived_file f
where f.url = $1 and f.day = $2::date and f.is_read_back order by f.from_id`;

const COMPARE_AGAIN = `update gateway_operator.archived_file set inserts = null where url = $1 and day = $2::date`;

const UNREAD = `
select ${COLUMNS}, '' as inserts from gateway_operator.archived_file f
where f.url = $1 and f.day = $2::date and not f.is_read_back order by f.from_id limit 1`;

const COMPARED = `
update gateway_operator.archived_file f set inserts = $4::bigint from gateway_operator.archive a
where a.url = $1 and a.lease = $2::uuid and a.leased_until > now() and f.url = a.url and f.from_id = $3::uuid
returning 1`;

const READ_BACK = `
update gateway_operator.archived_file f set is_read_back = true from gateway_operator.archive a
where a.url = $1 and a.lease = $2::uuid and a.leased_until > now() and f.url = a.url and f.from_id = $3::uuid`;
