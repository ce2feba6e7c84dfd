// Loading of counters that the store lacks: each gets its PostgreSQL sum, since absent is not zero. And the spend of
// scopes (LEDGER 6).

import { createFairLimiter } from '../concurrency/fair-limiter.ts';
import { withTimeout } from '../concurrency/timeout.ts';
import { reasonOf } from '../failure/error-text.ts';
import { err, ok, type Result } from '../failure/result.ts';
import { spendWindow } from '../money/window.ts';
import { FIGURES_PAGE } from '../ports/counter-store.ts';
import type { ReservationRefusal } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { counterKey, type KeyPolicy, type ScopePolicy, type ScopeSpend } from '../ports/policy.ts';
import type { Recount } from '../ports/registry.ts';
import { forgetChange, markChanged } from './account.ts';
import type { CounterLoading, LedgerContext, StoreContext } from './context.ts';
import { type CounterState, pendingSpend } from './counters.ts';
import { createFailureLog } from './failures.ts';
import { FIRST_PAUSE, MIN_WAIT, nextPause, pause, REQUEST_DEADLINE } from './timeout.ts';

/**
 * Reads these sums in PostgreSQL. A derived counter (with `from`) has no sum until it is counted, once, from the ledger
 * rows of another scope: this is done first.
 */
async function readSums(
  database: StoreContext['database'],
  counters: ReadonlyArray<Recount>,
): Promise<ReadonlyArray<ScopeSpend>> {
  const derived = counters.filter(({ from }) => from !== undefined);
  if (derived.length > 0) await database.countFirst(derived);
  return database.sums(counters);
}

/**
 * Reads these sums, sets the counters that are absent, and returns the sums. Throws if the store or the database does
 * not reply.
 */
export async function load(
  { counterStore, database }: Pick<StoreContext, 'counterStore' | 'database'>,
  epoch: number,
  counters: ReadonlyArray<Recount>,
): Promise<ReadonlyArray<ScopeSpend>> {
  const sums = await readSums(database, counters);
  for (let from = 0; from < sums.length; from += FIGURES_PAGE)
    await counterStore.load(epoch, sums.slice(from, from + FIGURES_PAGE));
  return sums;
}

export function createLoading(context: LedgerContext): CounterLoading {
  const { account } = context;
  const loads = createFailureLog(context, 'sums');
  // Counting derived counters may take seconds: other counters do not wait for it.
  const plain = createLoadQueue(context, loads, Number.POSITIVE_INFINITY);
  const derived = createLoadQueue(context, loads, MAX_DERIVED);
  return {
    load(absent): void {
      for (const counter of absent) {
        forgetChange(account, counter);
        counter.isLoading = true;
        counter.loadedSum = undefined;
      }
      plain.add(absent.filter(({ countedFrom }) => countedFrom === undefined));
      derived.add(absent.filter(({ countedFrom }) => countedFrom !== undefined));
    },
  };
}

/**
 * The maximum derived counters that are loaded together. After an edit of a key policy, each key may have one that is not
 * counted yet, and each takes up to a second.
 */
const MAX_DERIVED = 8;

/**
 * Loads counters, at most `max` together. Requests wait until their deadlines. Counters that cannot be loaded are tried
 * again one by one, after all others, so that they delay no others.
 */
function createLoadQueue(context: LedgerContext, loads: ReturnType<typeof createFailureLog>, max: number) {
  const { account, timer } = context;
  const absentCounters = new Set<CounterState>();
  let isRunning = false;
  let size = max;

  /** Reads sums until no counter is absent. */
  const run = async (): Promise<void> => {
    isRunning = true;
    for (let wait = FIRST_PAUSE; !account.isStopped && isRunning; ) {
      try {
        isRunning = await loadNext();
        if (isRunning) loads.succeeded();
        wait = FIRST_PAUSE;
        size = Math.min(max, 2 * size);
      } catch (error) {
        loads.failed(error);
        size = 1;
        await pause(timer, wait);
        wait = nextPause(wait);
      }
    }
    isRunning = false;
  };
  /** Reads the sums of the next absent counters, which the next call sets in the store. False: none is absent. */
  const loadNext = async (): Promise<boolean> => {
    // A process that has left its account loads nothing: before an epoch is open nobody reads sums.
    for (const counter of absentCounters) if (!counter.isLoading) absentCounters.delete(counter);
    const loading = [...absentCounters].slice(0, size);
    if (loading.length === 0) return false;
    const [{ id }, readAt] = [account, account.now()];
    const counters = loading.map(({ scopeWindow, countedFrom: from }) => ({ ...scopeWindow, from }));
    // The set keeps the order in which counters are added.
    for (const counter of loading) absentCounters.delete(counter);
    for (const counter of loading) absentCounters.add(counter);
    const sums = await readSums(context.database, counters);
    if (account.id !== id) return true;
    for (const [index, counter] of loading.entries()) {
      const { spent } = sums[index] ?? {};
      if (spent === undefined) throw new Error('PostgreSQL returned too few sums (our error)');
      absentCounters.delete(counter);
      counter.isLoading = false;
      counter.loadedSum = { spent, readAt };
      markChanged(account, counter);
    }
    context.sync.callNow();
    return true;
  };
  return {
    add(counters: ReadonlyArray<CounterState>): void {
      for (const counter of counters) absentCounters.add(counter);
      if (!isRunning && absentCounters.size > 0) void run();
    },
  };
}

type Spends = ReadonlyArray<ScopeSpend | undefined>;

/** Begins a step and waits for its end. Rejects at the deadline, and begins no step after it. */
type StepRunner = <T>(step: () => Promise<T>) => Promise<T>;

/**
 * The maximum number of concurrent reads of spend. Each may need a connection to PostgreSQL, of which look-ups of keys
 * and bookings need the others.
 */
const MAX_READS = 4;
/** The maximum number of waiting reads: more would not be read within their deadlines. */
const MAX_WAITING = 512;
const TOO_MANY = 'too many requests read their spend';
const PARTS = 'counter store or database';

/**
 * Reads the spend of scopes in their current windows, without reservations. Undefined for a scope without a budget.
 * Namespaces take turns. A read that nobody waits for any more begins no further step, and another read takes its
 * place.
 */
export function createSpend(context: LedgerContext) {
  const { timer, intervalClock } = context;
  const reads = createFairLimiter(MAX_READS, MAX_WAITING);
  return async (
    scopes: ReadonlyArray<ScopePolicy>,
    waited: Millis = 0,
  ): Promise<Result<Spends, ReservationRefusal>> => {
    try {
      const namespace = namespaceOf(scopes);
      if (reads.isFull(namespace)) throw new Error(TOO_MANY);
      const left = Math.max(REQUEST_DEADLINE - waited, MIN_WAIT);
      const deadline = intervalClock.now() + left;
      const inTime: StepRunner = async (step) => {
        const rest = deadline - intervalClock.now();
        if (rest <= 0) throw new Error(TOO_MANY);
        return withTimeout(timer, rest, PARTS, step());
      };
      const spends = reads.run(namespace, () => read(context, scopes, inTime));
      return ok(await withTimeout(timer, left, PARTS, spends));
    } catch (error) {
      return err({ reason: 'unavailable', why: reasonOf(error) });
    }
  };
}

/** The namespace of the VirtualKey among these scopes. */
function namespaceOf(scopes: ReadonlyArray<ScopePolicy | KeyPolicy>): string {
  for (const scope of scopes) if ('object' in scope) return scope.object.namespace;
  return '';
}

/** Reads the spend of scopes from memory. */
export const createKnownSpend =
  ({ account }: LedgerContext) =>
  (scopes: ReadonlyArray<ScopePolicy>): Spends => {
    const { scopeWindows, counters } = account.counters.ofScopes(scopes, account.now());
    return scopes.map(({ budget }, index) => {
      const [scopeWindow, counter] = [scopeWindows[index], counters[index]];
      if (budget === undefined || scopeWindow === undefined || counter?.spendOfAll === undefined) return undefined;
      return { ...scopeWindow, spent: counter.spendOfAll + pendingSpend(counter) };
    });
  };

async function read(context: LedgerContext, scopes: ReadonlyArray<ScopePolicy>, inTime: StepRunner): Promise<Spends> {
  const { account, counterStore } = context;
  await inTime(() => account.whenOpen.promise);
  // Settlements that wait for the next call are spend too.
  await inTime(() => context.sync.flush());
  const now = account.now();
  const counters = scopes
    .filter(({ budget }) => budget !== undefined)
    .map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now), from: scope.countedFrom }));
  let states = await inTime(() => counterStore.read(counters));
  const absent = counters.filter((_, index) => states[index] === undefined);
  let sums: ReadonlyMap<string, Nano> = new Map();
  if (absent.length > 0) {
    const loaded = await inTime(() => load(context, account.epoch, absent));
    sums = new Map(loaded.map((sum) => [counterKey(sum), sum.spent]));
    states = await inTime(() => counterStore.read(counters));
  }
  const spends = counters.flatMap((counter, index) => {
    // A store that is lost or in another epoch loads nothing.
    const spent = states[index]?.spent ?? sums.get(counterKey(counter));
    return spent === undefined ? [] : [{ ...counter, spent }];
  });
  return scopes.map(({ scopeId }) => spends.find((spend) => spend.scopeId === scopeId));
}
