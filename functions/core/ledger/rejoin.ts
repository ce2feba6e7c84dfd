// The way of a process into an epoch: book what is counted, register live holds, wait for the other live processes (LEDGER 6).
import type { EpochState, Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { EMPTY_CALL, type Registration, type StoreCall } from '../ports/store.ts';
import type { Booking } from './booking.ts';
import type { LedgerDependencies } from './deps.ts';
import { repairLateExpiries } from './late-expiry.ts';
import { chargedOf, type LiveHolds, toRegistration } from './live-holds.ts';
import type { OpenableMembership } from './membership.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface RejoinDependencies
  extends Pick<LedgerDependencies, 'instanceUid' | 'store' | 'books' | 'timer' | 'log' | 'metrics'> {
  readonly process: string;
  readonly epochs: Epochs;
  readonly booking: Booking;
  readonly liveHolds: LiveHolds;
  readonly membership: OpenableMembership;
}

/** Progress of this process. `joined`: the epoch in which the store has its live holds. */
export interface EpochProgress {
  joined: number;
  /** The epoch that the store last answered. */
  storeEpoch: number;
}

/** A process that has not joined by then is not waited for. */
const JOIN_TIMEOUT: Millis = 1000;
const CHECK_AGAIN_AFTER: Millis = 25;
const MAX_REGISTRATIONS = 64;

/** Resolves when the epoch is open and joined. Throws when PostgreSQL or the store do not reply; may be called again. */
export async function rejoin(deps: RejoinDependencies, progress: EpochProgress): Promise<void> {
  for (;;) {
    const state = await beat(deps, progress);
    if (state.epoch === 0) await raise(deps, state.epoch, progress.storeEpoch);
    else if (!state.isOpen) await gather(deps, progress, state);
    else if (await isCurrent(deps, progress, state)) {
      // All live processes have booked their entries by now.
      await repairLateExpiries(deps, state.epoch);
      return deps.membership.open(state.epoch);
    }
  }
}

const beat = ({ epochs, process, timer }: RejoinDependencies, { joined }: EpochProgress): Promise<EpochState> =>
  withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.beat(process, joined));

async function raise(
  { epochs, timer, log, instanceUid }: RejoinDependencies,
  from: number,
  above: number,
): Promise<void> {
  await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.raise(from, above));
  // The first epoch of an instance is not a loss.
  if (from > 0)
    log.warn('the store has forgotten: it is rebuilt from PostgreSQL', { instance: instanceUid, epoch: from });
}

/** The epoch was raised: the store starts empty, every live process joins, and the last one opens the epoch. */
async function gather(deps: RejoinDependencies, progress: EpochProgress, { epoch }: EpochState): Promise<void> {
  const { store, epochs, timer } = deps;
  const begun = await withTimeout(timer, TIMEOUT, 'the store', store.begin(epoch));
  if (begun > epoch) return raise(deps, epoch, begun);
  if (progress.joined !== epoch && !(await enter(deps, progress, epoch))) return;
  const { epoch: current, isOpen, awaited, age } = await beat(deps, progress);
  if (current !== epoch || isOpen) return;
  if (awaited > 0 && age < JOIN_TIMEOUT) return new Promise((resolve) => void timer(CHECK_AGAIN_AFTER, resolve));
  await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.open(epoch));
  deps.metrics.add('gateway_operator_ledger_rebuilds_total');
}

/** Whether the store is in the open epoch. If it is in another, or has gone back in time, the epoch is raised. */
async function isCurrent(deps: RejoinDependencies, progress: EpochProgress, state: EpochState): Promise<boolean> {
  const entered = progress.joined === state.epoch || (await enter(deps, progress, state.epoch));
  const storeEpoch = entered
    ? await callStore(deps, state.epoch, { ...EMPTY_CALL, epoch: state.epoch, marks: state.marks })
    : undefined;
  if (storeEpoch === 'done') return true;
  await raise(deps, state.epoch, storeEpoch ?? progress.storeEpoch);
  return false;
}

/** Books what the old store had counted, and registers live holds in the new one. False: the store is in another epoch. */
async function enter(deps: RejoinDependencies, progress: EpochProgress, epoch: number): Promise<boolean> {
  await deps.booking.flush();
  const registrations = await registrationsOf(deps);
  for (let at = 0; at < registrations.length; at += MAX_REGISTRATIONS) {
    const registers = registrations.slice(at, at + MAX_REGISTRATIONS);
    const storeEpoch = await callStore(deps, epoch, { ...EMPTY_CALL, epoch, registers });
    if (storeEpoch !== 'done') {
      progress.storeEpoch = storeEpoch;
      return false;
    }
  }
  progress.joined = epoch;
  return true;
}

/** Live holds to register. One whose lease had ended is registered as expired, so its settlement will be a correction. */
async function registrationsOf({ books, liveHolds, timer }: RejoinDependencies): Promise<Registration[]> {
  const open = [...liveHolds.values()].filter(({ isSettledInStore }) => !isSettledInStore);
  if (open.length === 0) return [];
  const booked = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.bookedOf(open.map(({ id }) => id)));
  return open.flatMap((live) => {
    live.isReRegistered = true;
    const charged = chargedOf(booked, live.id);
    live.isExpiredBefore = charged !== undefined;
    // The old store may have freed a released hold already, and another request may hold the money.
    return live.outcome === 'released' && charged === undefined ? [] : [toRegistration(live, charged)];
  });
}

/** Calls the store; returns its epoch where that is another. */
async function callStore(
  { store, membership, timer }: RejoinDependencies,
  epoch: number,
  call: StoreCall,
): Promise<'done' | number> {
  const answer = await withTimeout(timer, TIMEOUT, 'the store', store.call({ ...call, from: membership.count(epoch) }));
  if (answer.outcome === 'epoch') return answer.epoch;
  membership.answered(epoch, answer.calls);
  return 'done';
}
