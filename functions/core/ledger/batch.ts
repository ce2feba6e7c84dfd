// Batches: the operations of many requests share one call to the store. Holds of a tick go together; settlements wait for them up to 5 ms (LEDGER 11).
import type { Millis } from '../ports/money.ts';
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
  StoreCall,
  StoreReply,
} from '../ports/store.ts';
import { createBackOff } from './back-off.ts';
import type { LedgerDependencies } from './deps.ts';
import type { Membership } from './membership.ts';
import { isEmpty, noOperations, type Pending, type PendingOperations, takeFitting } from './pending-operations.ts';
import type { StoreClock } from './store-clock.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface Batch {
  /** Rejects when it is unknown whether the hold was taken. Waits while the store is rebuilt. */
  hold(operation: HoldOperation): Promise<HoldAnswer>;
  /** Repeated until acknowledged. */
  settle(operation: SettleOperation): Promise<SettleAnswer>;
  /** Repeated until acknowledged. */
  release(operation: ReleaseOperation): Promise<ReleaseAnswer>;
  /** Rejects when it is unknown whether the move was done. */
  move(operation: MoveOperation): Promise<MoveAnswer>;
  /** Sent once: the next heartbeat renews again. */
  renew(operation: StoreCall['renewals'][number]): void;
  /** Rejects when it is unknown whether the load was done, and with a `StaleEpochError` when the store is rebuilt: the sum that was read is stale. */
  load(operation: Load): Promise<void>;
  /** Sends all waiting operations immediately; throws when the store did not take them. */
  flush(): Promise<void>;
  /** Sends what waited for a rebuild or for an absent store. */
  resume(): void;
  /** Refuses waiting holds, loads and moves with this reason: the store cannot be rebuilt now. */
  refuse(why: unknown): void;
  close(): void;
}

/** The store is in another epoch than the call. */
export class StaleEpochError extends Error {
  override readonly name = 'StaleEpochError';
}

export interface BatchDependencies extends Pick<LedgerDependencies, 'store' | 'clock' | 'timer' | 'metrics'> {
  readonly membership: Membership;
  readonly storeClock: StoreClock;
  readonly tick: (callback: () => void) => void;
  readonly onExpired: (expired: ReadonlyArray<Expired>) => void;
  /** The store answers for the first time since then: leases renewed before that may have ended. */
  readonly onGap: (since: Millis) => void;
}

const FLUSH_AFTER: Millis = 5;
/** A lease of 60 s, renewed up to 15 s before the last answer, may end after this (lease.ts, acquire.ts). */
const LEASES_MAY_END: Millis = 44_000;
const PROBE = 32;

export function createBatch(deps: BatchDependencies): Batch {
  const { membership } = deps;
  const waiting = noOperations();
  const unacknowledged = noOperations();
  const backOff = createBackOff(deps.timer, 100, 1000);
  let answered = { epoch: membership.epoch(), at: deps.clock.now() };
  let ticking = false;
  let cancelFlush: (() => void) | undefined;

  const flushLater = (): void => {
    if (ticking || cancelFlush !== undefined) return;
    cancelFlush = deps.timer(FLUSH_AFTER, () => {
      cancelFlush = undefined;
      sendAll();
    });
  };
  const flushThisTick = (): void => {
    if (ticking) return;
    ticking = true;
    deps.tick(() => {
      ticking = false;
      sendAll();
    });
  };

  const sendAll = (): Promise<void>[] => {
    cancelFlush?.();
    cancelFlush = undefined;
    const sent: Promise<void>[] = [];
    while (!isEmpty(waiting) && membership.isOpen()) {
      const sending = send(deps, takeFitting(waiting)).then((failure) =>
        failure === undefined ? succeeded() : failed(failure),
      );
      // Only a flush waits for the call; other callers wait for their own operation.
      sending.catch(() => undefined);
      sent.push(sending);
    }
    return sent;
  };

  /** A gap counts within one epoch only: holds of an earlier one are registered again, with new leases. */
  const noteAnswer = (): void => {
    const before = answered;
    answered = { epoch: membership.epoch(), at: deps.clock.now() };
    if (before.epoch === answered.epoch && answered.at - before.at >= LEASES_MAY_END) deps.onGap(before.at);
  };
  const succeeded = (): void => {
    noteAnswer();
    backOff.succeeded();
    if (isEmpty(unacknowledged)) return;
    sendAgain(Number.POSITIVE_INFINITY);
    flushLater();
  };
  const failed = (failure: Failure): never => {
    if (failure.cause instanceof StaleEpochError) return putBack(failure.operations, failure.cause);
    deps.metrics.add('gateway_operator_ledger_store_failures_total');
    unacknowledged.settles.push(...failure.operations.settles);
    unacknowledged.releases.push(...failure.operations.releases);
    // One call finds out whether the store is back; the others follow.
    backOff.failed(() => {
      sendAgain(PROBE);
      sendAll();
    });
    const { loads, holds, moves } = failure.operations;
    for (const { reject } of [...loads, ...holds, ...moves]) reject(failure.cause);
    throw failure.cause;
  };
  /** A stale call had no lasting effect: its operations are sent again in the next epoch. */
  const putBack = ({ settles, releases, holds, moves, loads }: PendingOperations, cause: StaleEpochError): never => {
    waiting.settles.unshift(...settles);
    waiting.releases.unshift(...releases);
    waiting.holds.unshift(...holds);
    waiting.moves.unshift(...moves);
    for (const { reject } of [...loads, ...waiting.loads.splice(0)]) reject(cause);
    if (membership.isOpen()) flushLater();
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
    return why === undefined ? ask(list, operation, flushThisTick) : Promise.reject(why);
  };

  return {
    hold: (operation) => askForSomething(waiting.holds, operation),
    async load(operation) {
      if (!membership.isOpen()) throw new StaleEpochError('the store is being rebuilt');
      return askForSomething(waiting.loads, operation);
    },
    move: (operation) => askForSomething(waiting.moves, operation),
    settle: (operation) => ask(waiting.settles, operation, flushLater),
    release: (operation) => ask(waiting.releases, operation, flushLater),
    renew(operation) {
      waiting.renewals.push(operation);
      flushLater();
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
      cancelFlush?.();
      backOff.cancel();
    },
  };
}

interface Failure {
  readonly operations: PendingOperations;
  readonly cause: unknown;
}

/** Sends one call. After a `Failure` its result is unknown, and repeatable operations are sent again. */
async function send(deps: BatchDependencies, operations: PendingOperations): Promise<Failure | undefined> {
  const { membership } = deps;
  const sentAt = deps.clock.now();
  const epoch = membership.epoch();
  let reply: StoreReply;
  try {
    const call = { ...toCall(operations, epoch), from: membership.from() };
    const answer = await withTimeout(deps.timer, TIMEOUT, 'the store', deps.store.call(call));
    deps.storeClock.learn(answer.now, sentAt);
    if (answer.outcome === 'epoch') membership.leave(epoch, answer.epoch);
    // An answer from an epoch that this process has left is void: that store is empty now, and live holds are registered again.
    if (answer.outcome === 'epoch' || !membership.isIn(epoch)) throw new StaleEpochError('the store is being rebuilt');
    membership.answered(epoch, answer.calls);
    if (!isComplete(operations, answer)) throw new Error('the store left an operation without an answer');
    reply = answer;
  } catch (cause) {
    return { operations, cause: membership.isIn(epoch) ? cause : new StaleEpochError('the store is being rebuilt') };
  }
  deliver(operations.settles, reply.settles);
  deliver(operations.releases, reply.releases);
  for (const { resolve } of operations.loads) resolve();
  deliver(operations.holds, reply.holds);
  operations.moves.forEach(({ resolve }, index) => {
    resolve(reply.moves?.[index]);
  });
  if (reply.expired.length > 0) deps.onExpired(reply.expired);
  return undefined;
}

const isComplete = (operations: PendingOperations, reply: StoreReply): boolean =>
  reply.settles.length === operations.settles.length &&
  reply.releases.length === operations.releases.length &&
  reply.holds.length === operations.holds.length &&
  (reply.moves?.length ?? 0) === operations.moves.length;

function toCall(operations: PendingOperations, epoch: number): StoreCall {
  return {
    epoch,
    settles: operations.settles.map(({ operation }) => operation),
    releases: operations.releases.map(({ operation }) => operation),
    renewals: operations.renewals,
    loads: operations.loads.map(({ operation }) => operation),
    holds: operations.holds.map(({ operation }) => operation),
    ...(operations.moves.length === 0 ? {} : { moves: operations.moves.map(({ operation }) => operation) }),
  };
}

function deliver<O, A>(asked: ReadonlyArray<Pending<O, A>>, answers: ReadonlyArray<A>): void {
  asked.forEach(({ resolve }, index) => {
    const answer = answers[index];
    if (answer !== undefined) resolve(answer);
  });
}
