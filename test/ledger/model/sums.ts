// Sums of the model's counters and records.
import { type Kind, LIMITS, REQUESTS, type Record_, type State } from './state.ts';

export const scopesOf = (of: number): readonly number[] => REQUESTS[of]?.scopes ?? [];

export const amountOf = (of: number): number => REQUESTS[of]?.amount ?? 0;

export const costOf = (of: number): number => REQUESTS[of]?.cost ?? 0;

export const at = <T>(list: readonly T[], index: number): T => list[index] as T;

export const name = (of: number, kind: Kind): string => `${of} ${kind}`;

export function partsOf(of: number, record: Record_ | null): { of: number; kind: Kind; cost: number }[] {
  if (record?.state === 'settled') return [{ of, kind: 'settled', cost: record.cost }];
  if (record?.state !== 'expired') return [];
  const parts: { of: number; kind: Kind; cost: number }[] = [];
  if (!record.known) parts.push({ of, kind: 'expired', cost: record.amount });
  if (record.late !== '' && !record.corrected)
    parts.push({ of, kind: 'correction', cost: record.cost - record.amount });
  return parts;
}

/** Whether the part is booked. A settlement may have become the correction of an expiry. */
export const isBooked = ({ books }: State, of: number, kind: Kind): boolean =>
  at(books.entries, of)[kind] !== undefined || (kind === 'settled' && at(books.entries, of).correction !== undefined);

export const isSettledInBooks = ({ books }: State, of: number): boolean => {
  const { settled, correction } = at(books.entries, of);
  return settled !== undefined || correction !== undefined;
};

export function sumsOf({ books }: State): number[] {
  return LIMITS.map((_, scope) =>
    books.entries.reduce(
      (all, kinds, of) =>
        scopesOf(of).includes(scope) ? all + Object.values(kinds).reduce((sum, cost) => sum + cost, 0) : all,
      0,
    ),
  );
}

/** The spend that a counter must show. */
export function exact(state: State, sums: readonly number[], booked: (of: number, kind: Kind) => boolean): number[] {
  return sums.map((sum, scope) =>
    state.store.records.reduce(
      (all, record, of) =>
        scopesOf(of).includes(scope)
          ? all + partsOf(of, record).reduce((more, part) => (booked(of, part.kind) ? more : more + part.cost), 0)
          : all,
      sum,
    ),
  );
}

export const heldIn = (state: State): number[] =>
  LIMITS.map((_, scope) =>
    state.store.records.reduce(
      (all, record, of) => (record?.state === 'held' && scopesOf(of).includes(scope) ? all + record.amount : all),
      0,
    ),
  );

/** The maximum that a scope can owe, however its live holds end: a refusal needs that much. */
export function most(state: State, scope: number): number {
  return state.requests.reduce((all, { stage, taken, lost }, of) => {
    if (!scopesOf(of).includes(scope)) return all;
    const kinds = Object.values(at(state.books.entries, of));
    if (lost) return all + amountOf(of);
    if (stage === 'settled')
      return all + Math.max(costOf(of), at(state.store.records, of)?.state === 'expired' ? 0 : costOf(of));
    if (kinds.length > 0 || stage === 'held' || stage === 'settling') return all + amountOf(of);
    return stage === 'releasing' || taken ? all + amountOf(of) : all;
  }, 0);
}

/** Whether the store accepts the call of a process, unaware that it has gone back in time. */
export const isHeardBy = ({ store, stale, processes }: State, who: number): boolean =>
  store.epoch === at(processes, who).epoch && stale?.behind[who] !== true;

/** Whether the loss shows in the process's own calls, or in the marks of others in PostgreSQL. */
export const isBehind = ({ stale }: State, who: number): boolean =>
  stale !== null && (stale.behind[who] === true || stale.marked);

export function answered(to: State, who: number): void {
  if (to.saved !== null) at(to.processes, who).since = true;
}

/** Charges that are lost from PostgreSQL, the store and every disk. */
export function loseOfDead(to: State, all = true): void {
  for (const [of, one] of to.requests.entries()) {
    const isDead = at(to.processes, REQUESTS[of]?.by ?? 0).dead;
    if (isDead && (all || at(to.store.records, of) === null) && !isSettledInBooks(to, of)) one.lost = true;
  }
}
