// What did this process's predecessor leave unfinished? It is booked before anything new is allowed (LEDGER 6).
import type { Books, Entry, Reading } from '../ports/books.ts';
import type { Log } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox, OutboxRecord } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { ScopeWindow } from '../ports/policy.ts';
import type { Store } from '../ports/store.ts';
import type { Batch } from './batch.ts';
import type { Booking } from './booking.ts';
import { toRefund } from './entry.ts';
import { readExactly } from './exact.ts';
import { foldRecords, type Leftover, type Step, stepFor } from './leftovers.ts';
import type { Membership } from './membership.ts';
import type { StoreClock } from './store-clock.ts';
import { LEASE } from './take.ts';
import { within } from './within.ts';

export interface RecoverDependencies {
  readonly instanceUid: string;
  readonly books: Books;
  readonly store: Store;
  readonly outbox: Outbox;
  readonly batch: Batch;
  readonly membership: Membership;
  readonly booking: Booking;
  readonly storeClock: StoreClock;
  readonly timer: Timer;
  readonly log: Log;
}

/** Whatever holds then is another. */
const NO_EPOCH = -1;
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
  const counted = await deps.books.withLedgerLock(deps.instanceUid, (reading) => countChunk(deps, leftovers, reading));
  // A store that was silent meanwhile may have counted a call twice, once late: looked at again when they are booked.
  for (const entry of counted.flat()) deps.booking.add(entry, NO_EPOCH);
  await deps.booking.flush();
  // What has entries now is cut away by the booking.
  deps.outbox.done(leftovers.filter((_, index) => counted[index]?.length === 0).map(({ id }) => id));
}

/**
 * Decides per id what is missing, loads the counters it will be counted in, and counts it; answers what is to be booked. A
 * transaction of the dead process may still commit: not while this is done, or it would be missed or counted twice.
 */
async function countChunk(
  deps: RecoverDependencies,
  leftovers: ReadonlyArray<Leftover>,
  reading: Reading,
): Promise<ReadonlyArray<ReadonlyArray<Entry>>> {
  const booked = await reading.bookedOf(leftovers.map(({ id }) => id));
  const now = deps.storeClock.now();
  const plan = leftovers.map((leftover) => [leftover, stepFor(leftover, booked.get(leftover.id) ?? [], now)] as const);
  const counters = countersOf(plan.map(([, step]) => step));
  const exact = counters.length === 0 ? [] : await readExactly(deps.store, reading, counters);
  await Promise.all(exact.map(({ load }) => deps.batch.load(load)));
  return Promise.all(plan.map(([leftover, step]) => act(deps, leftover, step)));
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
  if (answer.outcome === 'released' && step.isUnsaid === true) return [];
  return step.entries(answer.outcome === 'expired' ? answer.charged : undefined);
}
