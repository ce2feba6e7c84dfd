// Batches: the operations of many requests share one call to the store. Holds of a tick go together, settlements wait for them, 5 ms at the longest (LEDGER 11).
import type { Clock, Metrics } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { MoveAnswer, MoveOperation } from '../ports/rates.ts';
import type {
  Expired,
  HoldAnswer,
  HoldOperation,
  Load,
  ReleaseAnswer,
  ReleaseOperation,
  SettleAnswer,
  SettleOperation,
  Store,
  StoreCall,
  StoreReply,
} from '../ports/store.ts';
import { createBackOff } from './back-off.ts';
import type { Membership } from './membership.ts';
import { emptyCargo, isEmpty, type Pending, type PendingOperations, takeCargo } from './pending-operations.ts';
import type { StoreClock } from './store-clock.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface Batch {
  /** Rejects when nobody knows whether it was taken. Waits while the store is rebuilt. */
  hold(operation: HoldOperation): Promise<HoldAnswer>;
  /** Repeated until acknowledged. */
  settle(operation: SettleOperation): Promise<SettleAnswer>;
  /** Repeated until acknowledged. */
  release(operation: ReleaseOperation): Promise<ReleaseAnswer>;
  /** Rejects when nobody knows whether it was done. */
  move(operation: MoveOperation): Promise<MoveAnswer>;
  /** Sent once: the next beat sends it anew. */
  renew(operation: StoreCall['renewals'][number]): void;
  /** Rejects when nobody knows whether it was done; with a `StaleEpochError` when the store is rebuilt: what was read for it is stale. */
  load(operation: Load): Promise<void>;
  /** Sends all that waits, now; throws when the store did not take it. */
  flush(): Promise<void>;
  /** The store is being rebuilt, or is there again. */
  resume(): void;
  /** The store cannot be rebuilt now: requests that wait to take something are refused with this. */
  refuse(why: unknown): void;
  close(): void;
}

/** The store lives under another epoch than the one that was named. */
export class StaleEpochError extends Error {
  override readonly name = 'StaleEpochError';
}

export interface BatchDependencies {
  readonly store: Store;
  readonly membership: Membership;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly timer: Timer;
  readonly tick: (callback: () => void) => void;
  readonly metrics: Metrics;
  readonly onExpired: (expired: ReadonlyArray<Expired>) => void;
  /** It answers for the first time since then, and leases that were renewed before may have ended. */
  readonly onGap: (since: Millis) => void;
}

const FLUSH_AFTER: Millis = 5;
/** A lease lasts a minute, and began up to a quarter of one before the last answer (lease.ts, acquire.ts). */
const LEASES_MAY_END: Millis = 44_000;
const PROBE = 32;

export function createBatch(deps: BatchDependencies): Batch {
  const { membership } = deps;
  const waiting = emptyCargo();
  const unacknowledged = emptyCargo();
  const backOff = createBackOff(deps.timer, 100, 1000);
  let answered = { epoch: membership.epoch(), at: deps.clock.now() };
  let ticking = false;
  let cancelRide: (() => void) | undefined;

  const later = (): void => {
    if (ticking || cancelRide !== undefined) return;
    cancelRide = deps.timer(FLUSH_AFTER, () => {
      cancelRide = undefined;
      sendAll();
    });
  };
  const soon = (): void => {
    if (ticking) return;
    ticking = true;
    deps.tick(() => {
      ticking = false;
      sendAll();
    });
  };

  const sendAll = (): Promise<void>[] => {
    cancelRide?.();
    cancelRide = undefined;
    const sent: Promise<void>[] = [];
    while (!isEmpty(waiting) && membership.isOpen()) {
      const sending = send(deps, takeCargo(waiting)).then((failure) =>
        failure === undefined ? succeeded() : failed(failure),
      );
      // A flush hears of it; every other caller waits for its own operation.
      sending.catch(() => undefined);
      sent.push(sending);
    }
    return sent;
  };

  /** What an epoch before held was registered anew under this one, with leases of their own. */
  const hear = (): void => {
    const before = answered;
    answered = { epoch: membership.epoch(), at: deps.clock.now() };
    if (before.epoch === answered.epoch && answered.at - before.at >= LEASES_MAY_END) deps.onGap(before.at);
  };
  const succeeded = (): void => {
    hear();
    backOff.succeeded();
    if (isEmpty(unacknowledged)) return;
    sendAgain(Number.POSITIVE_INFINITY);
    later();
  };
  const failed = (failure: Failure): never => {
    if (failure.cause instanceof StaleEpochError) return putBack(failure.cargo, failure.cause);
    deps.metrics.add('gateway_operator_ledger_store_failures_total');
    unacknowledged.settles.push(...failure.cargo.settles);
    unacknowledged.releases.push(...failure.cargo.releases);
    // One call finds out whether the store is back; the rest follows it.
    backOff.failed(() => {
      sendAgain(PROBE);
      sendAll();
    });
    const { loads, holds, moves } = failure.cargo;
    for (const { reject } of [...loads, ...holds, ...moves]) reject(failure.cause);
    throw failure.cause;
  };
  /** Nothing of it was done, or nothing that is left: it is asked again under the epoch that follows. */
  const putBack = ({ settles, releases, holds, moves, loads }: PendingOperations, cause: StaleEpochError): never => {
    waiting.settles.unshift(...settles);
    waiting.releases.unshift(...releases);
    waiting.holds.unshift(...holds);
    waiting.moves.unshift(...moves);
    for (const { reject } of [...loads, ...waiting.loads.splice(0)]) reject(cause);
    if (membership.isOpen()) later();
    throw cause;
  };
  const sendAgain = (max: number): void => {
    waiting.settles = [...unacknowledged.settles.splice(0, max), ...waiting.settles];
    waiting.releases = [...unacknowledged.releases.splice(0, max), ...waiting.releases];
  };

  const ask = <O, A>(list: Pending<O, A>[], operation: O, when: () => void): Promise<A> =>
    new Promise((resolve, reject) => {
      list.push({ operation, resolve, reject });
      when();
    });
  const askForSomething = <O, A>(list: Pending<O, A>[], operation: O): Promise<A> => {
    const why = membership.whyAway();
    return why === undefined ? ask(list, operation, soon) : Promise.reject(why);
  };

  return {
    hold: (operation) => askForSomething(waiting.holds, operation),
    async load(operation) {
      if (!membership.isOpen()) throw new StaleEpochError('the store is being rebuilt');
      return askForSomething(waiting.loads, operation);
    },
    move: (operation) => askForSomething(waiting.moves, operation),
    settle: (operation) => ask(waiting.settles, operation, later),
    release: (operation) => ask(waiting.releases, operation, later),
    renew(operation) {
      waiting.renewals.push(operation);
      later();
    },
    async flush() {
      await membership.opened();
      sendAgain(Number.POSITIVE_INFINITY);
      await Promise.all(sendAll());
    },
    resume() {
      sendAgain(Number.POSITIVE_INFINITY);
      sendAll();
    },
    refuse(why) {
      const { holds, loads, moves } = waiting;
      for (const { reject } of [...holds.splice(0), ...loads.splice(0), ...moves.splice(0)]) reject(why);
      waiting.renewals.splice(0);
    },
    close() {
      cancelRide?.();
      backOff.cancel();
    },
  };
}

interface Failure {
  readonly cargo: PendingOperations;
  readonly cause: unknown;
}

/** One call. After a `Failure` the result is unknown: operations that may be repeated are. */
async function send(deps: BatchDependencies, cargo: PendingOperations): Promise<Failure | undefined> {
  const { membership } = deps;
  const sentAt = deps.clock.now();
  const epoch = membership.epoch();
  let reply: StoreReply;
  try {
    const call = { ...toCall(cargo, epoch), from: membership.from() };
    const answer = await withTimeout(deps.timer, TIMEOUT, 'the store', deps.store.call(call));
    deps.storeClock.learn(answer.now, sentAt);
    if (answer.outcome === 'epoch') membership.leave(epoch, answer.epoch);
    // What an epoch answered that we have left since is void: its store is empty now, and our holds are registered anew.
    if (answer.outcome === 'epoch' || !membership.isIn(epoch)) throw new StaleEpochError('the store is being rebuilt');
    membership.answered(epoch, answer.calls);
    if (!isComplete(cargo, answer)) throw new Error('the store left an operation without an answer');
    reply = answer;
  } catch (cause) {
    return { cargo, cause: membership.isIn(epoch) ? cause : new StaleEpochError('the store is being rebuilt') };
  }
  deliver(cargo.settles, reply.settles);
  deliver(cargo.releases, reply.releases);
  for (const { resolve } of cargo.loads) resolve();
  deliver(cargo.holds, reply.holds);
  cargo.moves.forEach(({ resolve }, index) => {
    resolve(reply.moves?.[index]);
  });
  if (reply.expired.length > 0) deps.onExpired(reply.expired);
  return undefined;
}

const isComplete = (cargo: PendingOperations, reply: StoreReply): boolean =>
  reply.settles.length === cargo.settles.length &&
  reply.releases.length === cargo.releases.length &&
  reply.holds.length === cargo.holds.length &&
  (reply.moves?.length ?? 0) === cargo.moves.length;

function toCall(cargo: PendingOperations, epoch: number): StoreCall {
  return {
    epoch,
    settles: cargo.settles.map(({ operation }) => operation),
    releases: cargo.releases.map(({ operation }) => operation),
    renewals: cargo.renewals,
    loads: cargo.loads.map(({ operation }) => operation),
    holds: cargo.holds.map(({ operation }) => operation),
    ...(cargo.moves.length === 0 ? {} : { moves: cargo.moves.map(({ operation }) => operation) }),
  };
}

function deliver<O, A>(asked: ReadonlyArray<Pending<O, A>>, answers: ReadonlyArray<A>): void {
  asked.forEach(({ resolve }, index) => {
    const answer = answers[index];
    if (answer !== undefined) resolve(answer);
  });
}
