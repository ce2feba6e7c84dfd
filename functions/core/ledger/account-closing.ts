// Closing of accounts: frozen in the store, charged in PostgreSQL and finished in the store, page by page, so that no
// step depends on the number of their counters (LEDGER 3).

import type { AccountRow, FreezeReply } from '../ports/counter-store.ts';
import type { AccountClosing, LedgerDatabase } from '../ports/ledger-database.ts';
import type { Millis } from '../ports/money.ts';
import { counterKey } from '../ports/policy.ts';
import { recordStoreCalls, STOPPED_REASON } from './account.ts';
import type { EndedAccounts, LedgerContext, StoreContext } from './context.ts';
import { auditCounters } from './counter-audit.ts';
import { load } from './counter-loading.ts';
import { logFailure } from './failures.ts';

interface ClosingRequest {
  readonly epoch: number;
  readonly account: string;
  readonly isOwn: boolean;
  readonly isRebuild: boolean;
}

/**
 * Freezes the account in the store, and closes it in PostgreSQL. Returns the reply of the store if it froze nothing,
 * and undefined if PostgreSQL is in another epoch. Throws if the store or the database is unreachable; may be repeated,
 * by any number of processes.
 */
export async function closeAccount(
  context: StoreContext,
  { epoch, account, isOwn, isRebuild }: ClosingRequest,
): Promise<Exclude<FreezeReply, { outcome: 'frozen' }> | ClosedAccount | { outcome: 'wentBack' } | undefined> {
  const { counterStore, database, knownStore } = context;
  const knownStoreCalls = knownStore.epoch === epoch ? knownStore.storeCalls : 0;
  const freezeReply = await counterStore.freeze(epoch, account, isOwn);
  if (!('storeCalls' in freezeReply)) return freezeReply;
  // The store shows fewer calls than before, so it has gone back in time.
  if (freezeReply.storeCalls <= knownStoreCalls) return { outcome: 'wentBack' } as const;
  recordStoreCalls(knownStore, epoch, freezeReply.storeCalls);
  if (freezeReply.outcome === 'none' && !isOwn) return freezeReply;
  const { now: at, storeCalls } = freezeReply;
  const callNumber = freezeReply.outcome === 'frozen' ? freezeReply.callNumber : undefined;
  const closing = { epoch, account, callNumber, storeCalls, at, isRebuild };
  // Before the epoch is open, a process closes only its own accounts, and books their requests by their ids: nothing is
  // left to charge.
  const isEmpty = freezeReply.outcome === 'none' || isRebuild;
  const reply = await (isEmpty
    ? database.close({ ...closing, figures: [], isLast: true })
    : chargeFigures(context, closing, isOwn));
  if (reply.outcome === 'epoch') return undefined;
  return reply.outcome === 'closed' ? { ...reply, callNumber } : reply;
}

interface ClosedAccount {
  readonly outcome: 'closed';
  readonly row: AccountRow;
  /** The number of the last call; undefined: the store has no such account. */
  readonly callNumber: number | undefined;
}

/** The pages of the figures of a frozen account. Throws when the ledger stops: another process continues. */
async function* pagesOf({ counterStore, isStopped }: StoreContext, epoch: number, account: string) {
  for (let cursor: string | undefined; ; ) {
    if (isStopped?.()) throw new Error(STOPPED_REASON);
    const page = await counterStore.figures(epoch, account, cursor);
    yield page;
    if (page.outcome !== 'page' || page.next === undefined) return;
    cursor = page.next;
  }
}

type CloseReply = Awaited<ReturnType<LedgerDatabase['close']>>;

/**
 * Closes the account in PostgreSQL, and charges its figures page by page: a counter that is absent is loaded before.
 */
async function chargeFigures(
  context: StoreContext,
  closing: Omit<AccountClosing, 'figures' | 'isLast'>,
  isOwn: boolean,
): Promise<CloseReply> {
  const { database, log, instanceUid: instance } = context;
  const { epoch, account } = closing;
  const counters = new Set<string>();
  let [rows, sum] = [0, 0n];
  for await (const page of pagesOf(context, epoch, account)) {
    if (page.outcome === 'epoch') return page;
    if (page.outcome === 'none') break;
    const absent = page.figures.filter(({ isAbsent }) => isAbsent);
    if (absent.length > 0) await load(context, epoch, absent);
    for (const figures of page.figures) counters.add(counterKey(figures));
    const isLast = page.next === undefined;
    if (isLast && counters.size < page.total) throw new Error('another server of the counter store has taken over');
    const reply = await database.close({ ...closing, figures: page.figures, isLast });
    if (reply.outcome !== 'closed') return reply;
    rows += reply.ledgerRows.length;
    sum = reply.ledgerRows.reduce((all, { cost }) => all + cost, sum);
    // Closed: by this process, or meanwhile by another process.
    if (reply.row.isClosing) continue;
    const message =
      'ledger: an account was closed after the end of its lease; its requests in flight and unbooked spend are charged, in one ledger row per counter';
    if (rows > 0 && !isOwn) log.warn(message, { instance, account, rows, sum: `${sum}` });
    return reply;
  }
  return closedMeanwhile(context, account);
}

/** Another process has charged and finished the account; else the store has lost that it is frozen. */
async function closedMeanwhile({ database }: StoreContext, account: string): Promise<CloseReply> {
  const row = (await database.accountRows([account])).get(account);
  return row?.isClosed && !row.isClosing ? { outcome: 'closed', row, ledgerRows: [] } : { outcome: 'wentBack' };
}

/**
 * Finishes an account that is closed: the store forgets its figures, page by page. `auditsFirst`: its process has
 * closed it, and may have booked more than it reported, so the escrow of a page stays until its counters show all rows;
 * if they cannot be audited, the rest stays. `onPage`: called after each page.
 */
export async function finishAccount(
  context: StoreContext,
  { epoch, account, isCharged }: Pick<ClosingRequest, 'epoch' | 'account'> & Pick<AccountRow, 'isCharged'>,
  { auditsFirst = false, onPage }: { readonly auditsFirst?: boolean; readonly onPage?: () => Promise<void> } = {},
): Promise<void> {
  for await (const page of pagesOf(context, epoch, account)) {
    if (page.outcome !== 'page') return;
    if (auditsFirst && !(await auditCounters(context, epoch, page.figures))) return;
    await context.counterStore.forget(epoch, account, isCharged, page.figures);
    await onPage?.();
  }
}

/**
 * Closes the account of another process in this epoch, unless its lease has not ended. `wentBack`: the store has an
 * earlier state of the account than PostgreSQL.
 */
export async function closeEnded(context: StoreContext, epoch: number, account: string): Promise<'wentBack' | 'done'> {
  const closing = await closeAccount(context, { epoch, account, isOwn: false, isRebuild: false });
  if (closing?.outcome === 'wentBack') return 'wentBack';
  if (closing?.outcome !== 'closed') return 'done';
  const { row, callNumber = 0 } = closing;
  if (callNumber < row.callNumber) return 'wentBack';
  await finishAccount(context, { epoch, account, isCharged: row.isCharged }, { auditsFirst: !row.isCharged });
  return 'done';
}

/** Pauses between attempts to close the same account: each is twice as long as the previous one. */
const FIRST_PAUSE: Millis = 500;
const MAX_PAUSE: Millis = 16_000;

/** Closes the ended accounts that replies name, one after the other. */
export function createEndedAccounts(context: LedgerContext): EndedAccounts {
  const { account: own, isPerRequest, intervalClock } = context;
  const ended = new Set<string>();
  /** Accounts that could not be closed: each attempt is followed by a longer pause. */
  const pauses = new Map<string, { readonly millis: Millis; readonly until: Millis }>();
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    for (const account of ended) {
      if (own.isStopped) break;
      // An account that could not be closed is named again by a later reply.
      ended.delete(account);
      try {
        if ((await closeEnded(context, own.epoch, account)) === 'wentBack') context.membership.rejoin('wentBack');
        pauses.delete(account);
      } catch (error) {
        if (own.isStopped) break;
        logFailure(context, 'close', error, { account });
        const millis = Math.min(2 * (pauses.get(account)?.millis ?? FIRST_PAUSE / 2), MAX_PAUSE);
        pauses.set(account, { millis, until: intervalClock.now() + millis });
      }
    }
    running = undefined;
  };

  return {
    closeNamedIn({ endedAccounts: accounts, storeCalls }): void {
      if (own.isStopped) return;
      if (accounts.length === 0) pauses.clear();
      // Requests on Workers get the same ended accounts at the same time: each call closes one of them, selected by its
      // number in the store.
      const first = storeCalls % accounts.length;
      for (const account of isPerRequest ? accounts.slice(first, first + 1) : accounts)
        if (intervalClock.now() >= (pauses.get(account)?.until ?? 0)) ended.add(account);
      if (ended.size > 0) running ??= run();
    },
    stop: async (): Promise<void> => running,
  };
}
