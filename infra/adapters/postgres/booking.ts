// Bookings: ledger rows and their sums in one transaction, exactly once. Rows that PostgreSQL refuses go to the table
// `entry_rejected` (LEDGER 2, 8).
import pg from 'pg';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Log } from '#core/ports/telemetry.ts';
import type { Partitions } from './partitions.ts';
import { BACKGROUND_LIMIT, type Query, type Session } from './session.ts';

export interface BookingDependencies {
  readonly session: Session;
  readonly partitions: Partitions;
  readonly log: Log;
}

/** Books in one transaction. Rejected rows are reported after the commit. */
export async function inBooking<T>(
  { session, partitions, log }: BookingDependencies,
  work: (booking: BookingTransaction) => Promise<T>,
): Promise<T> {
  const rejected: RejectedRow[] = [];
  const value = await session.transaction(BACKGROUND_LIMIT, (query) => {
    rejected.length = 0;
    return work({ query, partitions, rejected });
  });
  for (const fields of rejected)
    log.error('ledger: PostgreSQL refused a ledger row, which is in the table entry_rejected', { ...fields });
  return value;
}

export interface BookingTransaction {
  readonly query: Query;
  readonly partitions: Partitions;
  readonly rejected: RejectedRow[];
}

interface RejectedRow extends Pick<LedgerRow, 'id' | 'kind'> {
  readonly instance: string;
  readonly reason: string;
}

/** Inserts all rows, or all but the bad rows if PostgreSQL refuses them. Returns the rejected ids. */
export async function insertAll(
  booking: BookingTransaction,
  instanceUid: string,
  rows: ReadonlyArray<LedgerRow>,
  insert: Insert,
): Promise<string[]> {
  const { query, partitions } = booking;
  const ids = rows.map(({ id }) => id);
  await partitions.ensureFor(query, ids);
  if ((await refusalIn(query, () => insert(rows))) === undefined) return [];
  // A day may be missing although it was made: another process dropped it, or the database was restored.
  partitions.reset();
  await partitions.ensureFor(query, ids);
  const { dropped: droppedRows = [], others: remainingRows = [] } = Object.groupBy(rows, ({ id }) =>
    partitions.isDropped(id) ? 'dropped' : 'others',
  );
  const rejected = await insertRejected(booking, instanceUid, droppedRows, DROPPED);
  return [...rejected, ...(await insertHalving(booking, instanceUid, remainingRows, insert))];
}

type Insert = (rows: ReadonlyArray<LedgerRow>) => Promise<void>;

/** Halves a refused batch until each bad row is alone (LEDGER 8). */
async function insertHalving(
  booking: BookingTransaction,
  instanceUid: string,
  rows: ReadonlyArray<LedgerRow>,
  insert: Insert,
): Promise<string[]> {
  if (rows.length === 0) return [];
  const refusal = await refusalIn(booking.query, () => insert(rows));
  if (refusal === undefined) return [];
  if (rows.length === 1) return insertRejected(booking, instanceUid, rows, refusal);
  const half = Math.ceil(rows.length / 2);
  const rejected = await insertHalving(booking, instanceUid, rows.slice(0, half), insert);
  return [...rejected, ...(await insertHalving(booking, instanceUid, rows.slice(half), insert))];
}

/** To book the row twice would be as wrong as not to book it, so a person decides. */
const DROPPED = 'its day was dropped (RETAIN_DAYS), and with it the record of whether it was booked';

const INSERT_REJECTED = `
insert into gateway_operator.entry_rejected (id, kind, instance_uid, ledger_row, reason, cost, scope_windows, scope_ids)
select id, kind, $3, ledger_row::json, $5, cost, scope_windows::json,
  array(select scope_window ->> 'scopeId' from json_array_elements(scope_windows::json) as scope_window)
from unnest($1::text[], $2::text[], $4::text[], $6::numeric[], $7::text[]) as t (id, kind, ledger_row, cost, scope_windows)
on conflict (id, kind) do nothing`;

async function insertRejected(
  { query, rejected }: BookingTransaction,
  instanceUid: string,
  rows: ReadonlyArray<LedgerRow>,
  reason: string,
): Promise<string[]> {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => printable(id));
  const kinds = rows.map(({ kind }) => printable(kind));
  const [costs, scopeWindows] = [rows.map(({ cost }) => cost), rows.map((row) => JSON.stringify(row.scopeWindows))];
  await query(INSERT_REJECTED, [ids, kinds, instanceUid, rows.map(toJson), reason, costs, scopeWindows]);
  for (const { id, kind } of rows) rejected.push({ id, kind, instance: instanceUid, reason });
  return rows.map(({ id }) => id);
}

/** The reason why PostgreSQL refuses the rows of `work`, which is then undone; undefined if it accepts them. */
export async function refusalIn(query: Query, work: () => Promise<void>): Promise<string | undefined> {
  await query('savepoint batch');
  try {
    await work();
    return undefined;
  } catch (error) {
    const refusal = refusalOf(error);
    await query('rollback to savepoint batch; release savepoint batch');
    return refusal;
  }
}

/** The reason in an error that is about the rows: of class 22 (data), 23 (integrity) or 54 (limits). Throws any other. */
export function refusalOf(error: unknown): string {
  if (error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? ''))
    return `${error.code}: ${error.message}`;
  throw error;
}

function toJson(row: LedgerRow): string {
  return JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}

/** Replaces NUL, which a text of PostgreSQL cannot contain. */
function printable(text: string): string {
  return text.replaceAll('\u0000', '\\u0000');
}
