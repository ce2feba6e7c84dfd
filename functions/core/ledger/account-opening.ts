// Opens an account for a process: ended requests that PostgreSQL has are dropped, and everything else is reported
// (LEDGER 3, 6).

import { type AccountCall, type AccountReply, MAX_COUNTERS } from '../ports/counter-store.ts';
import type { EpochState } from '../ports/epochs.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type Account, dropUnreported, resetAccount, takeEndedRequests } from './account.ts';
import { applyDone, beginCall, takeCounterChange, takeRateChanges } from './account-call.ts';
import { finishAccount } from './account-closing.ts';
import { book } from './booking.ts';
import type { LedgerContext } from './context.ts';
import { load } from './counter-loading.ts';
import type { CounterState } from './counters.ts';
import { append } from './journal-records.ts';
import { addCorrections, closePreviousAccounts, recordStoreEpoch } from './previous-accounts.ts';
import { toTransactions } from './requests.ts';

/**
 * Closes previous accounts and reports everything under a new account. False: the epoch is over, the store does not
 * have the epoch (yet), or the account could not be opened.
 */
export async function openAccount(
  context: LedgerContext,
  { epoch, isOpen: isEpochOpen, storeCalls }: EpochState,
): Promise<boolean> {
  const { account, counterStore, ids, isPerRequest } = context;
  const { knownStore } = account;
  account.isRebuilding = !isEpochOpen && epoch > 1;
  if (!isEpochOpen) {
    // The process that has raised the epoch empties its store and begins the epoch there. The other processes must find
    // the epoch in their stores.
    const storeEpoch = await counterStore.begin(epoch, account.raisedEpoch === epoch);
    if (storeEpoch > epoch) return recordStoreEpoch(account, epoch, storeEpoch);
    account.storeEpoch = storeEpoch;
    if (storeEpoch < epoch) return false;
    account.raisedEpoch = 0;
  }
  Object.assign(knownStore, {
    epoch,
    storeCalls: knownStore.epoch === epoch ? Math.max(knownStore.storeCalls, storeCalls) : storeCalls,
  });
  const accountsToForget = await closePreviousAccounts(context, epoch, !isEpochOpen);
  if (accountsToForget === undefined) return false;
  await addCorrections(context);
  if (!(await dropBooked(context, epoch, isEpochOpen))) return false;
  const id = ids.next();
  // The journal names every account of its process, so that a successor closes and corrects it. Without a disk no
  // process can correct the account: its charge stays.
  if (!isPerRequest && !account.hasNoJournal) await append(context, { type: 'account', id });
  Object.assign(account, { id, epoch });
  const isReported =
    (await reportAll(context, isEpochOpen, accountsToForget)) &&
    (await finishPrevious(context, epoch, accountsToForget)) &&
    (await reportRates(context));
  if (isReported) account.foundEpoch = epoch;
  else leaveAccount(context);
  return isReported;
}

/** The interval of renewals of the lease while a previous account is finished. */
const RENEWAL: Millis = 1000;

/**
 * Finishes previous accounts, which may have hundreds of pages. Calls between them renew the lease of the new account,
 * which makes no other calls before it is open. False: the new account is over.
 */
async function finishPrevious(
  context: LedgerContext,
  epoch: number,
  previousAccounts: ReadonlyArray<string>,
): Promise<boolean> {
  const { account, intervalClock } = context;
  let isLive = true;
  const onPage = async (): Promise<void> => {
    if (!isLive || intervalClock.now() - account.sentAt < RENEWAL) return;
    isLive = (await send(context, beginCall(account))).outcome === 'done';
  };
  for (const previous of previousAccounts) {
    await finishAccount(context, { epoch, account: previous, isCharged: true }, { onPage });
    if (!isLive) return false;
  }
  return true;
}

/** Sends a call of an account that is not open yet, and applies its reply. */
async function send(
  context: LedgerContext,
  call: AccountCall,
  counters: ReadonlyArray<CounterState> = [],
): Promise<AccountReply> {
  const { account } = context;
  const reply = await context.sync.call(call);
  if (reply.outcome === 'done') applyDone(account, { call, counters, waiters: [] }, reply);
  if (reply.outcome === 'epoch') recordStoreEpoch(account, account.epoch, reply.epoch);
  if (reply.outcome === 'stale' && reply.why === 'wentBack') account.lostEpoch = account.epoch;
  return reply;
}

/**
 * Drops the rows that PostgreSQL has: they are not reported again. Before the epoch is open, PostgreSQL gets all rows
 * by their ids, and the store loads its sums. False: the epoch was opened or raised meanwhile.
 */
async function dropBooked(context: LedgerContext, epoch: number, isEpochOpen: boolean): Promise<boolean> {
  const { account, database, journal } = context;
  const { requests } = account;
  const rows = requests.in('unreported').map(({ row }) => row);
  if (rows.length === 0) return true;
  for (const portion of isEpochOpen ? [] : toTransactions(rows))
    if ((await book(context, { epoch, rows: portion })) !== 'booked') return false;
  const bookedById = isEpochOpen ? await database.bookedOf(rows.map(({ id }) => id)) : undefined;
  const isBooked = ({ id, kind }: LedgerRow) =>
    bookedById === undefined || bookedById.get(id)?.some((row) => row.kind === kind);
  const bookedRows = new Set(rows.filter(isBooked));
  dropUnreported(account, bookedRows);
  journal.drop([...bookedRows].map(({ id }) => id));
  return true;
}

/**
 * Loads the counters of live reservations into the empty store of a new epoch. Without this, the first call for each of
 * them would find it absent. Call it only when the epoch is open: before that, other processes book rows by their ids,
 * and the sums would lack these rows.
 */
export async function loadUsedCounters(context: LedgerContext): Promise<void> {
  const { account } = context;
  const used = [...account.counters.all()].filter(({ reservations }) => reservations > 0);
  for (let from = 0; from < used.length; from += LOADED_TOGETHER) {
    const windows = used.slice(from, from + LOADED_TOGETHER).map(({ scopeWindow }) => scopeWindow);
    await load(context, account.epoch, windows);
  }
}

/** The sums that one query reads. */
const LOADED_TOGETHER = 5000;
/** The maximum number of loads of the same counters, which a store may lose again. Then the process joins again. */
const MAX_LOADS = 5;

/**
 * Reports everything in the first calls of the account: live reservations whatever the limits are, settlements and
 * corrections, all of a counter in one call. The same call forgets the figures of previous accounts in the counter:
 * until then their escrow stays set aside, so that other processes cannot spend it. Without that, no limit would be
 * exceeded, but the counter would have set aside too much until the accounts are forgotten (guarantee 7). Before the
 * epoch is open no spend is reported, since no process reads sums; requests that have ended since then keep their
 * escrow until the epoch is open.
 */
async function reportAll(
  context: LedgerContext,
  isEpochOpen: boolean,
  accountsToForget: ReadonlyArray<string>,
): Promise<boolean> {
  const { account } = context;
  if (isEpochOpen) takeEndedRequests(account);
  const laterSpend = laterSpendOf(account);
  const remaining = [...account.counters.all()].filter(
    (counter) =>
      counter.reservations > 0 ||
      counter.spend.inCall !== 0n ||
      counter.spend.unreported > 0n ||
      laterSpend.has(counter),
  );
  let loads = 0;
  do {
    const counters = remaining.splice(0, MAX_COUNTERS);
    const changes = counters.map((counter) => {
      const { limit, liveAmount, spend } = counter;
      const carriedOver = limit === undefined ? 0n : liveAmount + (spend.unreported > 0n ? spend.unreported : 0n);
      const change = takeCounterChange(account, counter, false);
      const later = laterSpend.get(counter) ?? [];
      const spendOfFirst = later.reduce((sum, part) => sum - part.spend, change.spend);
      return { ...change, carriedOver, spend: spendOfFirst, laterSpend: later };
    });
    const call: AccountCall = { ...beginCall(account), changes, accountsToForget };
    const reply = await send(context, call, counters);
    if (reply.outcome === 'done') loads = 0;
    else if (reply.outcome === 'absent' && loads < MAX_LOADS) {
      loads += 1;
      const absent = reply.absent.flatMap((index) => counters[index]?.scopeWindow ?? []);
      await load(context, account.epoch, absent);
      remaining.unshift(...counters);
    } else return false;
  } while (remaining.length > 0);
  return true;
}

/**
 * Reports the requests in flight: other requests may take their place as soon as the epoch is open. Call it when the
 * previous accounts are finished, in which they count until then.
 */
async function reportRates(context: LedgerContext): Promise<boolean> {
  const { account } = context;
  while (account.rateChanges.size > 0)
    if ((await send(context, { ...beginCall(account), rateChanges: takeRateChanges(account) })).outcome !== 'done')
      return false;
  return true;
}

/** The spend of each counter in the second and later batches of a new account, each of which is one transaction. */
function laterSpendOf({ requests, openBatchNumber }: Account) {
  const all = new Map<CounterState, { readonly batch: number; spend: Nano }[]>();
  const ended = requests.in('inCall');
  const batches = toTransactions(ended.map(({ row }) => row)).entries();
  const batchOf = new Map([...batches].flatMap(([index, rows]) => rows.map((row) => [row, openBatchNumber + index])));
  for (const { row, counters } of ended) {
    const batch = batchOf.get(row) ?? openBatchNumber;
    for (const counter of batch === openBatchNumber ? [] : counters) {
      const parts = all.get(counter) ?? [];
      all.set(counter, parts);
      const last = parts.at(-1);
      if (last?.batch === batch) last.spend += row.cost;
      else parts.push({ batch, spend: row.cost });
    }
  }
  return all;
}

/** Leaves the account; the process closes it itself when it joins again, or when it books without an account. */
export function leaveAccount({ account }: LedgerContext): void {
  if (account.callNumber > 0) account.previousAccounts.set(account.id, undefined);
  account.joinedEpoch = 0;
  resetAccount(account);
}
