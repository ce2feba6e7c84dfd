// The additions of a batch to sums, hours and usage, in portions, so that each statement ends within its time limit.
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Millis, Nano, Window } from '#core/ports/money.ts';
import type { ScopeId, ScopeWindow } from '#core/ports/policy.ts';
import { timeOf } from '../process/ids.ts';
import { hourOf } from './hour-parts.ts';
import { literal } from './literal.ts';
import { DAY, lowestId } from './partitions.ts';

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

/** The amounts that a row adds to the usage of each of its scopes. */
interface RowUsage {
  readonly model: string;
  /** Days since the Unix epoch. */
  readonly day: number;
  requests: number;
  input: number;
  output: number;
  cachedInput: number;
  cacheWrite: number;
  cost: Nano;
}

/** The usage of a scope with one model on one day. */
interface UsageAddition extends RowUsage {
  readonly scopeId: ScopeId;
}

/** Values of one statement `ADD_SUMS`: one array per column of additions to sums, then to hours, then to usage. */
export interface AdditionPortion {
  readonly columns: ReadonlyArray<unknown>;
  readonly isLast: boolean;
}

/**
 * Collects one addition for each counter and second. Rows come in the order of their time, so nearly every row belongs
 * to the latest addition of its scope; `ADD_SUMS` sums two additions of one counter and second.
 */
export function createAdditions() {
  const byScope = new Map<ScopeId, Addition[]>();
  const usages = createUsages();
  const addTo = (additions: Addition[], { scopeId, window: { start, end } }: ScopeWindow, own: RowAddition): void => {
    const latest = additions.at(-1);
    if (latest?.second === own.second && latest.start === start && latest.end === end) latest.amount += own.amount;
    else additions.push({ scopeId, start, end, ...own });
  };
  return {
    add(rows: ReadonlyArray<LedgerRow>): void {
      for (const row of rows) {
        const { id, scopeWindows, cost } = row;
        const time = timeOf(id) ?? 0;
        usages.add(row, Math.floor(time / DAY));
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
      const hours = toPortions(scopes.map(([scopeId, additions]) => toHours(scopeId, additions)));
      const sumsAndHours = [
        ...sums.slice(0, -1).map((portion) => [portion, []] as const),
        ...hours.map((portion, index) => [index === 0 ? (sums.at(-1) ?? []) : [], portion] as const),
      ];
      // No other batch waits for usage, so it may be in any statement.
      const usagesByScope = usages.byScope();
      const usage = toPortions(scopes.map(([scopeId]) => usagesByScope.get(scopeId) ?? []));
      const count = Math.max(sumsAndHours.length, usage.length);
      for (let index = 0; index < count; index += 1) {
        const [additions, ofHours] = sumsAndHours[index] ?? [[], []];
        yield toStatement(additions, ofHours, usage[index] ?? [], index === count - 1);
      }
    },
  };
}

/** Collects one addition for each scope, model and day. A batch may have hundreds of models. */
function createUsages() {
  const all: UsageAddition[] = [];
  /** The last addition of each model and day, by scope. */
  const latest = new Map<string, Map<ScopeId, UsageAddition>>();
  return {
    add(row: LedgerRow, day: number): void {
      const own = usageOf(row, day);
      const key = `${day} ${own.model}`;
      const ofKey = latest.get(key) ?? new Map<ScopeId, UsageAddition>();
      if (ofKey.size === 0) latest.set(key, ofKey);
      for (const { scopeId } of row.scopeWindows) {
        const usage = ofKey.get(scopeId);
        // A sum of tokens that is no longer exact becomes a further addition.
        if (usage !== undefined && tokensOf(usage) + tokensOf(own) <= Number.MAX_SAFE_INTEGER) sumUp(usage, own);
        else {
          const addition = { ...own, scopeId };
          all.push(addition);
          ofKey.set(scopeId, addition);
        }
      }
    },
    byScope: () => Map.groupBy(all, ({ scopeId }) => scopeId),
  };
}

/** The maximum length of a model in an index. The name of a model entry is shorter. */
const MAX_MODEL = 256;

function usageOf({ model, kind, tokens, cost }: LedgerRow, day: number): RowUsage {
  return {
    // PostgreSQL reindexes half a surrogate pair, and a statement must not name a row twice.
    model: model.slice(0, MAX_MODEL).toWellFormed(),
    day,
    requests: kind === 'settled' ? 1 : 0,
    input: tokens.input,
    output: tokens.output,
    cachedInput: tokens.cachedInput,
    cacheWrite: tokens.cacheWrite,
    cost,
  };
}

const tokensOf = ({ input, output, cachedInput, cacheWrite }: RowUsage): number =>
  input + output + cachedInput + cacheWrite;

function sumUp(usage: UsageAddition, own: RowUsage): void {
  usage.requests += own.requests;
  usage.input += own.input;
  usage.output += own.output;
  usage.cachedInput += own.cachedInput;
  usage.cacheWrite += own.cacheWrite;
  usage.cost += own.cost;
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
  usage: ReadonlyArray<UsageAddition>,
  isLast: boolean,
): AdditionPortion => ({
  columns: [...toSumColumns(additions), ...toHourColumns(hours), ...toUsageColumns(usage)],
  isLast,
});

const toSumColumns = (additions: ReadonlyArray<Addition>): ReadonlyArray<string> => [
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

/** The models are listed once: the client library encodes a text much more slowly than a number. */
function toUsageColumns(usage: ReadonlyArray<UsageAddition>): ReadonlyArray<unknown> {
  const indexes = new Map<string, number>();
  for (const { model } of usage) if (!indexes.has(model)) indexes.set(model, indexes.size + 1);
  return [
    literal(usage, ({ scopeId }) => scopeId),
    [...indexes.keys()],
    literal(usage, ({ model }) => indexes.get(model) ?? 0),
    literal(usage, ({ day }) => day),
    literal(usage, ({ requests }) => requests),
    literal(usage, ({ input }) => input),
    literal(usage, ({ output }) => output),
    literal(usage, ({ cachedInput }) => cachedInput),
    literal(usage, ({ cacheWrite }) => cacheWrite),
    literal(usage, ({ cost }) => cost),
  ];
}
