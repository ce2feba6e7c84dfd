// Audits of counters: the store's spend is compared with the sums of PostgreSQL, and repaired (LEDGER 6).

import type { AccountRow, AuditReply } from '../ports/counter-store.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { counterKey, type ScopeWindow } from '../ports/policy.ts';
import { recordStoreCalls } from './account.ts';
import type { StoreContext } from './context.ts';

/**
 * The maximum attempts of an audit, which is repeated if batches are booked between its two reads. The last attempt
 * ends in any case: a counter that still changes is checked by bounds.
 */
const MAX_ATTEMPTS = 5;
const DEADLINE: Millis = 1000;

/**
 * Audits those of these counters that are loaded: PostgreSQL is read first, then the store compares and repairs in one
 * step. The first attempt reads no rows of accounts, and names those that the next attempt needs, so that idle counters
 * need none. False: too many accounts have unbooked spend.
 */
export async function auditCounters(
  context: StoreContext,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<boolean> {
  const { counterStore, database, knownStore, now } = context;
  const accounts = new Set<string>();
  let minSums: ReadonlyMap<string, Nano> = new Map();
  for (let attempt = 0; counters.length > 0 && attempt < MAX_ATTEMPTS; attempt += 1) {
    const storeCallsBefore = knownStore.epoch === epoch ? knownStore.storeCalls : 0;
    const ids = [...accounts];
    const before = await database.accountRows(ids);
    const sums = await database.sums(counters);
    const rows = await database.accountRows(ids);
    const stable = ids.filter((id) => isSame(before.get(id), rows.get(id)));
    const all = new Map(stable.map((id) => [id, rows.get(id) ?? NO_ROW]));
    const acceptsChangedAccounts = attempt === MAX_ATTEMPTS - 1;
    const bounded = sums.map((sum) => ({ ...sum, minSum: minSums.get(counterKey(sum)) }));
    const reply = await counterStore.audit(epoch, bounded, all, {
      storeCallsBefore,
      deadline: now() + DEADLINE,
      acceptsChangedAccounts,
    });
    if (reply.outcome === 'epoch') throw new Error('the counter store is being rebuilt');
    recordStoreCalls(knownStore, epoch, reply.storeCalls);
    for (const account of reply.changedAccounts) accounts.add(account);
    minSums = new Map(reply.minSums.map((sum) => [counterKey(sum), sum.spent]));
    if (reply.changedAccounts.length > 0) continue;
    await reportRepairs(context, repairsOf(counters, reply.differences));
    return true;
  }
  return counters.length === 0;
}

/** Whether nothing was booked between two readings of a row: then the sums that were read between them belong to it. */
const isSame = (before: AccountRow = NO_ROW, after: AccountRow = NO_ROW): boolean =>
  before.bookedBatch === after.bookedBatch &&
  before.isClosed === after.isClosed &&
  before.isClosing === after.isClosing;

const NO_ROW: AccountRow = { bookedBatch: 0, callNumber: 0, isClosed: false, isCharged: false, isClosing: false };

/**
 * The repairs of these counters, at most one of each. The store may be a tenant's own program, and answers more than it
 * was asked.
 */
function repairsOf(counters: ReadonlyArray<ScopeWindow>, differences: Repairs): Repairs {
  const asked = new Set(counters.map(counterKey));
  return differences.filter((one) => asked.delete(counterKey(one)));
}

type Repairs = AuditReply['differences'];

/** The repaired counters of an audit that the log names. Others are counted. */
const MAX_NAMED = 5;

/**
 * Reports repaired counters, except those of scopes that now belong to another instance: they differ without a fault.
 * If the database does not reply, every repair is reported.
 */
async function reportRepairs(context: StoreContext, all: Repairs): Promise<void> {
  if (all.length === 0) return;
  const { database, instanceUid: instance, metrics, log } = context;
  const reading = database.scopesOfOtherInstances(instance, [...new Set(all.map(({ scopeId }) => scopeId))]);
  const otherInstances = await reading.catch((): ReadonlySet<string> => new Set());
  const repairs = all.filter(({ scopeId }) => !otherInstances.has(scopeId));
  const others = Math.max(0, repairs.length - MAX_NAMED);
  for (const [index, { scopeId: scope, window, by }] of repairs.entries()) {
    metrics.add('gateway_operator_ledger_audit_differences_total');
    if (index >= MAX_NAMED) continue;
    const more = index === MAX_NAMED - 1 && others > 0 ? { others } : {};
    const fields = { instance, scope, start: window.start, end: window.end, by: `${by}`, ...more };
    log.warn('ledger: a counter differed from the sum of its ledger rows, and was repaired', fields);
  }
}
