// Recovery: holds that an earlier process left unfinished are booked before new ones are allowed (LEDGER 6).
import type { Entry, Reading } from '../ports/books.ts';
import type { Millis } from '../ports/money.ts';
import type { OutboxRecord } from '../ports/outbox.ts';
import type { ScopeWindow } from '../ports/policy.ts';
import { counterKey } from '../ports/store.ts';
import type { Batch } from './batch.ts';
import { type Booking, NO_EPOCH } from './booking.ts';
import { readCounterSums } from './counter-sums.ts';
import type { LedgerDependencies } from './deps.ts';
import { toRefund } from './entry.ts';
import { LEASE } from './live-holds.ts';
import type { Membership } from './membership.ts';
import { foldRecords, type Step, stepFor, type UnfinishedHold } from './outbox-replay.ts';
import type { StoreClock } from './store-clock.ts';
import { withTimeout } from './timeout.ts';

export interface RecoverDependencies
  extends Pick<LedgerDependencies, 'instanceUid' | 'books' | 'store' | 'outbox' | 'timer' | 'log'> {
  readonly batch: Batch;
  readonly membership: Membership;
  readonly booking: Booking;
  readonly storeClock: StoreClock;
}

const CHUNK = 500;
const RECOVERY_TIMEOUT: Millis = 10_000;

/** Resolves when PostgreSQL has everything. Throws when PostgreSQL is away; may be called again with the same records. */
export async function recover(deps: RecoverDependencies, records: ReadonlyArray<OutboxRecord>): Promise<void> {
  const unfinishedHolds = foldRecords(records);
  for (let at = 0; at < unfinishedHolds.length; at += CHUNK) {
    const chunk = recoverChunk(deps, unfinishedHolds.slice(at, at + CHUNK));
    await withTimeout(deps.timer, RECOVERY_TIMEOUT, 'store or database', chunk);
  }
  if (unfinishedHolds.length > 0) deps.log.info('recovered the outbox', { holds: unfinishedHolds.length });
}

async function recoverChunk(deps: RecoverDependencies, unfinishedHolds: ReadonlyArray<UnfinishedHold>): Promise<void> {
  const counted = await deps.books.withLedgerLock(deps.instanceUid, (reading) =>
    countChunk(deps, unfinishedHolds, reading),
  );
  // A store that was unresponsive meanwhile may have counted a call twice, once late: NO_EPOCH makes the booking audit it.
  for (const entry of counted.flat()) deps.booking.add(entry, NO_EPOCH);
  await deps.booking.flush();
  // Holds with entries are removed from the outbox by the booking.
  deps.outbox.done(unfinishedHolds.filter((_, index) => counted[index]?.length === 0).map(({ id }) => id));
}

/**
 * Decides what each hold lacks, loads the counters it will be counted in, and counts it; returns the entries to book. A
 * transaction of the dead process may still commit. The lock excludes that meanwhile, or it would be missed or counted twice.
 */
async function countChunk(
  deps: RecoverDependencies,
  unfinishedHolds: ReadonlyArray<UnfinishedHold>,
  reading: Reading,
): Promise<ReadonlyArray<ReadonlyArray<Entry>>> {
  const booked = await reading.bookedOf(unfinishedHolds.map(({ id }) => id));
  const now = deps.storeClock.now();
  const plan = unfinishedHolds.map(
    (unfinishedHold) => [unfinishedHold, stepFor(unfinishedHold, booked.get(unfinishedHold.id) ?? [], now)] as const,
  );
  const counters = countersOf(plan.map(([, step]) => step));
  const exact = counters.length === 0 ? [] : await readCounterSums(deps.store, reading, counters);
  await Promise.all(exact.map(({ load }) => deps.batch.load(load)));
  return Promise.all(plan.map(([unfinishedHold, step]) => act(deps, unfinishedHold, step)));
}

function countersOf(steps: ReadonlyArray<Step>): ScopeWindow[] {
  const counters = new Map<string, ScopeWindow>();
  for (const step of steps) {
    if (step.step !== 'settle') continue;
    for (const counter of step.operation.counters ?? []) {
      counters.set(counterKey(counter), counter);
    }
  }
  return [...counters.values()];
}

/** Completes the step in the store, and returns the entries to book. */
async function act(deps: RecoverDependencies, { id, hold }: UnfinishedHold, step: Step): Promise<Entry[]> {
  if (step.step === 'done') return [];
  if (step.step === 'release') {
    const answer = await deps.batch.release({ id, lease: LEASE });
    if (answer.outcome !== 'expired' || hold === undefined) return [];
    return [toRefund(id, hold, answer.charged, deps.storeClock.now())];
  }
  const answer = await deps.batch.settle(step.operation);
  if (answer.outcome === 'absent') throw new Error('a counter was unloaded during recovery');
  if (answer.outcome === 'released' && step.isEndUnknown === true) return [];
  return step.entries(answer.outcome === 'expired' ? answer.charged : undefined);
}
