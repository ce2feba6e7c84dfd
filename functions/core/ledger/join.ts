// How does a process get into an epoch? It books what it has, registers what it holds, and waits for the others that live (LEDGER 5).
import type { Books } from '../ports/books.ts';
import type { Log, Metrics } from '../ports/clock.ts';
import type { EpochState, Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Registration, Store, StoreCall } from '../ports/store.ts';
import type { Booking } from './booking.ts';
import { tellEnded } from './ended.ts';
import type { Lives } from './lives.ts';
import type { OpenableMembership } from './membership.ts';
import { chargedOf, toRegistration } from './registration.ts';
import { within } from './within.ts';

export interface JoinDependencies {
  readonly instanceUid: string;
  readonly process: string;
  readonly epochs: Epochs;
  readonly store: Store;
  readonly books: Books;
  readonly booking: Booking;
  readonly lives: Lives;
  readonly membership: OpenableMembership;
  readonly timer: Timer;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Where this process is. `joined`: the epoch under which the store has what it holds. */
export interface Standing {
  joined: number;
  /** What the store last said that it lives under. */
  said: number;
}

const SILENCE: Millis = 2000;
/** Whoever has not answered by then slept through it. */
const PATIENCE: Millis = 1000;
const LOOK_AGAIN: Millis = 25;
const MOST = 64;

const NOTHING = { settles: [], releases: [], renewals: [], loads: [], holds: [] } as const;

/** Returns when the epoch is open and we are in it. Throws when PostgreSQL or the store keep silent; may be called again. */
export async function join(deps: JoinDependencies, standing: Standing): Promise<void> {
  for (;;) {
    const state = await beat(deps, standing);
    if (state.epoch === 0) await raise(deps, state.epoch, standing.said);
    else if (!state.isOpen) await gather(deps, standing, state);
    else if (await isCurrent(deps, standing, state)) {
      // All who live have booked what they had.
      await tellEnded(deps, state.epoch);
      return deps.membership.open(state.epoch);
    }
  }
}

const beat = ({ epochs, process, timer }: JoinDependencies, { joined }: Standing): Promise<EpochState> =>
  within(timer, SILENCE, 'PostgreSQL', epochs.beat(process, joined));

async function raise(
  { epochs, timer, log, instanceUid }: JoinDependencies,
  from: number,
  above: number,
): Promise<void> {
  await within(timer, SILENCE, 'PostgreSQL', epochs.raise(from, above));
  // The first one of an instance is nothing to tell.
  if (from > 0)
    log.warn('the store has forgotten: it is rebuilt from PostgreSQL', { instance: instanceUid, epoch: from });
}

/** The epoch was raised: the store begins anew, everybody enters, and the last one opens. */
async function gather(deps: JoinDependencies, standing: Standing, { epoch }: EpochState): Promise<void> {
  const { store, epochs, timer } = deps;
  const begun = await within(timer, SILENCE, 'the store', store.begin(epoch));
  if (begun > epoch) return raise(deps, epoch, begun);
  if (standing.joined !== epoch && !(await enter(deps, standing, epoch))) return;
  const { epoch: current, isOpen, awaited, age } = await beat(deps, standing);
  if (current !== epoch || isOpen) return;
  if (awaited > 0 && age < PATIENCE) return new Promise((resolve) => void timer(LOOK_AGAIN, resolve));
  await within(timer, SILENCE, 'PostgreSQL', epochs.open(epoch));
  deps.metrics.add('gateway_operator_ledger_rebuilds_total');
}

/** Whether the open epoch is the one that the store really has; if it has another, or has gone back in time, the next is raised. */
async function isCurrent(deps: JoinDependencies, standing: Standing, state: EpochState): Promise<boolean> {
  const entered = standing.joined === state.epoch || (await enter(deps, standing, state.epoch));
  const said = entered
    ? await tell(deps, state.epoch, { ...NOTHING, epoch: state.epoch, marks: state.marks })
    : undefined;
  if (said === 'done') return true;
  await raise(deps, state.epoch, said ?? standing.said);
  return false;
}

/** What the old store had counted goes straight to PostgreSQL, what is under way to the new store. False: it lives under another epoch. */
async function enter(deps: JoinDependencies, standing: Standing, epoch: number): Promise<boolean> {
  await deps.booking.flush();
  const registrations = await registrationsOf(deps);
  for (let at = 0; at < registrations.length; at += MOST) {
    const registers = registrations.slice(at, at + MOST);
    const said = await tell(deps, epoch, { ...NOTHING, epoch, registers });
    if (said !== 'done') {
      standing.said = said;
      return false;
    }
  }
  standing.joined = epoch;
  return true;
}

/** A hold whose lease had ended is known as that: its settlement will be a correction. */
async function registrationsOf({ books, lives, timer }: JoinDependencies): Promise<Registration[]> {
  const open = [...lives.values()].filter(({ isCounted }) => !isCounted);
  if (open.length === 0) return [];
  const booked = await within(timer, SILENCE, 'PostgreSQL', books.bookedOf(open.map(({ id }) => id)));
  return open.flatMap((live) => {
    live.isMoved = true;
    const charged = chargedOf(booked, live.id);
    live.isEnded = charged !== undefined;
    // The store may have freed it already, and somebody may have what it left.
    return live.outcome === 'released' && charged === undefined ? [] : [toRegistration(live, charged)];
  });
}

/** Answers what the store lives under, where that is not this epoch. */
async function tell(
  { store, membership, timer }: JoinDependencies,
  epoch: number,
  call: StoreCall,
): Promise<'done' | number> {
  const answer = await within(timer, SILENCE, 'the store', store.call({ ...call, from: membership.count(epoch) }));
  if (answer.outcome === 'epoch') return answer.epoch;
  membership.answered(epoch, answer.calls);
  return 'done';
}
