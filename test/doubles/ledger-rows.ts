// The double of ledger rows: unique by (id, kind), and a sum per scope and window.
import type { LedgerReader, LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Nano, Window } from '#core/ports/money.ts';
import type { ScopeId, ScopeWindow } from '#core/ports/policy.ts';
import { counterKey } from '#core/ports/policy.ts';
import type { Recount } from '#core/ports/registry.ts';
import { timeOf } from '../../infra/adapters/process/ids.ts';

export interface MemoryLedgerRows extends LedgerReader {
  /** All booked rows, in order. */
  all(): ReadonlyArray<LedgerRow>;
  /** Rows that were refused, in order. */
  rejected(): ReadonlyArray<LedgerRow>;
  /** Books these rows in one step; returns the rejected ids. */
  insert(all: ReadonlyArray<LedgerRow>): ReadonlyArray<string>;
  /** Computes the window's sum from the rows inside it; later rows of that time count there too. */
  recount(recount: Recount): void;
  /** The same, unless the scope was recounted or the window has a sum. */
  countFirst(recount: Recount): void;
  /** Gives the scope to this instance. */
  moveScope(scopeId: ScopeId, instanceUid: string): void;
}

export function createMemoryLedgerRows(): MemoryLedgerRows {
  const rows = new Map<string, LedgerRow>();
  const aside = new Map<string, LedgerRow>();
  const sums = new Map<string, Nano>();
  const recounted = new Map<ScopeId, Window>();
  const moved = new Map<ScopeId, string>();

  const charge = (of: ScopeWindow, cost: Nano) => sums.set(counterKey(of), (sums.get(counterKey(of)) ?? 0n) + cost);

  const add = (row: LedgerRow) => {
    const key = `${row.id}/${row.kind}`;
    if (rows.has(key)) return;
    rows.set(key, row);
    for (const of of row.scopeWindows) {
      charge(of, row.cost);
      const window = recounted.get(of.scopeId) ?? of.window;
      const also = { scopeId: of.scopeId, window };
      if (counterKey(also) !== counterKey(of) && isInside(row, window)) charge(also, row.cost);
    }
  };

  const insert = (batch: ReadonlyArray<LedgerRow>): ReadonlyArray<string> => {
    const refused = batch.filter(isRefused);
    for (const row of refused) aside.set(`${row.id}/${row.kind}`, row);
    for (const row of batch) if (!isRefused(row)) add(row);
    return refused.map(({ id }) => id);
  };

  const recount = ({ scopeId, window, from = scopeId }: Recount) => {
    recounted.set(scopeId, window);
    const counted = [...rows.values()].filter(
      (row) => isInside(row, window) && row.scopeWindows.some((of) => of.scopeId === from),
    );
    const sum = counted.reduce((spent, { cost }) => spent + cost, 0n);
    sums.set(counterKey({ scopeId, window }), sum);
  };

  return {
    async sums(of) {
      return of.map((counter) => {
        const refused = [...aside.values()].filter((row) =>
          row.scopeWindows.some(
            (each) =>
              counterKey(each) === counterKey(counter) ||
              (each.scopeId === counter.scopeId && isInside(row, counter.window)),
          ),
        );
        const booked = sums.get(counterKey(counter)) ?? 0n;
        return { ...counter, spent: refused.reduce((spent, { cost }) => spent + cost, booked) };
      });
    },
    async bookedOf(ids) {
      const wanted = new Set(ids);
      const found = [...rows.values()].filter(({ id }) => wanted.has(id));
      return new Map(
        [...Map.groupBy(found, ({ id }) => id)].map(
          ([id, of]) => [id, of.map(({ kind, cost }) => ({ kind, cost })).sort(byKind)] as const,
        ),
      );
    },
    async scopesOfOtherInstances(instanceUid, scopes) {
      return new Set(scopes.filter((scopeId) => (moved.get(scopeId) ?? instanceUid) !== instanceUid));
    },
    all: () => [...rows.values()],
    rejected: () => [...aside.values()],
    insert,
    moveScope: (scopeId, instanceUid) => void moved.set(scopeId, instanceUid),
    recount,
    countFirst(counter) {
      if (!recounted.has(counter.scopeId) && !sums.has(counterKey(counter))) recount(counter);
    },
  };
}

const byKind = (one: { kind: string }, other: { kind: string }): number => (one.kind < other.kind ? -1 : 1);

/** Whether the time of the reservation, which its id contains, is in the window. */
function isInside({ id }: LedgerRow, { start, end }: Window): boolean {
  const time = timeOf(id);
  return time !== undefined && start <= time && time < end;
}

const MAX_COST = 2n ** 63n - 1n;

/** Whether PostgreSQL would refuse the row. */
function isRefused({ kind, cost, model, identifier, settledAt }: LedgerRow): boolean {
  if (!Number.isSafeInteger(settledAt)) return true;
  if (cost < 0n && kind === 'settled') return true;
  return cost > MAX_COST || cost < -MAX_COST || `${model}${identifier}`.includes('\u0000');
}
