// The heartbeat of a process: it asks store and PostgreSQL again and again, and so detects that the store forgot, or that another process found it so (LEDGER 6).
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { EMPTY_CALL, type Expired } from '../ports/store.ts';
import { reasonOf } from '../reason.ts';
import type { OpenableMembership, StoreMemory } from './membership.ts';
import { type EpochProgress, type RejoinDependencies, rejoin } from './rejoin.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface HeartbeatDependencies extends Omit<RejoinDependencies, 'epochs' | 'membership'> {
  readonly epochs: Epochs;
  readonly membership: OpenableMembership;
  /** What waited may be sent; what was counted before is looked at once more. */
  readonly onOpen: () => void;
  /** No request can be admitted now. */
  readonly onAway: (why: unknown) => void;
  readonly onExpired: (expired: ReadonlyArray<Expired>) => void;
  /** Every two seconds, while it is open. */
  readonly onBeat: () => void;
  /** Absent: a process that stays. Else a request of its own (Workers), which starts under the epoch that earlier ones knew, and has no heartbeat. */
  readonly isolate: StoreMemory | undefined;
}

export interface Heartbeat {
  /** Joins, and goes on until it is closed. Resolves when the first attempt is over, however it ended. */
  start(): Promise<void>;
  /** The store lives under another epoch than we do. */
  onStaleEpoch(storeEpoch: number): void;
  close(): Promise<void>;
}

const BEAT: Millis = 500;
const BEATS_OF_POSTGRES = 4;
const TRY_AGAIN: Millis = 200;

export function createHeartbeat(deps: HeartbeatDependencies): Heartbeat {
  const { membership, epochs, store, timer, log, liveHolds, isolate } = deps;
  const progress: EpochProgress = { joined: 0, storeEpoch: 0 };
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
      await rejoin(deps, progress);
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
    if (closed || !membership.isOpen() || isolate !== undefined) return;
    cancel();
    cancel = timer(BEAT, () => void beat().then(schedule));
  };

  /** The store says whether it is still what it was; PostgreSQL, whether others found that it is not. */
  const beat = async (): Promise<void> => {
    beats += 1;
    const isDue = beats % BEATS_OF_POSTGRES === 0;
    if (!isDue && liveHolds.size === 0) return;
    const epoch = membership.epoch();
    try {
      const state = isDue
        ? await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.beat(deps.process, progress.joined))
        : undefined;
      if (!membership.isIn(epoch)) return;
      if (state !== undefined && (state.epoch !== epoch || !state.isOpen)) return membership.leave(epoch, state.epoch);
      const marks = state === undefined ? {} : { marks: state.marks };
      const call = { ...EMPTY_CALL, epoch, from: membership.count(epoch), ...marks };
      const answer = await withTimeout(timer, TIMEOUT, 'the store', store.call(call));
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
      if (isolate !== undefined && isolate.epoch > 0) return membership.open(isolate.epoch);
      await joinUntilIn();
      schedule();
    },
    onStaleEpoch(storeEpoch) {
      progress.storeEpoch = storeEpoch;
      void joinUntilIn().then(schedule);
    },
    async close() {
      closed = true;
      cancel();
      if (hasBeaten) await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.leave(deps.process)).catch(() => undefined);
    },
  };
}
