// Audits: each counter must show PostgreSQL's sum plus what is told and not booked; a difference is repaired and reported (LEDGER 6).

import type { AccountRow, Audited } from '../ports/accounts.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { ScopeId, ScopeWindow } from '../ports/policy.ts';
import { type LedgerDependencies, learnCalls, type StoreCount } from './deps.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface AuditDependencies
  extends Pick<LedgerDependencies, 'instanceUid' | 'accounts' | 'books' | 'timer' | 'log' | 'metrics'> {
  readonly store: StoreCount;
  /** The store's clock. */
  readonly now: () => Millis;
}

export interface Audit {
  readonly counters: number;
  /** Differences without an explanation. */
  readonly differences: ReadonlyArray<ScopeWindow & { readonly by: Nano }>;
}

const PAGE = 500;
/** Accounts are read with each page; more than these at once (Workers) make it repeat. */
const MAX_ACCOUNTS = 2000;
/** A counter whose batches are booked between the two reads is read again. */
const MAX_ATTEMPTS = 5;
const DEADLINE: Millis = 1000;

/** Audits every loaded counter. Throws when store or database do not reply. */
export async function auditAll(deps: AuditDependencies, epoch: number): Promise<Audit> {
  const differences: Audited['differences'][number][] = [];
  let counters = 0;
  for (let from: string | undefined = ''; from !== undefined; ) {
    const page: Awaited<ReturnType<LedgerDependencies['accounts']['loaded']>> = await withTimeout(
      ...([deps.timer, TIMEOUT, 'the store'] as const),
      deps.accounts.loaded(from, PAGE),
    );
    differences.push(...((await auditCounters(deps, epoch, page.counters)) ?? []));
    counters += page.counters.length;
    from = page.next;
  }
  return { counters, differences };
}

/**
 * Audits these counters where they are loaded: PostgreSQL is read first, then the store judges and repairs in one step. Undefined: their batches were
 * booked all the time meanwhile.
 */
export async function auditCounters(
  deps: AuditDependencies,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<Audit['differences'] | undefined> {
  if (counters.length === 0) return [];
  // Accounts that have just ended are in the counters, not in the list of the store.
  const ended = new Set<string>();
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const audited = await auditOnce(deps, epoch, { counters, ended });
    if (audited.outcome === 'epoch') throw new Error('the store is being rebuilt');
    if (audited.moved.length === 0) return report(deps, audited.differences);
    for (const account of audited.moved) ended.add(account);
  }
  return undefined;
}

async function auditOnce(
  { accounts, books, store, timer, now }: AuditDependencies,
  epoch: number,
  { counters, ended }: { readonly counters: ReadonlyArray<ScopeWindow>; readonly ended: ReadonlySet<string> },
): ReturnType<LedgerDependencies['accounts']['audit']> {
  const known = await withTimeout(timer, TIMEOUT, 'the store', accounts.accounts(false, MAX_ACCOUNTS));
  const ids = [...new Set([...known.map(({ account }) => account), ...ended])];
  const readRows = () => withTimeout(timer, TIMEOUT, 'PostgreSQL', books.rows(ids));
  const before = await readRows();
  const sums = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.sums(counters));
  const rows = await readRows();
  const moved = ids.filter((id) => !isSame(before.get(id), rows.get(id)));
  if (moved.length > 0) return { outcome: 'done', now: now(), calls: 0, differences: [], moved };
  const all = new Map(ids.map((id) => [id, rows.get(id) ?? NO_ROW]));
  const audited = await withTimeout(timer, TIMEOUT, 'the store', accounts.audit(epoch, sums, all, now() + DEADLINE));
  if (audited.outcome === 'done') learnCalls(store, epoch, audited.calls);
  return audited;
}

/** Whether nothing was booked between two readings of a row: then the sums that were read between them belong to it. */
const isSame = (before: AccountRow = NO_ROW, after: AccountRow = NO_ROW): boolean =>
  before.booked === after.booked && before.isClosed === after.isClosed;

const NO_ROW: AccountRow = { booked: 0, number: 0, isClosed: false, isCharged: false };

async function report(deps: AuditDependencies, repaired: Audit['differences']): Promise<Audit['differences']> {
  const away = await elsewhere(deps, repaired);
  const differences = repaired.filter(({ scopeId }) => !away.has(scopeId));
  for (const { scopeId, window, by } of differences) {
    deps.metrics.add('gateway_operator_ledger_audit_differences_total');
    deps.log.warn('a counter was not what its entries say, and was repaired', {
      instance: deps.instanceUid,
      ...{ scope: scopeId, start: window.start, end: window.end, by: `${by}` },
    });
  }
  return differences;
}

/** Scopes that spend in another instance now: their counters differ here without a fault. Without an answer every repair is reported. */
async function elsewhere(
  { books, instanceUid, timer }: AuditDependencies,
  repaired: Audit['differences'],
): Promise<ReadonlySet<ScopeId>> {
  if (repaired.length === 0) return new Set();
  const asked = books.scopesOfOtherInstances(instanceUid, [...new Set(repaired.map(({ scopeId }) => scopeId))]);
  return withTimeout(timer, TIMEOUT, 'PostgreSQL', asked).catch(() => new Set());
}
