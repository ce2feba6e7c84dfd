// Audits of counters: the store's spend is compared with the sums of PostgreSQL, and repaired (LEDGER 6).

import type { AccountRow, AuditReply } from '../ports/counter-store.ts';
import type { Millis } from '../ports/money.ts';
import type { ScopeWindow } from '../ports/policy.ts';
import { recordCallCount } from './account.ts';
import type { StoreContext } from './context.ts';

/**
 * The maximum number of accounts whose rows are read with each page of counters. More accounts at the same time
 * (Workers) are found as changed, and the page is audited again.
 */
export const MAX_ACCOUNTS = 2000;
/** The maximum number of audits of a counter: it is repeated if batches are booked between its two reads. */
export const MAX_ATTEMPTS = 5;
const DEADLINE: Millis = 1000;

/**
 * Audits those of these counters that are loaded: PostgreSQL is read first, then the store compares and repairs in one
 * step. False: batches were booked during every attempt.
 */
export async function auditCounters(
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
