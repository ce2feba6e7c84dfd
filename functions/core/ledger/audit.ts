// Audits: each counter must show PostgreSQL's sum plus what is told and not booked; a difference is repaired and reported (LEDGER 6).

import type { AccountRow, Accounts, Audited } from '../ports/accounts.ts';
import type { Millis } from '../ports/money.ts';
import type { ScopeWindow } from '../ports/policy.ts';
import { learnCalls } from './account.ts';
import type { StoreContext } from './context.ts';

const PAGE = 500;
/** Accounts are read with each page; more than these at once (Workers) make it repeat. */
const MAX_ACCOUNTS = 2000;
/** A counter whose batches are booked between the two reads is read again. */
const MAX_ATTEMPTS = 5;
const DEADLINE: Millis = 1000;

/** Audits every loaded counter. Throws when store or database do not reply. */
export async function auditAll(context: StoreContext, epoch: number): Promise<void> {
  for (let from: string | undefined = ''; from !== undefined; ) {
    const page: Awaited<ReturnType<Accounts['loaded']>> = await context.accounts.loaded(from, PAGE);
    await auditCounters(context, epoch, page.counters);
    from = page.next;
  }
}

/**
 * Audits these counters where they are loaded: PostgreSQL is read first, then the store judges and repairs in one step. False: their batches were
 * booked all the time meanwhile.
 */
export async function auditCounters(
  context: StoreContext,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<boolean> {
  if (counters.length === 0) return true;
  // Accounts that have just ended are in the counters, not in the list of the store.
  const ended = new Set<string>();
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { differences, moved } = await auditOnce(context, epoch, { counters, ended });
    if (moved.length === 0) {
      await report(context, differences);
      return true;
    }
    for (const account of moved) ended.add(account);
  }
  return false;
}

async function auditOnce(
  { accounts, books, store, now }: StoreContext,
  epoch: number,
  { counters, ended }: { readonly counters: ReadonlyArray<ScopeWindow>; readonly ended: ReadonlySet<string> },
): Promise<Pick<Audited, 'differences' | 'moved'>> {
  const known = await accounts.accounts(false, MAX_ACCOUNTS);
  const ids = [...new Set([...known.map(({ account }) => account), ...ended])];
  const before = await books.rows(ids);
  const sums = await books.sums(counters);
  const rows = await books.rows(ids);
  const moved = ids.filter((id) => !isSame(before.get(id), rows.get(id)));
  if (moved.length > 0) return { differences: [], moved };
  const all = new Map(ids.map((id) => [id, rows.get(id) ?? NO_ROW]));
  const audited = await accounts.audit(epoch, sums, all, now() + DEADLINE);
  if (audited.outcome === 'epoch') throw new Error('the store is being rebuilt');
  learnCalls(store, epoch, audited.calls);
  return audited;
}

/** Whether nothing was booked between two readings of a row: then the sums that were read between them belong to it. */
const isSame = (before: AccountRow = NO_ROW, after: AccountRow = NO_ROW): boolean =>
  before.booked === after.booked && before.isClosed === after.isClosed;

const NO_ROW: AccountRow = { booked: 0, number: 0, isClosed: false, isCharged: false };

/** Scopes that spend in another instance now: their counters differ here without a fault. Without an answer every repair is reported. */
async function report(context: StoreContext, repaired: Audited['differences']): Promise<void> {
  if (repaired.length === 0) return;
  const { books, instanceUid: instance, metrics, log } = context;
  const asked = books.scopesOfOtherInstances(instance, [...new Set(repaired.map(({ scopeId }) => scopeId))]);
  const away = await asked.catch((): ReadonlySet<string> => new Set());
  for (const { scopeId: scope, window, by } of repaired) {
    if (away.has(scope)) continue;
    metrics.add('gateway_operator_ledger_audit_differences_total');
    const fields = { instance, scope, start: window.start, end: window.end, by: `${by}` };
    log.warn('a counter was not what its entries say, and was repaired', fields);
  }
}
