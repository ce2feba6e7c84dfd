// Maintenance of an instance's ledger, by its gateways and by a resync: accounts whose lease has ended are closed, and
// counters are audited (LEDGER 3, 6).

import type { Cursor } from '../ports/backends.ts';
import type { Clock } from '../ports/clock.ts';
import type { AccountRow, AuditReply, FreezeReply } from '../ports/counter-store.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { AccountClosing, LedgerDatabase } from '../ports/ledger-database.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis } from '../ports/money.ts';
import { counterKey, type ScopeWindow } from '../ports/policy.ts';
import { recordCallCount } from './account.ts';
import type { Closing, LedgerContext, StoreContext } from './context.ts';
import { load } from './counter-loading.ts';
import { logFailure } from './failures.ts';
import { pause } from './timeout.ts';

/** The time in which reported settlements are booked. */
const BOOKED_WITHIN: Millis = 1000;
const POLL_INTERVAL: Millis = 25;
/** The time within which processes renew their leases after the store was away. */
const RENEWED_WITHIN: Millis = 3000;
/**
 * The maximum number of accounts whose rows are read with each page of counters. More accounts at the same time
 * (Workers) are found as changed, and the page is audited again.
 */
const MAX_ACCOUNTS = 2000;
const PAGE = 500;
/** The maximum number of pages, of more counters than a store has memory for. */
const MAX_PAGES = 10_000;
/** After this number of accounts that cannot be closed, the store or the database counts as unreachable. */
const MAX_FAILURES = 3;
/** The maximum number of audits of a counter: it is repeated if batches are booked between its two reads. */
const MAX_ATTEMPTS = 5;
const DEADLINE: Millis = 1000;

const FROM_START: Cursor = { from: 0, move: () => undefined };

/**
 * Closes ended accounts, then audits every loaded counter, from the cursor on. Throws if the store or PostgreSQL is
 * unreachable: the next audit continues with the page of counters that this one has not ended.
 */
export async function maintain(context: StoreContext, epoch: number, cursor = FROM_START): Promise<void> {
  const { counterStore } = context;
  let failures = 0;
  let cause: unknown;
  for (const account of await endedAccounts(context))
    try {
      await closeEnded(context, epoch, account);
    } catch (error) {
      // One account that cannot be closed must not prevent the closing of the others.
      cause = error;
      failures += 1;
      if (failures === MAX_FAILURES) throw error;
    }
  await whenBooked(context);
  const pages = Math.min(MAX_PAGES, Math.ceil((await counterStore.loaded(0, 1)).total / PAGE));
  const first = Math.floor(cursor.from * pages);
  for (let page = first; page < first + pages; page += 1) {
    const { counters } = await counterStore.loaded((page % pages) * PAGE, PAGE);
    const isAudited = await auditCounters(context, epoch, counters);
    if (!isAudited) logFailure(context, 'audit', new Error(`${MAX_ATTEMPTS} attempts`), { counters: counters.length });
    // The middle of the next page is in the same page if a few counters come or go.
    cursor.move((((page + 1) % pages) + 0.5) / pages);
  }
  if (failures > 0) throw new Error('closing accounts that have ended', { cause });
}

/**
 * Accounts whose lease has ended. If the store was away, its processes renew their leases within a moment: this may be
 * the first caller that reaches the store again, so it waits for them.
 */
async function endedAccounts({ counterStore, timer }: StoreContext): Promise<ReadonlyArray<string>> {
  const ended = await counterStore.accounts(true, MAX_ACCOUNTS);
  if (ended.length === 0) return [];
  await pause(timer, RENEWED_WITHIN);
  return (await counterStore.accounts(true, MAX_ACCOUNTS)).map(({ account }) => account);
}

/**
 * Maintains the ledger of an instance without a gateway. Does nothing if the store is new or being rebuilt: the next
 * gateway rebuilds it.
 */
export async function maintainAlone(
  deps: Omit<StoreContext, 'now' | 'store'> & { readonly epochs: Epochs; readonly clock: Clock },
  cursor?: Cursor,
): Promise<void> {
  const { counterStore, epochs, clock } = deps;
  const { epoch, isOpen, callCount } = await epochs.state();
  if (!isOpen) return;
  // An empty audit shows the store's clock.
  const reply = await counterStore.audit(epoch, [], new Map(), Number.MAX_SAFE_INTEGER);
  if (reply.outcome === 'epoch') return;
  const clockOffset = reply.now - clock.now();
  await maintain({ ...deps, store: { epoch, callCount }, now: () => clock.now() + clockOffset }, epoch, cursor);
}

/**
 * Waits until processes have booked what they have reported, since sums are read after a resync. An account whose
 * process died is closed when its lease ends.
 */
async function whenBooked({ counterStore, database, timer, now }: StoreContext): Promise<void> {
  const until = now() + BOOKED_WITHIN;
  const accounts = await counterStore.accounts(false, MAX_ACCOUNTS);
  const unbookedAccounts = accounts.filter(({ unbooked }) => unbooked > 0);
  while (unbookedAccounts.length > 0 && now() < until) {
    const rows = await database.accountRows(unbookedAccounts.map(({ account }) => account));
    const isBooked = unbookedAccounts.every(({ account, unbooked }) => {
      const row = rows.get(account);
      return row !== undefined && (row.isClosed || row.bookedBatch >= unbooked);
    });
    if (isBooked) return;
    await pause(timer, POLL_INTERVAL);
  }
}

interface ClosingRequest {
  readonly epoch: number;
  readonly account: string;
  readonly isOwn: boolean;
  readonly isRebuild: boolean;
}

/**
 * Freezes the account in the store, and closes it in PostgreSQL. Throws if the store or the database is unreachable; may
 * be repeated, by any number of processes.
 */
export async function closeAccount(
  context: StoreContext,
  { epoch, account, isOwn, isRebuild }: ClosingRequest,
): Promise<Exclude<FreezeReply, { outcome: 'frozen' }> | ClosedAccount | { outcome: 'behind' } | undefined> {
  const { counterStore, database, store } = context;
  const knownCallCount = store.epoch === epoch ? store.callCount : 0;
  const freezeReply = await counterStore.freeze(epoch, account, isOwn);
  if (!('callCount' in freezeReply)) return freezeReply;
  // The store shows fewer calls than before, so it has gone back in time.
  if (freezeReply.callCount <= knownCallCount) return { outcome: 'behind' } as const;
  recordCallCount(store, epoch, freezeReply.callCount);
  if (freezeReply.outcome === 'none' && !isOwn) return freezeReply;
  const { now: at, callCount } = freezeReply;
  const number = freezeReply.outcome === 'frozen' ? freezeReply.number : undefined;
  const closing = { epoch, account, number, callCount, at, isRebuild };
  // Before the epoch is open, PostgreSQL gets all that the process has by the ids of its requests.
  const isEmpty = freezeReply.outcome === 'none' || isRebuild;
  const reply = await (isEmpty
    ? database.close({ ...closing, figures: [], isLast: true })
    : chargeFigures(context, closing, isOwn));
  if (reply.outcome === 'epoch') return undefined;
  return reply.outcome === 'closed' ? { ...reply, number } : reply;
}

interface ClosedAccount {
  readonly outcome: 'closed';
  readonly row: AccountRow;
  /** The number of the last call; undefined: the store has no such account. */
  readonly number: number | undefined;
}

/** Closes the account in PostgreSQL, and charges its figures page by page: a counter that is absent is loaded before. */
async function chargeFigures(
  context: StoreContext,
  closing: Omit<AccountClosing, 'figures' | 'isLast'>,
  isOwn: boolean,
): ReturnType<LedgerDatabase['close']> {
  const { counterStore, database, log, instanceUid: instance } = context;
  const { epoch, account } = closing;
  const counters = new Set<string>();
  const charged: LedgerRow[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await counterStore.figures(epoch, account, cursor);
    if (page.outcome === 'epoch') return page;
    if (page.outcome === 'none') return closedMeanwhile(context, account);
    const absent = page.figures.filter(({ isAbsent }) => isAbsent);
    if (absent.length > 0) await load(context, epoch, absent);
    for (const figures of page.figures) counters.add(counterKey(figures));
    const isLast = page.next === undefined;
    if (isLast && counters.size < page.total) throw new Error('another server of the counter store has taken over');
    const reply = await database.close({ ...closing, figures: page.figures, isLast });
    if (reply.outcome !== 'closed') return reply;
    charged.push(...reply.ledgerRows);
    cursor = page.next;
    // Closed: by this process, or meanwhile by another one.
    if (reply.row.isClosing) continue;
    if (charged.length > 0 && !isOwn) {
      const sum = charged.reduce((all, { cost }) => all + cost, 0n);
      const message =
        'ledger: an account was closed after the end of its lease; its requests in flight and unbooked spend are charged, in one ledger row per counter';
      log.warn(message, { instance, account, rows: charged.length, sum: `${sum}` });
    }
    return reply;
  }
}

/** Another process has charged and forgotten the account; else the store has lost that it is frozen. */
async function closedMeanwhile({ database }: StoreContext, account: string): ReturnType<LedgerDatabase['close']> {
  const row = (await database.accountRows([account])).get(account);
  return row?.isClosed && !row.isClosing ? { outcome: 'closed', row, ledgerRows: [] } : { outcome: 'behind' };
}

/**
 * Forgets an account that is closed, page by page. `isAudited`: its process has closed it, and may have booked more than
 * it reported, so the escrow of a page stays until its counters show all rows; if they cannot be audited, the rest stays.
 */
export async function forgetAccount(
  context: StoreContext,
  { epoch, account, isCharged }: Pick<ClosingRequest, 'epoch' | 'account'> & Pick<AccountRow, 'isCharged'>,
  isAudited = false,
): Promise<void> {
  const { counterStore } = context;
  for (let cursor: string | undefined; ; ) {
    const page = await counterStore.figures(epoch, account, cursor);
    if (page.outcome !== 'page') return;
    if (isAudited && !(await auditCounters(context, epoch, page.figures))) return;
    await counterStore.forget(epoch, account, isCharged, page.figures);
    if (page.next === undefined) return;
    cursor = page.next;
  }
}

/**
 * Closes the account of another process in this epoch, unless its lease has not ended. `behind`: the store has an
 * earlier state of the account than PostgreSQL.
 */
async function closeEnded(context: StoreContext, epoch: number, account: string): Promise<'behind' | 'done'> {
  const closing = await closeAccount(context, { epoch, account, isOwn: false, isRebuild: false });
  if (closing?.outcome === 'behind') return 'behind';
  if (closing?.outcome !== 'closed') return 'done';
  const { row, number = 0 } = closing;
  if (number < row.number) return 'behind';
  await forgetAccount(context, { epoch, account, isCharged: row.isCharged }, !row.isCharged);
  return 'done';
}

/** Pauses between attempts to close the same account: each is twice as long as the previous one. */
const FIRST_PAUSE: Millis = 500;
const MAX_PAUSE: Millis = 16_000;

/** Closes the ended accounts that replies name, one after the other. */
export function createClosing(context: LedgerContext): Closing {
  const { account: own, sharedStore, intervalClock } = context;
  const ended = new Set<string>();
  /** Accounts that could not be closed: an attempt may block the store, so each is followed by a longer pause. */
  const pauses = new Map<string, { readonly millis: Millis; readonly until: Millis }>();
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    for (const account of ended) {
      if (own.isStopped) break;
      // An account that could not be closed is named again by a later reply.
      ended.delete(account);
      try {
        if ((await closeEnded(context, own.epoch, account)) === 'behind') context.membership.leave('behind');
        pauses.delete(account);
      } catch (error) {
        logFailure(context, 'close', error, { account });
        const millis = Math.min(2 * (pauses.get(account)?.millis ?? FIRST_PAUSE / 2), MAX_PAUSE);
        pauses.set(account, { millis, until: intervalClock.now() + millis });
      }
    }
    running = undefined;
  };

  return {
    close({ endedAccounts: accounts, callCount }): void {
      if (own.isStopped) return;
      if (accounts.length === 0) pauses.clear();
      // Requests on Workers get the same ended accounts at the same time: each call closes one of them, selected by its
      // number in the store.
      const first = callCount % accounts.length;
      for (const account of sharedStore === undefined ? accounts : accounts.slice(first, first + 1))
        if (intervalClock.now() >= (pauses.get(account)?.until ?? 0)) ended.add(account);
      if (ended.size > 0) running ??= run();
    },
    stop: async (): Promise<void> => running,
  };
}

/**
 * Audits those of these counters that are loaded: PostgreSQL is read first, then the store compares and repairs in one
 * step. False: batches were booked during every attempt.
 */
async function auditCounters(
  context: StoreContext,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<boolean> {
  const { counterStore, database, store, now } = context;
  // Accounts that ended just now have figures in the counters but are not in the list of the store: those of each
  // attempt are remembered.
  const accounts = new Set<string>();
  for (let attempt = 0; counters.length > 0 && attempt < MAX_ATTEMPTS; attempt += 1) {
    for (const { account } of await counterStore.accounts(false, MAX_ACCOUNTS)) accounts.add(account);
    const ids = [...accounts];
    const before = await database.accountRows(ids);
    const sums = await database.sums(counters);
    const rows = await database.accountRows(ids);
    if (!ids.every((id) => isSame(before.get(id), rows.get(id)))) continue;
    const all = new Map(ids.map((id) => [id, rows.get(id) ?? NO_ROW]));
    const reply = await counterStore.audit(epoch, sums, all, now() + DEADLINE);
    if (reply.outcome === 'epoch') throw new Error('the counter store is being rebuilt');
    recordCallCount(store, epoch, reply.callCount);
    for (const account of reply.changedAccounts) accounts.add(account);
    if (reply.changedAccounts.length > 0) continue;
    await logRepairs(context, reply.differences);
    return true;
  }
  return counters.length === 0;
}

/** Whether nothing was booked between two readings of a row: then the sums that were read between them belong to it. */
const isSame = (before: AccountRow = NO_ROW, after: AccountRow = NO_ROW): boolean =>
  before.bookedBatch === after.bookedBatch &&
  before.isClosed === after.isClosed &&
  before.isClosing === after.isClosing;

const NO_ROW: AccountRow = { bookedBatch: 0, number: 0, isClosed: false, isCharged: false, isClosing: false };

/**
 * Reports repaired counters, except those of scopes that now belong to another instance: they differ without a fault.
 * If the database does not reply, every repair is reported.
 */
async function logRepairs(context: StoreContext, repairs: AuditReply['differences']): Promise<void> {
  if (repairs.length === 0) return;
  const { database, instanceUid: instance, metrics, log } = context;
  const reading = database.scopesOfOtherInstances(instance, [...new Set(repairs.map(({ scopeId }) => scopeId))]);
  const otherInstances = await reading.catch((): ReadonlySet<string> => new Set());
  for (const { scopeId: scope, window, by } of repairs) {
    if (otherInstances.has(scope)) continue;
    metrics.add('gateway_operator_ledger_audit_differences_total');
    const fields = { instance, scope, start: window.start, end: window.end, by: `${by}` };
    log.warn('ledger: a counter differed from the sum of its ledger rows, and was repaired', fields);
  }
}
