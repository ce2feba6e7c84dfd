// The way of a process into an epoch and an account: its earlier accounts are closed, and what it holds and owes is told (LEDGER 3, 6).

import { type AccountCall, type AccountReply, MAX_LINES } from '../ports/accounts.ts';
import type { EpochState } from '../ports/epochs.ts';
import type { Millis } from '../ports/money.ts';
import { type Account, type Ended, leave, owe, take, unbookedOf } from './account.ts';
import { applyDone } from './apply.ts';
import { reportRejected } from './booking.ts';
import { freeze } from './closing.ts';
import { toCall } from './compose.ts';
import type { LedgerDependencies } from './deps.ts';
import { toCorrection } from './entry.ts';
import { load } from './loads.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface JoinDependencies extends LedgerDependencies {
  readonly account: Account;
  /** The name of its heartbeat. */
  readonly process: string;
  readonly progress: JoinProgress;
  readonly ask: (call: AccountCall) => Promise<AccountReply>;
}

export interface JoinProgress {
  /** The epoch in which the present account has told what it holds; 0: none. */
  joined: number;
  /** The epoch in which the store is not what it was: it must be raised. */
  lostIn: number | undefined;
  /** The epoch that the store last answered. */
  storeEpoch: number;
  /** Requests wait longer. */
  isRebuilding: boolean;
  /** Earlier accounts of this process and of its outbox, with the corrections that are not booked yet; undefined: not closed yet. */
  readonly own: Map<string, ReadonlyArray<Ended> | undefined>;
}

/** A process that has not joined by then is not waited for. */
const JOIN_TIMEOUT: Millis = 1000;
const LOOK_AGAIN: Millis = 25;

/** Resolves when the epoch is open and joined. Throws when PostgreSQL or the store do not reply; may be called again. */
export async function join(deps: JoinDependencies): Promise<void> {
  const { progress, account, epochs, timer, process, metrics } = deps;
  const inTime = <T>(asked: Promise<T>): Promise<T> => withTimeout(timer, TIMEOUT, 'PostgreSQL', asked);
  for (;;) {
    if (progress.lostIn !== undefined) await raise(deps, progress.lostIn);
    const state = await inTime(epochs.beat(process, progress.joined));
    if (state.epoch === 0) progress.lostIn = 0;
    else if (progress.joined !== state.epoch) {
      // Also an account of an epoch that was raised again before it was open.
      if (account.id !== '') abandon(deps);
      if (await enter(deps, state)) progress.joined = state.epoch;
      else if (progress.lostIn === undefined) await pause(deps);
    } else if (state.isOpen) break;
    else if (state.awaited > 0 && state.age < JOIN_TIMEOUT) await pause(deps);
    else {
      await inTime(epochs.open(state.epoch));
      metrics.add('gateway_operator_ledger_rebuilds_total');
    }
  }
  progress.isRebuilding = false;
  account.isOpen = true;
}

const pause = ({ timer }: JoinDependencies): Promise<void> => new Promise((resolve) => void timer(LOOK_AGAIN, resolve));

/** The account is left for another one; its process closes it itself. */
function abandon({ account, progress }: JoinDependencies): void {
  if (account.number > 0) progress.own.set(account.id, undefined);
  progress.joined = 0;
  leave(account);
}

/** The first epoch of an instance is not a loss. */
async function raise({ epochs, timer, log, instanceUid, progress }: JoinDependencies, from: number): Promise<void> {
  await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.raise(from, progress.storeEpoch));
  progress.lostIn = undefined;
  if (from > 0)
    log.warn('the store has forgotten: it is rebuilt from PostgreSQL', { instance: instanceUid, epoch: from });
}

/** Closes earlier accounts and tells everything under a new one. False: the epoch is over, or the account could not be opened. */
async function enter(deps: JoinDependencies, { epoch, isOpen, calls }: EpochState): Promise<boolean> {
  const { account, progress, ids, outbox, isolate } = deps;
  const { store } = account;
  progress.isRebuilding = !isOpen && epoch > 1;
  if (!isOpen && !(await empty(deps, epoch))) return false;
  Object.assign(store, { epoch, calls: store.epoch === epoch ? Math.max(store.calls, calls) : calls });
  const ends = await closeOwn(deps, epoch, !isOpen);
  if (ends === undefined) return false;
  await owesCorrections(deps);
  await dropBooked(deps);
  if (!isOpen && !(await bookByIds(deps, epoch))) return false;
  const id = ids.next();
  // The outbox names every account of its process, so that a successor closes and corrects it.
  if (isolate === undefined) await outbox.append({ type: 'account', id });
  Object.assign(account, { id, epoch });
  if (await tellAll(deps, isOpen, ends)) return true;
  abandon(deps);
  return false;
}

/** The epoch was raised: the store starts empty. False: the store is in a higher one. */
async function empty({ accounts, timer, progress }: JoinDependencies, epoch: number): Promise<boolean> {
  progress.storeEpoch = await withTimeout(timer, TIMEOUT, 'the store', accounts.begin(epoch));
  if (progress.storeEpoch > epoch) progress.lostIn = epoch;
  return progress.storeEpoch === epoch;
}

/** Closes own accounts, in the store and in PostgreSQL; returns those that the store has until the next account's call ends them. */
async function closeOwn(deps: JoinDependencies, epoch: number, isRebuild: boolean): Promise<string[] | undefined> {
  const { account, books, timer, progress } = deps;
  const ends: string[] = [];
  for (const id of progress.own.keys()) {
    const marked = await freeze({ ...deps, store: account.store }, epoch, id, { isOwn: true, isRebuild });
    if (marked === 'gone back') {
      progress.lostIn = epoch;
      return undefined;
    }
    if (marked.outcome === 'epoch') isElsewhere(deps, epoch, marked.epoch);
    if (marked.outcome !== 'marked' && marked.outcome !== 'none') return undefined;
    const { figures, number } = marked.outcome === 'marked' ? marked : { figures: undefined, number: undefined };
    const { now: at, calls } = marked;
    const closing = books.close({ epoch, account: id, figures, number, calls, at });
    const closed = await withTimeout(timer, TIMEOUT, 'PostgreSQL', closing);
    if (closed.outcome === 'behind') progress.lostIn = epoch;
    if (closed.outcome !== 'closed') return undefined;
    // One that a clean stop closed has booked more than it told: it is left to an audit by whoever closes ended accounts.
    if (figures !== undefined && closed.row.isCharged) ends.push(id);
  }
  return ends;
}

/** The store is in another epoch than PostgreSQL, unless that was raised meanwhile. */
function isElsewhere({ progress }: JoinDependencies, epoch: number, storeEpoch: number): void {
  progress.storeEpoch = storeEpoch;
  progress.lostIn = epoch;
}

/** Charges in the name of own accounts are taken back: their requests are booked by their ids. */
async function owesCorrections({ account, books, timer, progress }: JoinDependencies): Promise<void> {
  const { own } = progress;
  if (own.size === 0) return;
  const isCorrection = ({ entry }: Ended): boolean => entry.kind === 'correction';
  const known = new Set(
    unbookedOf(account)
      .filter(isCorrection)
      .map(({ entry }) => entry.id),
  );
  const charges = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.charges([...own.keys()]));
  for (const charge of charges) {
    if (known.has(charge.id)) continue;
    const entry = toCorrection(charge, account.now());
    owe(account, { entry, counters: entry.charges.map(account.counters.of), cover: 0n, since: account.now() });
  }
  const corrections = unbookedOf(account).filter(isCorrection);
  for (const id of own.keys()) own.set(id, corrections);
}

/** Entries that PostgreSQL has are not told again. */
async function dropBooked({ account, books, outbox, timer }: JoinDependencies): Promise<void> {
  if (account.untold.length === 0) return;
  const asked = books.bookedOf(account.untold.map(({ entry }) => entry.id));
  const booked = await withTimeout(timer, TIMEOUT, 'PostgreSQL', asked);
  const dropped = drop(account, ({ entry }) => booked.get(entry.id)?.some(({ kind }) => kind === entry.kind) === true);
  outbox.done(dropped.map(({ entry }) => entry.id));
}

/** Before the epoch is open: everything that is not booked, by its ids. The store learns it from PostgreSQL. */
async function bookByIds(deps: JoinDependencies, epoch: number): Promise<boolean> {
  const { account, books, outbox, timer } = deps;
  if (account.untold.length === 0) return true;
  const entries = account.untold.map(({ entry }) => entry);
  const work = books.bookBatch({ epoch, calls: account.store.calls, entries });
  const { outcome, rejected } = await withTimeout(timer, TIMEOUT, 'PostgreSQL', work);
  if (outcome !== 'booked') return false;
  reportRejected(deps, rejected);
  const booked = new Set(entries);
  drop(account, ({ entry }) => booked.has(entry));
  outbox.done(entries.map(({ id }) => id));
  return true;
}

function drop(account: Account, isDropped: (ended: Ended) => boolean): ReadonlyArray<Ended> {
  const dropped = account.untold.filter(isDropped);
  for (const { entry, counters, cover } of dropped)
    for (const counter of counters) {
      counter.untold -= entry.cost;
      counter.uncovered -= cover;
    }
  account.untold = account.untold.filter((ended) => !isDropped(ended));
  return dropped;
}

/**
 * The first calls of the account: live holds whatever the limits say, settlements and corrections, all of a counter in one call. The last one ends the
 * earlier accounts. Before the epoch is open nothing is told as spent: nobody reads sums then. Requests that
 * have ended since keep their escrow till the opening.
 */
async function tellAll(deps: JoinDependencies, isOpen: boolean, ends: ReadonlyArray<string>): Promise<boolean> {
  const { account } = deps;
  if (isOpen) for (const ended of account.untold.splice(0)) take(account, ended);
  const rest = [...account.counters.all()].filter(({ holds, sent, untold }) => holds > 0 || sent !== 0n || untold > 0n);
  do {
    const counters = rest.splice(0, MAX_LINES);
    const lines = counters.map(({ counter, limit, sent, risk, live, untold }) => ({
      ...{ ...counter, limit, spend: sent, risk, returned: 0n, ahead: 0n },
      registered: limit === undefined ? 0n : live + (untold > 0n ? untold : 0n),
    }));
    for (const counter of counters) counter.sentRisk = counter.risk;
    const call = { ...toCall(account), lines, ends: rest.length === 0 ? ends : [] };
    const reply = await deps.ask(call);
    if (reply.outcome === 'done') applyDone(account, { call, counters, waiters: [], calls: 0 }, reply);
    else if (reply.outcome !== 'absent') return failed(deps, reply);
    else {
      await load(
        deps,
        account.epoch,
        reply.absent.flatMap((index) => counters[index]?.counter ?? []),
      );
      rest.unshift(...counters);
    }
  } while (rest.length > 0);
  return true;
}

function failed(deps: JoinDependencies, reply: AccountReply): false {
  const { epoch } = deps.account;
  if (reply.outcome === 'epoch') isElsewhere(deps, epoch, reply.epoch);
  if (reply.outcome === 'stale' && reply.why === 'behind') deps.progress.lostIn = epoch;
  return false;
}
