// Bookings: entries and their sums in one transaction, exactly once; what PostgreSQL refuses is put aside (LEDGER 2, 8).
import pg from 'pg';
import type { Entry, EntryKind, Marks } from '#core/ports/books.ts';
import type { Log } from '#core/ports/clock.ts';
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

/**
 * One transaction for `work`. A first attempt takes batches whole; where one is refused, or its month has no partition
 * yet, that is rolled back, the months are made, and `work` runs again with batches that are halved.
 */
export async function inBooking<T>(
  { session, months, log }: BookingDeps,
  work: (booking: Booking) => Promise<T>,
): Promise<T> {
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
}

/** The transaction in which a batch is booked, and what it has put aside. */
export interface Booking {
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

export async function bookIn(
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
    await insertEntries(query, instanceUid, entries);
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
  const refusal = await refusalIn(query, () => insertEntries(query, instanceUid, entries));
  if (refusal === undefined) return [];
  const [first, ...rest] = entries;
  if (first === undefined) return [];
  if (rest.length === 0) return putAside(booking, instanceUid, [first], refusal);
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
