// How does a process notice that the store forgot, and that others did? It shows itself to store and PostgreSQL again and again (LEDGER 5).
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import type { Expired } from '../ports/store.ts';
import { reasonOf } from '../reason.ts';
import { type JoinDependencies, join, type Standing } from './join.ts';
import type { OpenableMembership, StoreMemory } from './membership.ts';
import { within } from './within.ts';

export interface AttendanceDependencies extends Omit<JoinDependencies, 'epochs' | 'membership'> {
  readonly epochs: Epochs;
  readonly membership: OpenableMembership;
  /** What waited may be sent; what was counted before is looked at once more. */
  readonly onOpen: () => void;
  /** Nobody can be let in now. */
  readonly onAway: (why: unknown) => void;
  readonly onExpired: (expired: ReadonlyArray<Expired>) => void;
  /** Every two seconds, while it is open. */
  readonly onBeat: () => void;
  /** Absent: a process that stays. Else it comes under the epoch that earlier visits knew, and beats for nobody. */
  readonly visits: StoreMemory | undefined;
}

export interface Attendance {
  /** Joins, and goes on until it is closed. Resolves when the first attempt is over, however it ended. */
  start(): Promise<void>;
  /** The store lives under another epoch than we do. */
  left(said: number): void;
  close(): Promise<void>;
}

const BEAT: Millis = 500;
const BEATS_OF_POSTGRES = 4;
const TRY_AGAIN: Millis = 200;
const SILENCE: Millis = 2000;

export function createAttendance(deps: AttendanceDependencies): Attendance {
  const { membership, epochs, store, timer, log, lives, visits } = deps;
  const standing: Standing = { joined: 0, said: 0 };
  let closed = false;
  let hasBeaten = false;
  let joining: Promise<void> | undefined;
  let cancel = (): void => undefined;
  let beats = 0;

  const joinUntilIn = (): Promise<void> => {
    joining ??= attempt().finally(() => {
      joining = undefined;
    });
    return joining;
  };
  const attempt = async (): Promise<void> => {
    hasBeaten = true;
    try {
      await join(deps, standing);
      if (!closed) deps.onOpen();
    } catch (error) {
      if (closed) return;
      if (membership.whyAway() === undefined) log.warn('the ledger cannot be entered', { why: reasonOf(error) });
      membership.fail(error);
      deps.onAway(error);
      cancel();
      cancel = timer(TRY_AGAIN, () => void joinUntilIn().then(schedule));
    }
  };

  const schedule = (): void => {
    if (closed || !membership.isOpen() || visits !== undefined) return;
    cancel();
    cancel = timer(BEAT, () => void beat().then(schedule));
  };

  /** The store says whether it is still what it was; PostgreSQL, whether others found that it is not. */
  const beat = async (): Promise<void> => {
    beats += 1;
    const isDue = beats % BEATS_OF_POSTGRES === 0;
    if (!isDue && lives.size === 0) return;
    const epoch = membership.epoch();
    try {
      const state = isDue
        ? await within(timer, SILENCE, 'PostgreSQL', epochs.beat(deps.process, standing.joined))
        : undefined;
      if (!membership.isIn(epoch)) return;
      if (state !== undefined && (state.epoch !== epoch || !state.isOpen)) return membership.leave(epoch, state.epoch);
      const marks = state === undefined ? {} : { marks: state.marks };
      const nothing = { settles: [], releases: [], renewals: [], loads: [], holds: [] };
      const call = { ...nothing, epoch, from: membership.count(epoch), ...marks };
      const answer = await within(timer, SILENCE, 'the store', store.call(call));
      if (answer.outcome === 'epoch') return membership.leave(epoch, answer.epoch);
      membership.answered(epoch, answer.calls);
      if (answer.expired.length > 0) deps.onExpired(answer.expired);
      if (isDue) deps.onBeat();
    } catch {
      // Away: the next request, or the next beat, says so.
    }
  };

  return {
    async start() {
      // The first call finds out whether it is still the epoch.
      if (visits !== undefined && visits.epoch > 0) return membership.open(visits.epoch);
      await joinUntilIn();
      schedule();
    },
    left(said) {
      standing.said = said;
      void joinUntilIn().then(schedule);
    },
    async close() {
      closed = true;
      cancel();
      if (hasBeaten) await within(timer, SILENCE, 'PostgreSQL', epochs.leave(deps.process)).catch(() => undefined);
    },
  };
}
