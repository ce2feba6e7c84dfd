// What is a ledger made of, and how do its parts know each other?
import type { Entry } from '../ports/books.ts';
import type { Millis } from '../ports/money.ts';
import type { Expired } from '../ports/store.ts';
import { type Attendance, createAttendance } from './attendance.ts';
import { auditCounters } from './audit.ts';
import { createBatch } from './batch.ts';
import { createBehind } from './behind.ts';
import { createBooking } from './booking.ts';
import type { LedgerDependencies } from './deps.ts';
import { drain, GONE_AFTER } from './drain.ts';
import { tellEnded } from './ended.ts';
import { createEnding } from './ending.ts';
import { createHold } from './hold.ts';
import { tellLost } from './lease.ts';
import type { Lives } from './lives.ts';
import { createLoads } from './loads.ts';
import { createFixedMembership, createMembership, createStoreMemory } from './membership.ts';
import { createMove } from './move.ts';
import { createWatch } from './patience.ts';
import { createSigns } from './signs.ts';
import { createSpend } from './spend.ts';
import { createStoreClock } from './store-clock.ts';
import { createTake } from './take.ts';
import { createWaiting } from './waiting.ts';

export function createParts(deps: LedgerDependencies) {
  const tick = deps.tick ?? afterPromises;
  const lives: Lives = new Map();
  const onExpired = (expired: ReadonlyArray<Expired>): void => ending.expired(expired);
  const onGap = (since: Millis): void => tellLost(lives, since);
  const { epochs } = deps;
  const memory = deps.visits ?? createStoreMemory(deps.ids.next());
  const storeClock = createStoreClock(deps.clock, memory.last);
  const onLeave = (said: number): void => attendance?.left(said);
  const openable = epochs === undefined ? undefined : createMembership(memory, onLeave);
  const membership = openable ?? createFixedMembership(1);
  const batch = createBatch({ ...deps, membership, storeClock, tick, onExpired, onGap });
  const doubts = createDoubts(deps, membership.epoch);
  const isLive = (id: string): boolean => lives.has(id);
  const onRun = (): void => behind.report();
  const booking = createBooking({ ...deps, membership, isLive, onRun, onStraight: doubts.add });
  const loads = createLoads({ ...deps, batch, tick });
  const waiting = createWaiting(deps.timer);
  const signs = createSigns({ ...deps, storeClock });
  const take = createTake({ ...deps, batch, loads, storeClock, waiting, signs });
  const watch = createWatch({ ...deps, membership, signs });
  const ending = createEnding({ ...deps, lives, batch, loads, booking, membership, storeClock, waiting });
  const behind = createBehind({ ...deps, booking, ending });
  const hold = createHold({ ...deps, lives, take, ending, membership, watch });
  const move = createMove({ ...deps, lives, batch, membership, watch });
  const spend = createSpend({ ...deps, batch, loads, storeClock, membership, watch });
  const onOpen = (): void => {
    batch.resume();
    void doubts.settle();
  };
  const onBeat = (): void => {
    void doubts.settle();
    void tellEnded({ ...deps, lives }, membership.epoch()).catch(() => undefined);
    void drain({ ...deps, onDoubt: doubts.add }, GONE_AFTER).catch(() => undefined);
  };
  const attendance: Attendance | undefined =
    epochs === undefined || openable === undefined
      ? undefined
      : createAttendance({
          ...{ ...deps, epochs, membership: openable, process: memory.process, booking, lives },
          ...{ onOpen, onAway: batch.refuse, onExpired, onBeat, visits: deps.visits },
        });
  return { lives, storeClock, membership, batch, booking, ending, behind, hold, move, spend, attendance };
}

/** Counters that may have been loaded before something was booked that they do not know of. */
function createDoubts(deps: LedgerDependencies, epoch: () => number) {
  let doubtful: ReadonlyArray<Entry> = [];
  return {
    add(entries: ReadonlyArray<Entry>): void {
      doubtful = [...doubtful, ...entries];
    },
    async settle(): Promise<void> {
      const entries = doubtful;
      if (entries.length === 0) return;
      doubtful = [];
      const charges = entries.flatMap((entry) => entry.charges);
      const counters = new Map(charges.map((of) => [`${of.window.start}/${of.window.end}/${of.scopeId}`, of]));
      await auditCounters(deps, epoch(), [...counters.values()]).catch(() => {
        doubtful = [...entries, ...doubtful];
      });
    },
  };
}

const afterPromises = (callback: () => void): void => {
  void Promise.resolve().then(callback);
};
