// The way of a process into an epoch and an account: its earlier accounts are closed, and what it holds and owes is told (LEDGER 3, 6).

import { type AccountReply, MAX_LINES } from '../ports/accounts.ts';
import type { Entry } from '../ports/books.ts';
import type { EpochState } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { type Ended, leave, oweAgain, take, unbookedOf } from './account.ts';
import { applyDone, toCall } from './account-call.ts';
import { book } from './booking.ts';
import type { Context } from './context.ts';
import { toCorrection } from './entries.ts';
import { load } from './loads.ts';
import { closeAccount } from './maintain.ts';
import { pause } from './timeout.ts';

/** A process that has not joined by then is not waited for. */
const JOIN_TIMEOUT: Millis = 1000;
const LOOK_AGAIN: Millis = 25;

/** Resolves when the epoch is open and joined. Throws when PostgreSQL or the store do not reply; may be called again. */
export async function join(context: Context): Promise<void> {
  const { account, epochs, timer, process, metrics } = context;
  for (;;) {
    if (account.lostIn !== undefined) await raise(context, account.lostIn);
    const state = await epochs.beat(process, account.joined);
    if (state.epoch === 0) account.lostIn = 0;
    else if (account.joined !== state.epoch) {
      // Also an account of an epoch that was raised again before it was open.
      if (account.id !== '') abandon(context);
      if (await enter(context, state)) account.joined = state.epoch;
      else if (account.lostIn === undefined) await pause(timer, LOOK_AGAIN);
    } else if (state.isOpen) break;
    else if (state.awaited > 0 && state.age < JOIN_TIMEOUT) await pause(timer, LOOK_AGAIN);
    else {
      await epochs.open(state.epoch);
      metrics.add('gateway_operator_ledger_rebuilds_total');
    }
  }
  account.isRebuilding = false;
  account.isOpen = true;
}

/** The account is left for another one; its process closes it itself. */
function abandon({ account }: Context): void {
  if (account.number > 0) account.earlier.set(account.id, undefined);
  account.joined = 0;
  leave(account);
}

/** The first epoch of an instance is not a loss. */
async function raise({ account, epochs, log, instanceUid: instance }: Context, from: number): Promise<void> {
  await epochs.raise(from, account.storeEpoch);
  account.lostIn = undefined;
  if (from > 0) log.warn('the store has forgotten: it is rebuilt from PostgreSQL', { instance, epoch: from });
}

/** Closes earlier accounts and tells everything under a new one. False: the epoch is over, or the account could not be opened. */
async function enter(context: Context, { epoch, isOpen, calls }: EpochState): Promise<boolean> {
  const { account, accounts, ids, outbox, isolate } = context;
  const { store } = account;
  account.isRebuilding = !isOpen && epoch > 1;
  if (!isOpen) {
    // The epoch was raised: the store starts empty.
    const storeEpoch = await accounts.begin(epoch);
    if (storeEpoch !== epoch) return isElsewhere(context, epoch, storeEpoch);
  }
  Object.assign(store, { epoch, calls: store.epoch === epoch ? Math.max(store.calls, calls) : calls });
  const ends = await closeEarlier(context, epoch, !isOpen);
  if (ends === undefined) return false;
  await oweCorrections(context);
  if (!(await dropBooked(context, epoch, isOpen))) return false;
  const id = ids.next();
  // The outbox names every account of its process, so that a successor closes and corrects it.
  if (isolate === undefined) await outbox.append({ type: 'account', id });
  Object.assign(account, { id, epoch });
  if (await tellAll(context, isOpen, ends)) return true;
  abandon(context);
  return false;
}

/** The store is in another epoch than PostgreSQL, unless that was raised meanwhile. */
function isElsewhere({ account }: Context, epoch: number, storeEpoch: number): false {
  account.storeEpoch = storeEpoch;
  account.lostIn = epoch;
  return false;
}

/** Closes earlier accounts, in the store and in PostgreSQL; returns those that the store has until the next account's call ends them. */
async function closeEarlier(context: Context, epoch: number, isRebuild: boolean): Promise<string[] | undefined> {
  const ends: string[] = [];
  for (const account of context.account.earlier.keys()) {
    const closed = await closeAccount(context, { epoch, account, isOwn: true, isRebuild });
    if (closed?.outcome === 'epoch') isElsewhere(context, epoch, closed.epoch);
    if (closed?.outcome === 'behind') context.account.lostIn = epoch;
    if (closed?.outcome !== 'closed') return undefined;
    if (closed.figures === undefined) continue;
    // Charges from before an epoch is open are in the sums that are loaded then.
    if (isRebuild) await context.accounts.finish(epoch, account, false);
    // One that a clean stop closed has booked more than it told: it is left to an audit by whoever closes ended accounts.
    else if (closed.row.isCharged) ends.push(account);
  }
  return ends;
}

/** Charges in the name of earlier accounts are taken back: their requests are booked by their ids. */
async function oweCorrections({ account, books, clock }: Context): Promise<void> {
  const { earlier } = account;
  if (earlier.size === 0) return;
  const charges = await books.charges([...earlier.keys()]);
  const owed = (): Ended[] => unbookedOf(account).filter(({ entry }) => entry.kind === 'correction');
  const known = new Set(owed().map(({ entry }) => entry.id));
  for (const charge of charges)
    if (!known.has(charge.id)) oweAgain(account, { entry: toCorrection(charge, account.now()), since: clock.now() });
  const corrections = owed();
  for (const id of earlier.keys()) earlier.set(id, corrections);
}

/**
 * Entries that PostgreSQL has are not told again. Before the epoch is open it gets all of them, by their ids, and the store learns them from it.
 * False: the epoch is open, or over.
 */
async function dropBooked(context: Context, epoch: number, isOpen: boolean): Promise<boolean> {
  const { account, books, outbox } = context;
  const entries = account.untold.map(({ entry }) => entry);
  if (entries.length === 0) return true;
  if (!isOpen && (await book(context, { epoch, entries })) !== 'booked') return false;
  const known = isOpen ? await books.bookedOf(entries.map(({ id }) => id)) : undefined;
  const isBooked = ({ id, kind }: Entry) => known === undefined || known.get(id)?.some((one) => one.kind === kind);
  const booked = new Set(entries.filter(isBooked));
  for (const { entry, counters, cover } of account.untold) {
    if (!booked.has(entry)) continue;
    for (const counter of counters) {
      counter.owed -= entry.cost;
      counter.uncovered -= cover;
    }
  }
  account.untold = account.untold.filter(({ entry }) => !booked.has(entry));
  outbox.done([...booked].map(({ id }) => id));
  return true;
}

/**
 * The first calls of the account: live holds whatever the limits say, settlements and corrections, all of a counter in one call. The last one ends the
 * earlier accounts. Before the epoch is open nothing is told as spent: nobody reads sums then. Requests that
 * have ended since keep their escrow till the opening.
 */
async function tellAll(context: Context, isOpen: boolean, ends: ReadonlyArray<string>): Promise<boolean> {
  const { account } = context;
  if (isOpen) for (const ended of account.untold.splice(0)) take(account, ended);
  const rest = [...account.counters.all()].filter(({ holds, owed, sent }) => holds > 0 || sent !== 0n || owed > sent);
  do {
    const counters = rest.splice(0, MAX_LINES);
    const lines = counters.map(({ counter, limit, sent, risk, live, owed }) => ({
      ...{ ...counter, limit, spend: sent, risk, returned: 0n, ahead: 0n },
      registered: limit === undefined ? 0n : live + (owed > sent ? owed - sent : 0n),
    }));
    for (const counter of counters) counter.sentRisk = counter.risk;
    const call = { ...toCall(account), lines, ends: rest.length === 0 ? ends : [] };
    const reply = await context.ask(call);
    if (reply.outcome === 'done') applyDone(account, { call, counters, waiters: [], calls: 0 }, reply);
    else if (reply.outcome === 'absent') {
      const absent = reply.absent.flatMap((index) => counters[index]?.counter ?? []);
      await load(context, account.epoch, absent);
      rest.unshift(...counters);
    } else return failed(context, reply);
  } while (rest.length > 0);
  return true;
}

function failed(context: Context, reply: AccountReply): false {
  const { epoch } = context.account;
  if (reply.outcome === 'epoch') return isElsewhere(context, epoch, reply.epoch);
  if (reply.outcome === 'stale' && reply.why === 'behind') context.account.lostIn = epoch;
  return false;
}
