// Membership of a process in an epoch: its start, its way into an epoch, and its heartbeat (LEDGER 3, 6).

import { withTimeout } from '../concurrency/timeout.ts';
import { reasonOf } from '../failure/error-text.ts';
import type { EpochState } from '../ports/epochs.ts';
import type { JournalRecord } from '../ports/journal.ts';
import type { Millis } from '../ports/money.ts';
import {
  type Account,
  addUnreservedRequest,
  type KnownStore,
  type RejoinReason,
  recordStoreCalls,
  STOPPED_REASON,
} from './account.ts';
import { leaveAccount, loadUsedCounters, openAccount } from './account-opening.ts';
import { bookWithoutAccount, unbookedCount } from './booking.ts';
import type { LedgerContext, Membership } from './context.ts';
import { createFailureLog, guard, logFailure } from './failures.ts';
import { replay } from './journal-replay.ts';
import { dropPreviousAccounts } from './previous-accounts.ts';
import { IDLE_TIMEOUT, pause } from './timeout.ts';

/** The time for which an epoch waits for processes that have not joined. */
const JOIN_TIMEOUT: Millis = 1000;
const POLL_INTERVAL: Millis = 25;
const RETRY_DELAY: Millis = 200;

export function createMembership(context: LedgerContext): Membership {
  const {
    account,
    journal,
    epochs,
    ids,
    processName,
    timer,
    knownStoreOfIsolate,
    log,
    instanceUid: instance,
  } = context;
  const [joins, heartbeats] = [createFailureLog(context, 'join'), createFailureLog(context, 'heartbeat')];
  let isJournalRead = false;
  let hasSentHeartbeat = false;
  let joining: Promise<void> | undefined;
  let pendingHeartbeat: Promise<void> | undefined;
  let cancel = (): void => undefined;

  const joinOnce = async (): Promise<void> => {
    try {
      hasSentHeartbeat = true;
      await join(context);
      account.notOpenReason = '';
      account.whenOpen.resolve();
      dropPreviousAccounts(context);
      context.settlement.onReported();
      context.booking.scheduleBooking();
      context.sync.callNow();
      joins.succeeded();
    } catch (cause) {
      if (!account.isStopping) joins.failed(cause);
      account.notOpenReason = reasonOf(cause);
      retryLater();
      throw new Error('the ledger cannot join the epoch', { cause });
    } finally {
      joining = undefined;
    }
  };
  const retryLater = (): void => {
    if (!account.isStopping) cancel = timer(RETRY_DELAY, () => void tryToJoin());
  };
  const tryToJoin = (): Promise<void> => {
    cancel();
    joining ??= account.isStopping ? Promise.reject(new Error(STOPPED_REASON)) : joinOnce();
    joining.catch(() => undefined);
    return joining;
  };

  const rejoin = (reason: RejoinReason): void => {
    if (!account.isOpen) return;
    Object.assign(account, {
      isOpen: false,
      whenOpen: Promise.withResolvers(),
      isRebuilding: reason !== 'accountClosed',
    });
    account.joinedEpoch = 0;
    if (reason === 'wentBack') account.lostEpoch = account.epoch;
    if (reason === 'accountClosed') {
      const message =
        'ledger: another process has closed the account, because this process made no call for 20 s; the charges for it are corrected';
      log.warn(message, {
        instance,
        account: account.id,
        live: account.requests.reserved.length,
        unbooked: unbookedCount(account),
      });
    }
    context.sync.reset();
    // The next replies might fail in the same way, so the process joins later.
    if (reason === 'error') retryLater();
    else tryToJoin();
    if (reason === 'accountClosed') notifyAccountClosed(context);
  };

  const sendHeartbeatNow = async (): Promise<void> => {
    const { epoch, id } = account;
    const state = await epochs.heartbeat(processName, account.joinedEpoch);
    heartbeats.succeeded();
    if (account.id !== id) return;
    if (state.epoch !== epoch || !state.isOpen) rejoin('epoch');
    else recordStoreCalls(account.knownStore, epoch, state.storeCalls);
  };

  return {
    rejoin,
    /** After a failure the join is repeated automatically. */
    async start(): Promise<void> {
      if (account.isOpen) return;
      if (knownStoreOfIsolate !== undefined && (await isCurrent(context, knownStoreOfIsolate))) {
        Object.assign(account, { id: ids.next(), epoch: knownStoreOfIsolate.epoch, isOpen: true });
        return account.whenOpen.resolve();
      }
      const records = isJournalRead ? [] : await journal.replay();
      if (!isJournalRead) recover(context, records);
      isJournalRead = true;
      await tryToJoin();
      if (knownStoreOfIsolate !== undefined) knownStoreOfIsolate.checkedAt = context.intervalClock.now();
    },
    sendHeartbeat(): void {
      if (account.isOpen && !context.isPerRequest) pendingHeartbeat = sendHeartbeatNow().catch(heartbeats.failed);
    },
    async whenJoined(): Promise<void> {
      cancel();
      await joining?.catch(() => undefined);
    },
    async close(): Promise<void> {
      cancel();
      if (!hasSentHeartbeat) return;
      // A pending heartbeat must not arrive after the end of this process.
      const left = Promise.allSettled([joining, pendingHeartbeat]).then(() => epochs.leave(processName));
      await withTimeout(timer, IDLE_TIMEOUT, 'PostgreSQL', left).catch((error) => logFailure(context, 'stop', error));
    },
  };
}

/**
 * Whether the epoch that an isolate knows is still open, in the store of the isolate: PostgreSQL is asked every two
 * seconds, as by a process with a heartbeat. Throws if the instance has moved to another store. Only an isolate that
 * has known no epoch yet moves the counters to its store.
 */
async function isCurrent({ account, epochs, intervalClock }: LedgerContext, knownStore: KnownStore): Promise<boolean> {
  if (knownStore.epoch === 0) return false;
  const now = intervalClock.now();
  if (now - knownStore.checkedAt < CHECK_INTERVAL) return true;
  const { epoch, isOpen, isOfOtherStore } = await epochs.state();
  if (isOfOtherStore) {
    account.notOpenReason = MOVED;
    throw new Error(MOVED);
  }
  if (epoch !== knownStore.epoch || !isOpen) return false;
  knownStore.checkedAt = now;
  return true;
}

const CHECK_INTERVAL: Millis = 2000;
const MOVED =
  'the counters of the instance are in another counter store now: deploy every Worker of the instance again with the address of that counter store';

/** Notifies live requests that other requests may have reserved their money. */
function notifyAccountClosed(context: LedgerContext): void {
  for (const { id, onAccountClosed } of [...context.account.requests.reserved])
    guard(context, 'notice', () => onAccountClosed?.(), { id });
}

/** Recovers the journal of an earlier process: its accounts are closed, and its requests booked by their ids. */
function recover({ account, journal, intervalClock, log }: LedgerContext, records: ReadonlyArray<JournalRecord>): void {
  const { accounts, rows, unneeded } = replay(records, account.now());
  for (const id of accounts) account.previousAccounts.set(id, undefined);
  for (const row of rows) addUnreservedRequest(account, { row, endedAt: intervalClock.now() });
  journal.drop(unneeded);
  if (records.length > 0) log.info('ledger: recovered the journal', { rows: rows.length });
}

/**
 * Resolves when the epoch is open and joined. Throws when PostgreSQL or the store do not reply; may be called again.
 */
async function join(context: LedgerContext): Promise<void> {
  const { account, epochs, timer, processName, metrics } = context;
  for (;;) {
    if (account.isStopping) throw new Error(STOPPED_REASON);
    if (account.lostEpoch !== undefined) await raiseOrReconnect(context, account.lostEpoch);
    const state = await epochs.heartbeat(processName, account.joinedEpoch);
    if (state.epoch === 0) account.lostEpoch = 0;
    else if (state.isOfOtherStore) await moveToOwnStore(context, state);
    else if (account.joinedEpoch !== state.epoch) {
      // The account may belong to an epoch that was raised again before it was open.
      if (account.id !== '') leaveAccount(context);
      if (await openAccount(context, state)) account.joinedEpoch = state.epoch;
      else if (isAtOtherServer(account, state)) account.lostEpoch = state.epoch;
      else if (account.lostEpoch === undefined) await pause(timer, POLL_INTERVAL);
    } else if (state.isOpen) break;
    else if (state.liveOnOtherStores > 0 || (state.notJoined > 0 && state.age < JOIN_TIMEOUT))
      await pause(timer, POLL_INTERVAL);
    else {
      await epochs.open(state.epoch);
      metrics.add('gateway_operator_ledger_rebuilds_total');
    }
  }
  if (account.isRebuilding) await loadUsedCounters(context);
  account.isRebuilding = false;
  account.isOpen = true;
}

/**
 * The epoch belongs to another store: the store of the instance was replaced while processes run. The store of the
 * process that has started last wins. A process with an earlier store books requests that have ended, and does not
 * serve while a later process lives; a process with the latest store raises the epoch, if its store takes writes.
 */
async function moveToOwnStore(context: LedgerContext, { epoch, hasLaterProcess }: EpochState): Promise<void> {
  const { account, log, knownStoreOfIsolate, instanceUid: instance } = context;
  if (account.id !== '') leaveAccount(context);
  if (knownStoreOfIsolate !== undefined && knownStoreOfIsolate.epoch > 0) throw new Error(MOVED);
  if (!hasLaterProcess) {
    await raise(context, epoch);
    return log.warn(
      'ledger: this process moves the counters to another counter store, and builds them from PostgreSQL',
      { instance, previousEpoch: epoch },
    );
  }
  await bookWhileWaiting(context);
  throw new Error(
    'a process that started later uses another counter store than this process. During a rollout, wait until this process is stopped. If you planned none, restore the previous host and port in the Secret of redisSecretRef',
  );
}

/**
 * Raises the epoch, unless another process does. The process that raises the epoch begins it in its store. If its store
 * takes no writes (a replica, a full Redis), this throws before, so that the other processes stay in the present epoch.
 */
async function raise({ account, counterStore, epochs }: LedgerContext, from: number): Promise<void> {
  await counterStore.begin(0, true);
  account.raisedEpoch = (await epochs.raise(from, account.storeEpoch)) ?? account.raisedEpoch;
}

async function bookWhileWaiting(context: LedgerContext): Promise<void> {
  const { requests, previousAccounts } = context.account;
  if (requests.unbookedCount() > 0 || previousAccounts.size > 0) await bookWithoutAccount(context);
}

/**
 * Whether the store lacks an epoch that another process has raised and begun elsewhere. The process that has raised it
 * may need a moment to begin it.
 */
function isAtOtherServer(
  { storeEpoch, raisedEpoch }: Account,
  { epoch, isOpen, age, hasLaterProcess }: EpochState,
): boolean {
  return !isOpen && raisedEpoch !== epoch && storeEpoch < epoch && (hasLaterProcess || age >= JOIN_TIMEOUT);
}

/**
 * Raises the epoch because the store has lost state. If this process has never found the epoch in its store, the
 * address may lead to another server now than the connection of this process, or than the connections of others: the
 * process connects again first. Then it raises the epoch, unless a process that started later is in that epoch.
 */
async function raiseOrReconnect(context: LedgerContext, from: number): Promise<void> {
  const { account, counterStore, epochs, log, instanceUid: instance } = context;
  if (from > 0 && from !== account.foundEpoch) {
    if (account.reconnectedEpoch !== from) {
      Object.assign(account, { lostEpoch: undefined, reconnectedEpoch: from });
      return counterStore.reconnect();
    }
    const state = await epochs.state();
    if (state.epoch === from && state.hasLaterProcess && !state.isOfOtherStore) {
      Object.assign(account, { lostEpoch: undefined, reconnectedEpoch: 0 });
      await bookWhileWaiting(context);
      throw new Error(
        'a process that started later uses another server behind the address of the counter store: check that the address leads to one server only',
      );
    }
  }
  await raise(context, from);
  account.lostEpoch = undefined;
  // The first epoch has lost nothing.
  if (from > 0)
    log.warn('ledger: the counter store has lost state, and is rebuilt from PostgreSQL', { instance, lostEpoch: from });
}
