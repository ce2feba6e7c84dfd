// Calls of the account, one at a time: when they are sent, repeated, and what their answers lead to (LEDGER 3).

import { type AccountCall, type AccountReply, MAX_LINES } from '../ports/accounts.ts';
import type { Millis } from '../ports/money.ts';
import type { Account, Loss } from './account.ts';
import { applyDone, applyRefused, type Done } from './apply.ts';
import { createBackOff } from './back-off.ts';
import { compose, type Pending } from './compose.ts';
import type { CounterState } from './counters.ts';
import { afterPromises, type Clocks, type LedgerDependencies, learnCalls } from './deps.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';
import type { Waiting } from './waiting.ts';

export interface SyncDependencies
  extends Pick<LedgerDependencies, 'accounts' | 'timer' | 'tick' | 'metrics' | 'isolate'>,
    Clocks {
  readonly account: Account;
  readonly waiting: Waiting;
  readonly onDone: (pending: Pending, reply: Done) => void;
  /** These counters are not loaded. */
  readonly onAbsent: (counters: ReadonlyArray<CounterState>) => void;
  /** The account is closed, or the store is another than it was. */
  readonly onLost: (loss: Loss) => void;
}

/** With more requests than these in flight, calls that somebody waits for are this far apart: few ask immediately, many share a call. */
const FEW = 4;
const APART: Millis = 2;
/** A call without anybody who waits for it. */
const NEWS_AFTER: Millis = 25;

export interface Sync {
  /** A request waits for an answer. */
  urgent(): void;
  /** Something changed that nobody waits for. */
  news(): void;
  /** Nothing may have changed: the lease is renewed, and the store looked at. */
  renew(): void;
  /** Tells everything that is not told; throws when the store does not take it. */
  flush(): Promise<void>;
  /** One call. `calls`: the store's count when it was first sent. */
  ask(call: AccountCall, calls?: number): Promise<AccountReply>;
  heardAt(): Millis;
  /** The account was left: the pending call is void. */
  reset(): void;
  close(): void;
}

export function createSync(deps: SyncDependencies): Sync {
  const { account, accounts, clock, wall, timer, tick = afterPromises, waiting, metrics } = deps;
  const backOff = createBackOff(timer, 50, 1000);
  let pending: Pending | undefined;
  let isSending = false;
  let isTicking = false;
  let isRenewal = false;
  let isClosed = false;
  let lastSent = Number.NEGATIVE_INFINITY;
  let heardAt = Number.NEGATIVE_INFINITY;
  let due: Millis = Number.POSITIVE_INFINITY;
  let notBefore = Number.NEGATIVE_INFINITY;
  let cancel = (): void => undefined;
  const flushing: PromiseWithResolvers<void>[] = [];

  const clear = (): void => {
    cancel();
    due = Number.POSITIVE_INFINITY;
  };
  const isReady = (): boolean => !isClosed && account.isOpen && !isSending && !backOff.isPending();
  const sendBy = (wanted: Millis): void => {
    const at = Math.max(wanted, notBefore);
    if (!isReady() || at >= due) return;
    clear();
    due = at;
    const left = at - clock.now();
    if (left > 0) cancel = timer(left, run);
    else if (!isTicking) {
      isTicking = true;
      tick(run);
    }
  };
  const run = (): void => {
    isTicking = false;
    if (!isReady()) return;
    clear();
    pending ??= compose(account, waiting.asks(), isRenewal);
    isRenewal = false;
    if (pending !== undefined) void send(pending);
  };

  const ask = async (call: AccountCall, calls = account.store.calls): Promise<AccountReply> => {
    const [sentAt, sentAtWall] = [clock.now(), wall.now()];
    lastSent = sentAt;
    metrics.add('gateway_operator_ledger_store_calls_total');
    const reply = await withTimeout(timer, TIMEOUT, 'the store', accounts.call(call));
    heardAt = clock.now();
    account.store.ahead = Math.round(reply.now - (sentAt + heardAt) / 2);
    if (account.id !== call.account || reply.outcome === 'epoch' || reply.outcome === 'stale') return reply;
    // A store that was restored from a snapshot shows fewer calls than before.
    if (reply.calls <= calls) return { outcome: 'stale', why: 'behind', now: reply.now, calls: reply.calls };
    learnCalls(account.store, call.epoch, reply.calls);
    Object.assign(account, { sentAt, sentAtWall });
    return reply;
  };

  const send = async (sending: Pending): Promise<void> => {
    isSending = true;
    try {
      const reply = await ask(sending.call, sending.calls);
      // The account was left meanwhile: its calls are void.
      if (pending !== sending) return;
      isSending = false;
      pending = undefined;
      backOff.succeeded();
      answered(sending, reply);
      next();
    } catch (cause) {
      if (pending !== sending) return;
      isSending = false;
      metrics.add('gateway_operator_ledger_store_failures_total');
      for (const { reject } of flushing.splice(0)) reject(cause);
      backOff.failed(run);
    }
  };

  const answered = (sent: Pending, reply: AccountReply): void => {
    if (reply.outcome === 'done') {
      applyDone(account, sent, reply);
      deps.onDone(sent, reply);
      return;
    }
    askAgain(sent);
    if (reply.outcome === 'epoch') deps.onLost('epoch');
    else if (reply.outcome === 'stale') deps.onLost(reply.why);
    else {
      applyRefused(account, sent);
      // Two clocks may disagree about an edge for a moment.
      if (reply.outcome === 'window') notBefore = clock.now() + APART;
      if (reply.outcome === 'absent') deps.onAbsent(reply.absent.flatMap((index) => sent.counters[index] ?? []));
    }
  };
  const askAgain = ({ waiters }: Pending): void => {
    for (const waiter of waiters) {
      waiter.isAsking = false;
      waiting.again(waiter);
    }
  };

  /** Work that has come up while the call was under way. */
  const next = (): void => {
    const isTold = account.untold.length === 0 && account.sent.length === 0;
    if (isTold) for (const { resolve } of flushing.splice(0)) resolve();
    if (waiting.hasAsks() || flushing.length > 0 || account.changed.size > MAX_LINES) sync.urgent();
    else if (account.changed.size > 0 || account.uses.size > 0) sync.news();
  };

  const sync: Sync = {
    urgent: () => sendBy(account.live.length > FEW ? lastSent + APART : clock.now()),
    news() {
      // A visit tells what it did when its request has ended.
      if (deps.isolate === undefined) sendBy(Math.max(lastSent, clock.now()) + NEWS_AFTER);
    },
    renew() {
      isRenewal = true;
      sendBy(clock.now());
    },
    async flush() {
      if (account.untold.length === 0 && account.sent.length === 0) return;
      const told = Promise.withResolvers<void>();
      flushing.push(told);
      sync.urgent();
      await told.promise;
    },
    ask,
    heardAt: () => heardAt,
    reset() {
      if (pending !== undefined) askAgain(pending);
      pending = undefined;
      isSending = false;
      clear();
      backOff.cancel();
    },
    close() {
      isClosed = true;
      clear();
      backOff.cancel();
    },
  };
  return sync;
}
