// Bookings: entries and their sums in one transaction, exactly once; what PostgreSQL rejects goes to `entry_rejected`
// (LEDGER 2, 8).
import pg from 'pg';
import type { Log } from '#core/ports/clock.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Months } from './partitions.ts';
import { BACKGROUND_LIMIT, type Query, type Session } from './session.ts';

export interface BookingDeps {
  readonly session: Session;
  readonly months: Months;
  readonly log: Log;
}

/** One transaction in which batches are booked. Rejected entries are reported after the commit. */
export async function inBooking<T>(
  { session, months, log }: BookingDeps,
  work: (booking: Booking) => Promise<T>,
): Promise<T> {
  const rejected: RejectedRow[] = [];
  const value = await session.transaction(BACKGROUND_LIMIT, (query) => {
    rejected.length = 0;
    return work({ query, months, rejected: rejected });
  });
  for (const fields of rejected) log.error('PostgreSQL rejected an entry; it is in entry_rejected', { ...fields });
  return value;
}

export interface Booking {
  readonly query: Query;
  readonly months: Months;
  readonly rejected: RejectedRow[];
}

interface RejectedRow extends Pick<LedgerRow, 'id' | 'kind'> {
  readonly instance: string;
  readonly reason: string;
}

/** Inserts entries whole, or, where that is refused, all but the bad rows. Returns the rejected ids. */
export async function insertAll(
  booking: Booking,
  instanceUid: string,
  entries: ReadonlyArray<LedgerRow>,
  insert: Insert,
): Promise<string[]> {
  const { query, months } = booking;
  const ids = entries.map(({ id }) => id);
  await months.ensure(query, ids);
  if ((await refusalIn(query, () => insert(entries))) === undefined) return [];
  // A month may have gone since it was made: another process dropped it, or the database was restored.
  months.forget();
  await months.ensure(query, ids);
  const { dropped = [], others = [] } = Object.groupBy(entries, ({ id }) =>
    months.isDropped(id) ? 'dropped' : 'others',
  );
  const rejected = await insertRejected(booking, instanceUid, dropped, DROPPED);
  return [...rejected, ...(await insertHalving(booking, instanceUid, others, insert))];
}

type Insert = (entries: ReadonlyArray<LedgerRow>) => Promise<void>;

/** A refused batch is halved until the bad rows stand alone (LEDGER 8). */
async function insertHalving(
  booking: Booking,
  instanceUid: string,
  entries: ReadonlyArray<LedgerRow>,
  insert: Insert,
): Promise<string[]> {
  if (entries.length === 0) return [];
  const refusal = await refusalIn(booking.query, () => insert(entries));
  if (refusal === undefined) return [];
  if (entries.length === 1) return insertRejected(booking, instanceUid, entries, refusal);
  const half = Math.ceil(entries.length / 2);
  const rejected = await insertHalving(booking, instanceUid, entries.slice(0, half), insert);
  return [...rejected, ...(await insertHalving(booking, instanceUid, entries.slice(half), insert))];
}

/** Twice would be as wrong as never: a person decides. */
const DROPPED = 'its month was dropped (RETAIN_MONTHS), and with it the record of whether it was booked';

const INSERT_REJECTED = `
insert into gateway_operator.entry_rejected (id, kind, instance_uid, entry, reason, cost, charges, scope_ids)
select id, kind, $3, entry::json, $5, cost, charges::json,
  array(select charge ->> 'scopeId' from json_array_elements(charges::json) as charge)
from unnest($1::text[], $2::text[], $4::text[], $6::numeric[], $7::text[]) as t (id, kind, entry, cost, charges)
on conflict (id, kind) do nothing`;

async function insertRejected(
  { query, rejected }: Booking,
  instanceUid: string,
  entries: ReadonlyArray<LedgerRow>,
  reason: string,
): Promise<string[]> {
  if (entries.length === 0) return [];
  const ids = entries.map(({ id }) => printable(id));
  const kinds = entries.map(({ kind }) => printable(kind));
  const [costs, charges] = [
    entries.map(({ cost }) => cost),
    entries.map((entry) => JSON.stringify(entry.scopeWindows)),
  ];
  await query(INSERT_REJECTED, [ids, kinds, instanceUid, entries.map(toJson), reason, costs, charges]);
  for (const { id, kind } of entries) rejected.push({ id, kind, instance: instanceUid, reason });
  return entries.map(({ id }) => id);
}

/** Why PostgreSQL does not take the rows that `work` writes, which is undone then; undefined when it took them. */
async function refusalIn(query: Query, work: () => Promise<void>): Promise<string | undefined> {
  await query('savepoint batch');
  try {
    await work();
    return undefined;
  } catch (error) {
    // Classes 22 (data), 23 (integrity) and 54 (limits) are about the rows.
    if (!(error instanceof pg.DatabaseError && /^(22|23|54)/.test(error.code ?? ''))) throw error;
    await query('rollback to savepoint batch; release savepoint batch');
    return `${error.code}: ${error.message}`;
  }
}

function toJson(entry: LedgerRow): string {
  return JSON.stringify(entry, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}

/** PostgreSQL's text holds no NUL. */
function printable(text: string): string {
  return text.replaceAll('\u0000', '\\u0000');
}
