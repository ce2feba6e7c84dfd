// Bookings: entries and their sums in one transaction, exactly once; what PostgreSQL rejects goes to `entry_rejected` (LEDGER 2, 8).
import pg from 'pg';
import type { Entry, Marks } from '#core/ports/books.ts';
import type { Log } from '#core/ports/clock.ts';
import type { EntryName } from '#core/ports/store.ts';
import { mark } from './epochs.ts';
import { insertEntries } from './insert-entries.ts';
import type { Months } from './months.ts';
import { lockForBooking } from './recount.ts';
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
  const aside: Aside[] = [];
  const value = await session.transaction(BACKGROUND_LIMIT, (query) => {
    aside.length = 0;
    return work({ query, months, aside });
  });
  for (const fields of aside) log.error('PostgreSQL rejected an entry; it is in entry_rejected', { ...fields });
  return value;
}

export interface Booking {
  readonly query: Query;
  readonly months: Months;
  readonly aside: Aside[];
}

interface Aside extends EntryName {
  readonly instance: string;
  readonly reason: string;
}

/** Books a batch whole, or, where that is refused, all of it but the bad rows. */
export async function bookIn(
  booking: Booking,
  instanceUid: string,
  entries: ReadonlyArray<Entry>,
  marks: Marks | undefined,
): Promise<{ readonly rejected: ReadonlyArray<string>; readonly epoch?: number }> {
  const { query, months } = booking;
  const ids = entries.map(({ id }) => id);
  await lockForBooking(query, instanceUid);
  await months.ensure(query, ids);
  const refusal = await refusalIn(query, () => insertEntries(query, instanceUid, entries));
  // A month may have gone since it was made: another process dropped it, or the database was restored.
  if (refusal !== undefined) {
    months.forget();
    await months.ensure(query, ids);
  }
  const rejected = refusal === undefined ? [] : await bookApart(booking, instanceUid, entries);
  return marks === undefined ? { rejected } : { rejected, epoch: await mark(query, instanceUid, marks) };
}

/** Returns the rejected ids: those whose month is gone, and those that PostgreSQL does not take. */
async function bookApart(booking: Booking, instanceUid: string, entries: ReadonlyArray<Entry>): Promise<string[]> {
  const { dropped = [], others = [] } = Object.groupBy(entries, ({ id }) =>
    booking.months.isDropped(id) ? 'dropped' : 'others',
  );
  const aside = await putAside(booking, instanceUid, dropped, DROPPED);
  return [...aside, ...(await bookHalving(booking, instanceUid, others))];
}

/** A refused batch is halved until the bad rows stand alone (LEDGER 8). */
async function bookHalving(booking: Booking, instanceUid: string, entries: ReadonlyArray<Entry>): Promise<string[]> {
  if (entries.length === 0) return [];
  const refusal = await refusalIn(booking.query, () => insertEntries(booking.query, instanceUid, entries));
  if (refusal === undefined) return [];
  if (entries.length === 1) return putAside(booking, instanceUid, entries, refusal);
  const half = Math.ceil(entries.length / 2);
  const rejected = await bookHalving(booking, instanceUid, entries.slice(0, half));
  return [...rejected, ...(await bookHalving(booking, instanceUid, entries.slice(half)))];
}

/** Twice would be as wrong as never: a person decides. */
const DROPPED = 'its month was dropped (RETAIN_MONTHS), and with it the record of whether it was booked';

const PUT_ASIDE = `
insert into gateway_operator.entry_rejected (id, kind, instance_uid, entry, reason)
select id, kind, $3, entry::json, $5 from unnest($1::text[], $2::text[], $4::text[]) as t (id, kind, entry)
on conflict (id, kind) do nothing`;

async function putAside(
  { query, aside }: Booking,
  instanceUid: string,
  entries: ReadonlyArray<Entry>,
  reason: string,
): Promise<string[]> {
  if (entries.length === 0) return [];
  const ids = entries.map(({ id }) => printable(id));
  const kinds = entries.map(({ kind }) => printable(kind));
  await query(PUT_ASIDE, [ids, kinds, instanceUid, entries.map(toJson), reason]);
  for (const { id, kind } of entries) aside.push({ id, kind, instance: instanceUid, reason });
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

function toJson(entry: Entry): string {
  return JSON.stringify(entry, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}

/** PostgreSQL's text holds no NUL. */
function printable(text: string): string {
  return text.replaceAll('\u0000', '\\u0000');
}
