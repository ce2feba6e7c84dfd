// The heartbeat of a process: regular calls to store and PostgreSQL, which detect that the store forgot or that another process detected so (LEDGER 6).
import type { Epochs } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { EMPTY_CALL, type Expired } from '../ports/store.ts';
import { reasonOf } from '../reason.ts';
import type { StoreMemory } from './deps.ts';
import type { OpenableMembership } from './membership.ts';
import { type EpochProgress, type RejoinDependencies, rejoin } from './rejoin.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface HeartbeatDependencies extends Omit<RejoinDependencies, 'epochs' | 'membership'> {
  readonly epochs: Epochs;
  readonly membership: OpenableMembership;
  /** The epoch is open: waiting operations are sent, and suspect counters audited. */
  readonly onOpen: () => void;
  /** The epoch cannot be joined: requests are refused. */
  readonly onAway: (why: unknown) => void;
  readonly onExpired: (expired: ReadonlyArray<Expired>) => void;
  /** Called every two seconds while the epoch is open. */
  readonly onBeat: () => void;
  /** Absent in a lasting process. On Workers a request starts in the epoch that earlier ones knew, and has no heartbeat. */
  readonly isolate: StoreMemory | undefined;
}

export interface Heartbeat {
  /** Joins the epoch and beats until closed. Resolves after the first attempt, failed or not. */
  start(): Promise<void>;
  /** Called when the store is in another epoch than this process. */
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
      if (membership.whyAway() === undefined) log.warn('the ledger cannot join the epoch', { why: reasonOf(error) });
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

  /** The store says whether it has forgotten; PostgreSQL, whether another process found that it has. */
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
      // The store or PostgreSQL is away: the next request or heartbeat reports it.
    }
  };

  return {
    async start() {
      // The first call finds out whether the epoch is still current.
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
