// The ledger database: numbered batches of ledger rows, and one closing per account (LEDGER 3, 8).

import { createLimiter } from '#core/concurrency/limiter.ts';
import type { AccountRow } from '#core/ports/counter-store.ts';
import type { AccountClosing, Batch, BatchOutcome, ExpiredRow, LedgerDatabase } from '#core/ports/ledger-database.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Random } from '#core/ports/platform.ts';
import { counterKey, type ScopeId } from '#core/ports/policy.ts';
import type { Recount } from '#core/ports/registry.ts';
import { type BookingDependencies, type BookingTransaction, inBooking, refusalOf } from './booking.ts';
import { EPOCH_LOCK } from './epochs.ts';
import { toExpiredRows } from './expired-rows.ts';
import { insertBatch, writeSets } from './insert-batch.ts';
import { createQueries, inPortions, toColumns } from './ledger-queries.ts';
import { createKnownSets, createSets, type LedgerSets } from './ledger-sets.ts';
import { literal } from './literal.ts';
import { BOOKING_LOCK, countFirst, UNCOUNTED } from './recount.ts';
import { BACKGROUND_LIMIT, GATEWAY_LIMIT, type Query } from './session.ts';

interface LedgerDatabaseDependencies extends BookingDependencies {
  readonly random: Random;
}

export function createLedgerDatabase(deps: LedgerDatabaseDependencies, instanceUid: string): LedgerDatabase {
  const query: Query = (...call) => deps.session.query(GATEWAY_LIMIT, ...call);
  const queries = createQueries(deps.session);
  const knownSets = createKnownSets();
  const limited = createLimiter(MAX_COUNTS);
  /** First counts that wait or run, by counter: however many requests need a counter, it is counted once. */
  const counting = new Map<string, Promise<void>>();
  const count = (counter: Recount): Promise<void> => {
    const key = counterKey(counter);
    const counted = limited(() =>
      deps.session.transaction(BACKGROUND_LIMIT, (ask) => countFirst(ask, [counter])),
    ).finally(() => counting.delete(key));
    counting.set(key, counted);
    return counted;
  };
  const writeSetsOf = async ({ rows }: Batch, sets: LedgerSets): Promise<void> => {
    const write: Query = (...call) => deps.session.query(BACKGROUND_LIMIT, ...call);
    try {
      for (const set of await writeSets(write, instanceUid, sets, rows)) knownSets.add(set);
    } catch (error) {
      // PostgreSQL refuses a set, or has no partition for it: the transaction of the batch writes them.
      refusalOf(error);
    }
  };
  return {
    ...queries,
    bookBatch: async (batch) => {
      const sets = createSets(instanceUid, knownSets);
      await writeSetsOf(batch, sets);
      return inBooking(deps, (booking) => book(booking, instanceUid, batch, sets));
    },
    countFirst: async (counters) => {
      const find = async (portion: ReadonlyArray<Recount>) => {
        const rows = await query<{ index: number }>(UNCOUNTED, toColumns(portion));
        return rows.flatMap(({ index }) => portion[index - 1] ?? []);
      };
      const uncounted = await inPortions(counters, find);
      await Promise.all(uncounted.map((counter) => counting.get(counterKey(counter)) ?? count(counter)));
    },
    close: (closing) => inBooking(deps, (booking) => close({ ...booking, ...deps, instanceUid }, closing)),
    accountRows: async (accounts) =>
      new Map(await inPortions(accounts, (portion) => rowsOf(query, instanceUid, portion))),
    uncorrectedRows: (accounts) =>
      inPortions(accounts, ([account = '']) => expiredRowsOf(query, queries.bookedOf, [instanceUid, account]), 1),
  };
}

/** The maximum concurrent first counts of this process: they leave connections for look-ups and bookings. */
const MAX_COUNTS = 2;

async function book(
  booking: BookingTransaction,
  instanceUid: string,
  batch: Batch,
  sets: LedgerSets,
): Promise<{ readonly outcome: BatchOutcome; readonly rejected: ReadonlyArray<string> }> {
  const { query } = booking;
  const { account, closesAccount = false, rows, epoch, storeCalls } = batch;
  // A batch of a ledger for one request (Workers): the ledger row itself records that its account is closed.
  const isPerRequest = closesAccount && rows.some(({ id }) => id === account?.id);
  await lock(query, instanceUid, isPerRequest ? account?.id : undefined);
  const outcome = await recordBatch(query, instanceUid, isPerRequest, batch);
  if (outcome !== 'booked') return { outcome, rejected: [] };
  // Between two accounts, the process only knows the count of calls of the lost store, which must not be recorded.
  const knownStoreCalls = account === undefined ? 0 : storeCalls;
  return {
    outcome,
    rejected: await insertBatch(booking, instanceUid, { rows, epoch, storeCalls: knownStoreCalls, sets }),
  };
}

/**
 * Takes the locks of a booking. A booking and the closing of its account are ordered by the row of the account, which
 * RECORD_BATCH and CLOSE lock. `account`: an account that may have no row, so that it is locked by its id.
 */
async function lock(query: Query, instanceUid: string, account?: string): Promise<void> {
  const own = account === undefined ? '' : ', pg_advisory_xact_lock(hashtextextended($2, 7203418870))';
  const shared = `select pg_advisory_xact_lock_shared(${BOOKING_LOCK}), pg_advisory_xact_lock_shared(${EPOCH_LOCK})${own}`;
  await query(shared, account === undefined ? [instanceUid] : [instanceUid, account]);
}

/** Records the batch in the row of its account. `booked`: the batch may be inserted. */
async function recordBatch(
  query: Query,
  instanceUid: string,
  isPerRequest: boolean,
  batch: Batch,
): Promise<BatchOutcome> {
  const { epoch, account, closesAccount = false } = batch;
  if (account !== undefined) {
    const values = [instanceUid, account.id, account.batch, account.callNumber, epoch, closesAccount];
    const recorded = await query(
      isPerRequest ? CHECK_REQUEST : RECORD_BATCH,
      isPerRequest ? values.slice(0, 2) : values,
    );
    if (recorded.length > 0) return 'booked';
    if (closesAccount) return 'tooLate';
  }
  const [current] = await query<Epoch>(CURRENT, [instanceUid]);
  if (Number(current?.epoch ?? 0) !== epoch) return 'epoch';
  return account !== undefined || current?.isOpen === true ? 'tooLate' : 'booked';
}

interface Epoch {
  readonly epoch: string;
  readonly isOpen: boolean;
}

/**
 * The epoch, which stays as it is until the locks are released. Sums are read as soon as it is open, so it opens after
 * the bookings by ids and the closings that are in progress.
 */
const CURRENT = `
select epoch::text as epoch, opened_at is not null as "isOpen" from gateway_operator.store_epoch where instance_uid = $1`;

/**
 * A batch that was booked before its account was closed is recorded again without effect. A batch that closes the
 * account ends a closing by another process, which charges no further page.
 */
export const RECORD_BATCH = `
insert into gateway_operator.account as a (instance_uid, account, booked_batch, call_number, closed_at)
select $1, $2::uuid, $3::bigint, $4::bigint, case when $6::boolean then clock_timestamp() end
where $6::boolean or exists (select from gateway_operator.store_epoch where instance_uid = $1 and epoch = $5::bigint)
on conflict (instance_uid, account) do update set booked_batch = greatest(a.booked_batch, excluded.booked_batch),
    call_number = greatest(a.call_number, excluded.call_number), closed_at = coalesce(a.closed_at, excluded.closed_at),
    closing = case when $6::boolean and a.closing = 'begun' then null else a.closing end
  where a.closed_at is null or a.booked_batch >= excluded.booked_batch
returning 1`;

const CHECK_REQUEST = `
select 1 where not exists (
  select from gateway_operator.account where instance_uid = $1 and account = $2::uuid and closed_at is not null)`;

interface ClosingTransaction extends BookingTransaction {
  readonly instanceUid: string;
  readonly random: Random;
}

async function close(
  { instanceUid, random, ...booking }: ClosingTransaction,
  closing: AccountClosing,
): ReturnType<LedgerDatabase['close']> {
  const { query } = booking;
  const { account, epoch, isLast } = closing;
  await lock(query, instanceUid, account);
  const [current] = await query<Epoch>(CURRENT, [instanceUid]);
  if (Number(current?.epoch ?? 0) !== epoch) return { outcome: 'epoch' };
  if (current?.isOpen === true && closing.isRebuild === true) return { outcome: 'epoch' };
  const [closedAccount] = await query<{ bookedBatch: string }>(CLOSE, [
    instanceUid,
    account,
    closing.callNumber ?? null,
    isLast,
  ]);
  const rows = closedAccount === undefined ? [] : toExpiredRows(closing, Number(closedAccount.bookedBatch), random);
  const newRows = await recordExpiredRows(query, [instanceUid, account], rows);
  if (closedAccount !== undefined)
    await insertBatch(booking, instanceUid, { rows: newRows, epoch, storeCalls: closing.storeCalls });
  const [[, row] = []] = await rowsOf(query, instanceUid, [account]);
  if (row === undefined) throw new Error(`the account ${account} was not closed`);
  return row.isClosed ? { outcome: 'closed', row, ledgerRows: newRows } : { outcome: 'wentBack' };
}

/**
 * Closes the account for a page of its figures and returns its last batch; nothing if all figures are charged, or the
 * account or the ledger row of its request has closed it.
 */
const CLOSE = `
insert into gateway_operator.account as a (instance_uid, account, booked_batch, call_number, closed_at, closing)
select $1, $2::uuid, 0, 0, clock_timestamp(), case when $4::boolean then 'done' else 'begun' end
where not exists (select from gateway_operator.ledger_row where id = $2::uuid)
on conflict (instance_uid, account) do update
  set closed_at = coalesce(a.closed_at, excluded.closed_at), closing = excluded.closing
  where a.closing = 'begun' or (a.closed_at is null and a.call_number <= coalesce($3::bigint, a.call_number))
returning booked_batch::text as "bookedBatch"`;

/** Records expired rows; returns those of counters that are not charged yet. The row of the account is locked. */
async function recordExpiredRows(
  query: Query,
  account: ReadonlyArray<string>,
  rows: ReadonlyArray<LedgerRow>,
): Promise<ReadonlyArray<LedgerRow>> {
  if (rows.length === 0) return [];
  const scopeWindows = rows.flatMap((row) => row.scopeWindows);
  const columns = [
    literal(scopeWindows, ({ scopeId }) => scopeId),
    literal(scopeWindows, ({ window }) => window.start),
    literal(scopeWindows, ({ window }) => window.end),
    literal(rows, ({ id }) => id),
  ];
  const newRows = await query<{ id: string }>(INSERT_EXPIRED_ROWS, [...account, ...columns]);
  const newIds = new Set(newRows.map(({ id }) => id));
  return rows.filter(({ id }) => newIds.has(id));
}

const INSERT_EXPIRED_ROWS = `
insert into gateway_operator.expired_row (instance_uid, account, scope_id, window_start, window_end, id)
select $1, $2::uuid, scope_id, window_start, window_end, id
from unnest($3::uuid[], $4::bigint[], $5::bigint[], $6::uuid[]) as t (scope_id, window_start, window_end, id)
on conflict do nothing returning id::text`;

async function rowsOf(
  query: Query,
  instanceUid: string,
  accounts: ReadonlyArray<string>,
): Promise<ReadonlyArray<readonly [string, AccountRow]>> {
  const sorted = accounts.toSorted();
  const rows = await query<Row>(ACCOUNT_ROWS, [instanceUid, sorted, sorted[0], sorted.at(-1)]);
  return rows.map(({ account, bookedBatch, callNumber, ...flags }) => [
    account,
    { bookedBatch: Number(bookedBatch), callNumber: Number(callNumber), ...flags },
  ]);
}

interface Row extends Pick<AccountRow, 'isClosed' | 'isCharged' | 'isClosing'> {
  readonly account: string;
  readonly bookedBatch: string;
  readonly callNumber: string;
}

/** The bounds of the ids exclude the days that cannot contain them. */
export const ACCOUNT_ROWS = `
select account::text, booked_batch::text as "bookedBatch", call_number::text as "callNumber", closed_at is not null as "isClosed",
  coalesce(closing = 'done', false) and "isInEpoch" as "isCharged", coalesce(closing = 'begun', false) and "isInEpoch" as "isClosing"
from gateway_operator.account cross join lateral (select coalesce(closed_at >= (
  select opened_at from gateway_operator.store_epoch where instance_uid = $1), false) as "isInEpoch") as e
where instance_uid = $1 and account = any($2::uuid[])
union all
select distinct id::text, '0', '0', true, false, false from gateway_operator.ledger_row e
where id = any($2::uuid[]) and id >= $3::uuid and id <= $4::uuid
  and not exists (select from gateway_operator.account where instance_uid = $1 and account = e.id)`;

/** The maximum expired rows in one reply. */
const MAX_ROWS = 10_000;

/**
 * Reads the expired rows of an account in portions, each after the last counter of the previous one. Their costs are
 * read by their ids: a join would plan with all partitions of ledger rows.
 */
async function expiredRowsOf(
  query: Query,
  bookedOf: LedgerDatabase['bookedOf'],
  account: ReadonlyArray<string>,
): Promise<ReadonlyArray<ExpiredRow>> {
  const expired: ExpiredRow[] = [];
  for (let last: ReadonlyArray<unknown> = [null, null, null]; ; ) {
    const rows = await query<ExpiredRowText>(EXPIRED_ROWS, [...account, ...last, MAX_ROWS]);
    const booked = await bookedOf(rows.map(({ id }) => id));
    for (const { id, scopeId, start, end } of rows) {
      const [row, correction] = ['expired', 'correction'].map((kind) =>
        booked.get(id)?.find((one) => one.kind === kind),
      );
      if (row === undefined || correction !== undefined) continue;
      expired.push({ id, scopeId, spent: row.cost, window: { start: Number(start), end: Number(end) } });
    }
    const { scopeId, start, end } = rows.at(-1) ?? {};
    if (rows.length < MAX_ROWS) return expired;
    last = [scopeId, start, end];
  }
}

interface ExpiredRowText {
  readonly id: string;
  readonly scopeId: ScopeId;
  readonly start: string;
  readonly end: string;
}

export const EXPIRED_ROWS = `
select id::text, scope_id::text as "scopeId", window_start::text as start, window_end::text as "end"
from gateway_operator.expired_row
where instance_uid = $1 and account = $2::uuid
  and ($3::uuid is null or (scope_id, window_start, window_end) > ($3::uuid, $4::bigint, $5::bigint))
order by scope_id, window_start, window_end limit $6`;
