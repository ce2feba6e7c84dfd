// Maintenance of an instance's ledger, by its gateways and by a resync without one: accounts that have ended are
// closed, counters audited (LEDGER 3, 6).

import type { Clock } from '../ports/clock.ts';
import type { AccountRow, AuditReport, CounterStore } from '../ports/counter-store.ts';
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import type { ScopeWindow } from '../ports/policy.ts';
import { recordCalls } from './account.ts';
import type { Closing, LedgerContext, StoreContext } from './context.ts';
import { load } from './counter-loading.ts';
import { report } from './failures.ts';
import { pause } from './timeout.ts';

/** Settlements are told within one tick and booked within a few. */
const BOOKED_WITHIN: Millis = 1000;
const POLL_INTERVAL: Millis = 25;
/** Accounts are read with each page of counters; more than these at the same time (Workers) make it repeat. */
const MAX_ACCOUNTS = 2000;
const PAGE = 500;
/** A counter whose batches are booked between the two reads is read again. */
const MAX_ATTEMPTS = 5;
const DEADLINE: Millis = 1000;

/** Closes accounts that have ended, then audits every loaded counter. Throws when store or PostgreSQL are away. */
export async function maintain(context: StoreContext, epoch: number): Promise<void> {
  const { counterStore } = context;
  for (const { account } of await counterStore.accounts(true, MAX_ACCOUNTS)) await closeEnded(context, epoch, account);
  await whenBooked(context);
  for (let from: string | undefined = ''; from !== undefined; ) {
    const { counters, next }: Awaited<ReturnType<CounterStore['loaded']>> = await counterStore.loaded(from, PAGE);
    const isAudited = await auditCounters(context, epoch, counters);
    if (!isAudited) report(context, 'audit', new Error(`${MAX_ATTEMPTS} attempts`), { counters: counters.length });
    from = next;
  }
}

/** Does nothing for a store that is new or being rebuilt: the next gateway rebuilds it. */
export async function maintainAlone(
  deps: Omit<StoreContext, 'now' | 'store'> & { readonly epochs: Epochs; readonly clock: Clock },
): Promise<void> {
  const { counterStore, epochs, clock } = deps;
  const { epoch, isOpen, calls } = await epochs.state();
  if (!isOpen) return;
  // An empty audit shows the store's clock.
  const audited = await counterStore.audit(epoch, [], new Map(), Number.MAX_SAFE_INTEGER);
  if (audited.outcome === 'epoch') return;
  const ahead = audited.now - clock.now();
  await maintain({ ...deps, store: { epoch, calls }, now: () => clock.now() + ahead }, epoch);
}

/**
 * Waits until processes have booked what they have told: sums are read after a resync. Their processes do it; one that
 * died is closed by its lease.
 */
async function whenBooked({ counterStore, database, timer, now }: StoreContext): Promise<void> {
  const until = now() + BOOKED_WITHIN;
  const known = await counterStore.accounts(false, MAX_ACCOUNTS);
  const told = known.filter(({ unbooked }) => unbooked > 0);
  while (told.length > 0 && now() < until) {
    const rows = await database.rows(told.map(({ account }) => account));
    const isBooked = told.every(({ account, unbooked }) => {
      const row = rows.get(account);
      return row !== undefined && (row.isClosed || row.booked >= unbooked);
    });
    if (isBooked) return;
    await pause(timer, POLL_INTERVAL);
  }
}

type ClosingRequest = Parameters<CounterStore['freeze']>[2] & { readonly epoch: number; readonly account: string };

/**
 * Freezes the account in the store, where its absent counters are loaded first, and closes it in PostgreSQL. Throws
 * when store or database are away; may be repeated, by any number of processes.
 */
export async function closeAccount(
  { counterStore, database, store, log, instanceUid: instance }: StoreContext,
  { epoch, account, ...how }: ClosingRequest,
) {
  const known = store.epoch === epoch ? store.calls : 0;
  let marked = await counterStore.freeze(epoch, account, how);
  if (marked.outcome === 'absent') {
    await load({ counterStore, database }, epoch, marked.counters);
    marked = await counterStore.freeze(epoch, account, how);
  }
  if (!('calls' in marked)) return marked;
  // The store shows fewer calls than it had done before.
  if (marked.calls <= known) return { outcome: 'behind' } as const;
  recordCalls(store, epoch, marked.calls);
  if (marked.outcome === 'none' && !how.isOwn) return marked;
  const { figures, number } = { figures: undefined, number: undefined, ...marked };
  const { calls, now: at } = marked;
  const closed = await database.close({ epoch, account, figures, number, calls, at, isRebuild: how.isRebuild });
  if (closed.outcome === 'epoch') return undefined;
  if (closed.outcome === 'closed' && closed.charged.length > 0 && !how.isOwn) {
    const sum = closed.charged.reduce((all, { cost }) => all + cost, 0n);
    const message =
      'an account was closed after its lease: what it had in flight and unbooked is charged, an entry per counter';
    log.warn(message, { instance, account, entries: closed.charged.length, sum: `${sum}` });
  }
  return closed.outcome === 'closed' ? { ...closed, figures, number } : closed;
}

/**
 * Closes another's account in this epoch, unless its lease lasts. `gone back`: the store has an earlier state of it
 * than PostgreSQL.
 */
async function closeEnded(context: StoreContext, epoch: number, account: string): Promise<'gone back' | 'done'> {
  const closed = await closeAccount(context, { epoch, account, isOwn: false, isRebuild: false });
  if (closed?.outcome === 'behind') return 'gone back';
  if (closed?.outcome !== 'closed') return 'done';
  const { row, figures = [], number = 0 } = closed;
  if (number < row.number) return 'gone back';
  // One that closed itself has booked more than it told: its escrow stays until its counters show that.
  if (row.isCharged || (await auditCounters(context, epoch, figures)))
    await context.counterStore.forget(epoch, account, row.isCharged);
  return 'done';
}

/** Closes accounts that calls told of, one after the other. */
export function createClosing(context: LedgerContext): Closing {
  const { account: own, isolate } = context;
  const ended = new Set<string>();
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    for (const account of ended) {
      if (own.isOver) break;
      // One that could not be closed is told of again by the next call.
      ended.delete(account);
      try {
        if ((await closeEnded(context, own.epoch, account)) === 'gone back') context.membership.leave('behind');
      } catch (error) {
        report(context, 'close', error, { account });
      }
    }
    running = undefined;
  };

  return {
    close({ ended: told, calls }): void {
      if (told.length === 0 || own.isOver) return;
      // Requests on Workers learn of the same accounts at the same time: each call closes one, by the number that the
      // store has given it.
      const first = calls % told.length;
      for (const account of isolate === undefined ? told : told.slice(first, first + 1)) ended.add(account);
      running ??= run();
    },
    /** Resolves when the account at hand is closed, or could not be. */
    stop: async (): Promise<void> => running,
  };
}

/**
 * Audits these counters where they are loaded: PostgreSQL is read first, then the store judges and repairs in one step.
 * False: their batches were booked all the time meanwhile.
 */
async function auditCounters(
  context: StoreContext,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<boolean> {
  const { counterStore, database, store, now } = context;
  // Accounts that have just ended are in the counters, not in the list of the store: those of each attempt are
  // remembered.
  const known = new Set<string>();
  for (let attempt = 0; counters.length > 0 && attempt < MAX_ATTEMPTS; attempt += 1) {
    for (const { account } of await counterStore.accounts(false, MAX_ACCOUNTS)) known.add(account);
    const ids = [...known];
    const before = await database.rows(ids);
    const sums = await database.sums(counters);
    const rows = await database.rows(ids);
    if (!ids.every((id) => isSame(before.get(id), rows.get(id)))) continue;
    const all = new Map(ids.map((id) => [id, rows.get(id) ?? NO_ROW]));
    const audited = await counterStore.audit(epoch, sums, all, now() + DEADLINE);
    if (audited.outcome === 'epoch') throw new Error('the store is being rebuilt');
    recordCalls(store, epoch, audited.calls);
    for (const account of audited.moved) known.add(account);
    if (audited.moved.length > 0) continue;
    await reportRepairs(context, audited.differences);
    return true;
  }
  return counters.length === 0;
}

/** Whether nothing was booked between two readings of a row: then the sums that were read between them belong to it. */
const isSame = (before: AccountRow = NO_ROW, after: AccountRow = NO_ROW): boolean =>
  before.booked === after.booked && before.isClosed === after.isClosed;

const NO_ROW: AccountRow = { booked: 0, number: 0, isClosed: false, isCharged: false };

/**
 * Scopes that spend in another instance now: their counters differ here without a fault. Without an answer every repair
 * is reported.
 */
async function reportRepairs(context: StoreContext, repaired: AuditReport['differences']): Promise<void> {
  if (repaired.length === 0) return;
  const { database, instanceUid: instance, metrics, log } = context;
  const asked = database.scopesOfOtherInstances(instance, [...new Set(repaired.map(({ scopeId }) => scopeId))]);
  const away = await asked.catch((): ReadonlySet<string> => new Set());
  for (const { scopeId: scope, window, by } of repaired) {
    if (away.has(scope)) continue;
    metrics.add('gateway_operator_ledger_audit_differences_total');
    const fields = { instance, scope, start: window.start, end: window.end, by: `${by}` };
    log.warn('a counter was not what its entries say, and was repaired', fields);
  }
}
