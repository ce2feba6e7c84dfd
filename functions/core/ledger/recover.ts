// What did this process's predecessor leave unfinished? It is booked before anything new is allowed (LEDGER 6).
import type { Books, Entry } from '../ports/books.ts';
import type { Log, Metrics } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox, OutboxRecord } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { ScopeWindow } from '../ports/policy.ts';
import type { Batch } from './batch.ts';
import type { Booking } from './booking.ts';
import { toRefund } from './entry.ts';
import { foldRecords, type Leftover, type Step, stepFor } from './leftovers.ts';
import type { Loads } from './loads.ts';
import type { StoreClock } from './store-clock.ts';
import { LEASE } from './take.ts';
import { within } from './within.ts';

export interface RecoverDependencies {
  readonly books: Books;
  readonly outbox: Outbox;
  readonly batch: Batch;
  readonly loads: Loads;
  readonly booking: Booking;
  readonly storeClock: StoreClock;
  readonly timer: Timer;
  readonly log: Log;
  readonly metrics: Metrics;
}

const CHUNK = 500;
const SILENCE: Millis = 10_000;

/** Returns when PostgreSQL has everything. Throws when it cannot be asked; may be called again with the same records. */
export async function recover(deps: RecoverDependencies, records: ReadonlyArray<OutboxRecord>): Promise<void> {
  const leftovers = foldRecords(records);
  for (let at = 0; at < leftovers.length; at += CHUNK) {
    const chunk = recoverChunk(deps, leftovers.slice(at, at + CHUNK));
    await within(deps.timer, SILENCE, 'store or database', chunk);
  }
  if (leftovers.length > 0) deps.log.info('recovered the outbox', { holds: leftovers.length });
}

async function recoverChunk(deps: RecoverDependencies, leftovers: ReadonlyArray<Leftover>): Promise<void> {
  const plan = await planWithLoadedCounters(deps, leftovers);
  const booked = await Promise.all(plan.map(([leftover, step]) => act(deps, leftover, step)));
  for (const entry of booked.flat()) deps.booking.add(entry);
  await deps.booking.flush();
  // What has entries now is cut away by the booking.
  deps.outbox.done(leftovers.filter((_, index) => booked[index]?.length === 0).map(({ id }) => id));
}

/**
 * Decides per id what is missing, and loads the counters it will be counted in. A transaction of the dead process may
 * still commit: an entry that shows up between reading kinds and reading sums might be missed or counted twice, so both
 * are read until nothing moved.
 */
async function planWithLoadedCounters(
  deps: RecoverDependencies,
  leftovers: ReadonlyArray<Leftover>,
): Promise<ReadonlyArray<readonly [Leftover, Step]>> {
  const ids = leftovers.map(({ id }) => id);
  let before = await deps.books.kindsOf(ids);
  for (;;) {
    const kinds = before;
    const now = deps.storeClock.now();
    const plan = leftovers.map((leftover) => [leftover, stepFor(leftover, kinds.get(leftover.id) ?? [], now)] as const);
    const sums = await deps.books.sums(countersOf(plan.map(([, step]) => step)));
    const after = await deps.books.kindsOf(ids);
    if (ids.every((id) => (before.get(id) ?? []).length === (after.get(id) ?? []).length)) {
      await Promise.all(sums.map((sum) => deps.batch.load(sum)));
      return plan;
    }
    before = after;
  }
}

function countersOf(steps: ReadonlyArray<Step>): ScopeWindow[] {
  const counters = new Map<string, ScopeWindow>();
  for (const step of steps) {
    if (step.step !== 'settle') continue;
    for (const counter of step.operation.counters ?? []) {
      counters.set(`${counter.window.start}/${counter.window.end}/${counter.scopeId}`, counter);
    }
  }
  return [...counters.values()];
}

/** Tells the store, and answers what is to be booked. */
async function act(deps: RecoverDependencies, { id, hold }: Leftover, step: Step): Promise<Entry[]> {
  if (step.step === 'done') return [];
  if (step.step === 'release') {
    const answer = await deps.batch.release({ id, lease: LEASE });
    if (answer.outcome !== 'expired' || hold === undefined) return [];
    return [toRefund(id, hold, answer.charged, deps.storeClock.now())];
  }
  const answer = await deps.batch.settle(step.operation);
  if (answer.outcome === 'absent') throw new Error('a counter went away while it was counted in');
  if (step.step === 'settle') return step.entries(answer.outcome === 'expired' ? answer.charged : undefined);
  if (answer.outcome === 'expired')
    return [{ ...step.settled, kind: 'correction', cost: step.settled.cost - answer.charged }];
  // The end of its lease was booked by somebody else a day ago or more, at an amount that nobody remembers.
  deps.metrics.add('gateway_operator_ledger_unresolved_total');
  deps.log.error('a settlement came too late to be corrected', { id, cost: `${step.settled.cost}` });
  return [];
}
