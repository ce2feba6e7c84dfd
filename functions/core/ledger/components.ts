// The components of a ledger, and how they are wired.
import type { Entry } from '../ports/books.ts';
import type { Millis } from '../ports/money.ts';
import { counterKey, type Expired } from '../ports/store.ts';
import { createAcquire } from './acquire.ts';
import { auditCounters } from './audit.ts';
import { createBacklog } from './backlog.ts';
import { createBatch } from './batch.ts';
import { createBooking } from './booking.ts';
import type { LedgerDependencies } from './deps.ts';
import { drain, GONE_AFTER } from './drain.ts';
import { createHeartbeat, type Heartbeat } from './heartbeat.ts';
import { createHold } from './hold.ts';
import { createHoldQueue } from './hold-queue.ts';
import { repairLateExpiries } from './late-expiry.ts';
import { reportLost } from './lease.ts';
import type { LiveHolds } from './live-holds.ts';
import { createLoads } from './loads.ts';
import { createFixedMembership, createMembership, createStoreMemory } from './membership.ts';
import { createMove } from './rates.ts';
import { createWatch } from './request-deadline.ts';
import { createSettlements } from './settlements.ts';
import { createSpend } from './spend.ts';
import { createStoreClock } from './store-clock.ts';
import { createStoreLiveness } from './store-liveness.ts';

export function createComponents(deps: LedgerDependencies) {
  const tick = deps.tick ?? afterPromises;
  const liveHolds: LiveHolds = new Map();
  const onExpired = (expired: ReadonlyArray<Expired>): void => settlements.expired(expired);
  const onGap = (since: Millis): void => reportLost(liveHolds, since);
  const { epochs } = deps;
  const memory = deps.isolate ?? createStoreMemory(deps.ids.next());
  const storeClock = createStoreClock(deps.clock, memory.last);
  const onLeave = (storeEpoch: number): void => heartbeat?.onStaleEpoch(storeEpoch);
  const openable = epochs === undefined ? undefined : createMembership(memory, onLeave);
  const membership = openable ?? createFixedMembership(1);
  const batch = createBatch({ ...deps, membership, storeClock, tick, onExpired, onGap });
  const suspectCounters = createSuspectCounters(deps, membership.epoch);
  const isLive = (id: string): boolean => liveHolds.has(id);
  const onRun = (): void => backlog.report();
  const booking = createBooking({ ...deps, membership, isLive, onRun, onBookedAcrossEpochs: suspectCounters.add });
  const loads = createLoads({ ...deps, batch, tick });
  const queue = createHoldQueue(deps.timer);
  const liveness = createStoreLiveness({ ...deps, storeClock });
  const acquire = createAcquire({ ...deps, batch, loads, storeClock, queue, liveness });
  const watch = createWatch({ ...deps, membership, liveness });
  const settlements = createSettlements({ ...deps, liveHolds, batch, loads, booking, membership, storeClock, queue });
  const backlog = createBacklog({ ...deps, booking, settlements });
  const hold = createHold({ ...deps, liveHolds, acquire, settlements, membership, watch });
  const move = createMove({ ...deps, liveHolds, batch, membership, watch });
  const spend = createSpend({ ...deps, batch, loads, storeClock, membership, watch });
  const onOpen = (): void => {
    batch.resume();
    void suspectCounters.settle();
  };
  const onBeat = (): void => {
    void suspectCounters.settle();
    void repairLateExpiries({ ...deps, liveHolds }, membership.epoch()).catch(() => undefined);
    void drain({ ...deps, onSuspect: suspectCounters.add }, GONE_AFTER).catch(() => undefined);
  };
  const heartbeat: Heartbeat | undefined =
    epochs === undefined || openable === undefined
      ? undefined
      : createHeartbeat({
          ...{ ...deps, epochs, membership: openable, process: memory.process, booking, liveHolds },
          ...{ onOpen, onAway: batch.refuse, onExpired, onBeat, isolate: deps.isolate },
        });
  return { liveHolds, storeClock, membership, batch, booking, settlements, backlog, hold, move, spend, heartbeat };
}

/** Suspect counters: loaded before a booking that they may not contain. */
function createSuspectCounters(deps: LedgerDependencies, epoch: () => number) {
  let suspect: ReadonlyArray<Entry> = [];
  return {
    add(entries: ReadonlyArray<Entry>): void {
      suspect = [...suspect, ...entries];
    },
    async settle(): Promise<void> {
      const entries = suspect;
      if (entries.length === 0) return;
      suspect = [];
      const charges = entries.flatMap((entry) => entry.charges);
      const counters = new Map(charges.map((of) => [counterKey(of), of]));
      await auditCounters(deps, epoch(), [...counters.values()]).catch(() => {
        suspect = [...entries, ...suspect];
      });
    },
  };
}

const afterPromises = (callback: () => void): void => {
  void Promise.resolve().then(callback);
};
