// Audits: each counter must show PostgreSQL's sum plus what is not booked yet; a difference is repaired and reported (LEDGER 6).
import type { Books } from '../ports/books.ts';
import type { Nano } from '../ports/money.ts';
import type { ScopeId, ScopeWindow } from '../ports/policy.ts';
import { EMPTY_CALL, type Store, type StoreCall } from '../ports/store.ts';
import { differencesIn, readCounterSums } from './counter-sums.ts';
import type { LedgerDependencies } from './deps.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export type AuditDependencies = Pick<
  LedgerDependencies,
  'instanceUid' | 'books' | 'store' | 'timer' | 'log' | 'metrics'
>;

export interface Difference extends ScopeWindow {
  /** The amount by which the repair changed the counter. */
  readonly by: Nano;
}

export interface Audit {
  readonly counters: number;
  /** Differences without an explanation. */
  readonly differences: ReadonlyArray<Difference>;
}

const PAGE = 500;

const NO_SCOPES: ReadonlySet<ScopeId> = new Set();

/** Audits every loaded counter. Undefined: another process is auditing. */
export async function auditAll(deps: AuditDependencies, epoch: number): Promise<Audit | undefined> {
  const differences: Difference[] = [];
  let counters = 0;
  for (let from: number | undefined = 0; from !== undefined; ) {
    const page: Awaited<ReturnType<Store['loaded']>> = await deps.store.loaded(from, PAGE);
    const repaired = await deps.books.tryErrandLock(deps.instanceUid, 'audit', (books) =>
      repair(deps, books, epoch, page.counters),
    );
    if (repaired === undefined) return undefined;
    differences.push(...(await report(deps, repaired)));
    counters += page.counters.length;
    from = page.next;
  }
  return { counters, differences };
}

/** Audits these counters where they are loaded. Nothing is booked meanwhile, and the repair does not touch what is counted meanwhile. */
export async function auditCounters(
  deps: AuditDependencies,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<ReadonlyArray<Difference>> {
  return report(deps, await repair(deps, deps.books, epoch, counters));
}

async function repair(
  deps: AuditDependencies,
  books: Pick<Books, 'withLedgerLock'>,
  epoch: number,
  counters: ReadonlyArray<ScopeWindow>,
): Promise<ReadonlyArray<Difference>> {
  if (counters.length === 0) return [];
  const work = books.withLedgerLock(deps.instanceUid, async (reading) => {
    const adjusts = differencesIn(await readCounterSums(deps.store, reading, counters));
    if (adjusts.length > 0) await adjust(deps, { ...EMPTY_CALL, epoch, adjusts });
    return adjusts.map(({ scopeId, window, by }) => ({ scopeId, window, by }));
  });
  return withTimeout(deps.timer, TIMEOUT, 'PostgreSQL or the store', work);
}

/** Reports the differences without an explanation, and returns them. */
async function report(
  deps: AuditDependencies,
  repaired: ReadonlyArray<Difference>,
): Promise<ReadonlyArray<Difference>> {
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

/**
 * Scopes that spend in another instance now: their counters differ here without a fault. The audit repairs them too, since a key may
 * come back. Without an answer from PostgreSQL every repair is reported.
 */
async function elsewhere(
  { books, instanceUid, timer }: AuditDependencies,
  repaired: ReadonlyArray<Difference>,
): Promise<ReadonlySet<ScopeId>> {
  if (repaired.length === 0) return NO_SCOPES;
  const asked = books.scopesOfOtherInstances(instanceUid, [...new Set(repaired.map(({ scopeId }) => scopeId))]);
  return withTimeout(timer, TIMEOUT, 'PostgreSQL', asked).catch(() => NO_SCOPES);
}

async function adjust({ store }: AuditDependencies, call: StoreCall): Promise<void> {
  const answer = await store.call(call);
  if (answer.outcome === 'epoch') throw new Error('the store is being rebuilt');
}
