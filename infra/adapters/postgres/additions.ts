// The additions of a batch to sums and hours, in portions, so that each statement ends within its time limit.
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Millis, Nano, Window } from '#core/ports/money.ts';
import type { ScopeId, ScopeWindow } from '#core/ports/policy.ts';
import { timeOf } from '../process/ids.ts';
import { literal } from './literal.ts';
import { lowestId } from './partitions.ts';
import { hourOf } from './recount.ts';

/** The number of additions after which a statement gets no further scope. */
const PORTION = 10_000;
const SECOND: Millis = 1000;

/** The second and the amount that a row adds to each of its counters. */
interface RowAddition {
  readonly second: Millis;
  readonly amount: Nano;
}

interface Addition extends Window {
  readonly scopeId: ScopeId;
  readonly second: Millis;
  amount: Nano;
}

interface HourAddition {
  readonly scopeId: ScopeId;
  readonly hour: number;
  readonly amount: Nano;
}

/** Values of one statement `ADD_SUMS`: one array per column of additions to sums, then of additions to hours. */
export interface AdditionPortion {
  readonly columns: ReadonlyArray<string>;
  readonly isLast: boolean;
}

/**
 * Collects one addition for each counter and second. Rows come in the order of their time, so nearly every row belongs
 * to the latest addition of its scope; `ADD_SUMS` sums two additions of one counter and second.
 */
export function createAdditions() {
  const byScope = new Map<ScopeId, Addition[]>();
  const addTo = (additions: Addition[], { scopeId, window: { start, end } }: ScopeWindow, own: RowAddition): void => {
    const latest = additions.at(-1);
    if (latest?.second === own.second && latest.start === start && latest.end === end) latest.amount += own.amount;
    else additions.push({ scopeId, start, end, ...own });
  };
  return {
    add(rows: ReadonlyArray<LedgerRow>): void {
      for (const { id, scopeWindows, cost } of rows) {
        const time = timeOf(id) ?? 0;
        const own = { second: time - (time % SECOND), amount: cost };
        for (const scopeWindow of scopeWindows) {
          const additions = byScope.get(scopeWindow.scopeId) ?? [];
          if (additions.length === 0) byScope.set(scopeWindow.scopeId, additions);
          addTo(additions, scopeWindow, own);
        }
      }
    },
    /**
     * The values of each statement, at least one: in the order of scopes, and all sums before the first hour. All
     * additions of a scope are in one portion, since a recount may add to another window of it.
     */
    *portions(): Generator<AdditionPortion> {
      const scopes = [...byScope].toSorted(([one], [other]) => (one < other ? -1 : 1));
      const sums = toPortions(scopes.map(([, additions]) => additions));
      for (const portion of sums.slice(0, -1)) yield toStatement(portion, [], false);
      const hours = toPortions(scopes.map(([scopeId, additions]) => toHours(scopeId, additions)));
      for (const [index, portion] of hours.entries())
        yield toStatement(index === 0 ? (sums.at(-1) ?? []) : [], portion, index === hours.length - 1);
    },
  };
}

/** Joins lists, so that each portion ends with the list that fills it; at least one portion. */
function toPortions<T>(lists: ReadonlyArray<ReadonlyArray<T>>): ReadonlyArray<ReadonlyArray<T>> {
  let portion: T[] = [];
  const portions = [portion];
  for (const list of lists) {
    if (portion.length >= PORTION) {
      portion = [];
      portions.push(portion);
    }
    for (const each of list) portion.push(each);
  }
  return portions;
}

function toHours(scopeId: ScopeId, additions: ReadonlyArray<Addition>): ReadonlyArray<HourAddition> {
  const hours = new Map<number, Nano>();
  for (const { second, amount } of additions) hours.set(hourOf(second), (hours.get(hourOf(second)) ?? 0n) + amount);
  return [...hours].map(([hour, amount]) => ({ scopeId, hour, amount }));
}

const toStatement = (
  additions: ReadonlyArray<Addition>,
  hours: ReadonlyArray<HourAddition>,
  isLast: boolean,
): AdditionPortion => ({ columns: [...toColumns(additions), ...toHourColumns(hours)], isLast });

const toColumns = (additions: ReadonlyArray<Addition>): ReadonlyArray<string> => [
  literal(additions, ({ scopeId }) => scopeId),
  literal(additions, ({ start }) => start),
  literal(additions, ({ end }) => end),
  literal(additions, ({ second }) => lowestId(second)),
  literal(additions, ({ amount }) => amount),
];

const toHourColumns = (additions: ReadonlyArray<HourAddition>): ReadonlyArray<string> => [
  literal(additions, ({ scopeId }) => scopeId),
  literal(additions, ({ hour }) => hour),
  literal(additions, ({ amount }) => amount),
];
