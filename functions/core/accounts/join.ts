// The way of a process into an epoch and an account: its earlier accounts are closed, and what it holds and owes is told (LEDGER 3, 6).

import { TIMEOUT, withTimeout } from '../ledger/timeout.ts';
import type { AccountCall, AccountReply } from '../ports/accounts.ts';
import type { EpochState } from '../ports/epochs.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type Account, change, type Ended, leave, owe, unbookedOf } from './account.ts';
import { applyDone, applyRefused } from './apply.ts';
import { reportRejected } from './booking.ts';
import { compose, type Pending } from './compose.ts';
import type { CounterState } from './counters.ts';
import type { LedgerDependencies } from './deps.ts';
import { toCorrection } from './entry.ts';
import { load } from './loads.ts';

export interface JoinDependencies
  extends Pick<
    LedgerDependencies,
    'instanceUid' | 'accounts' | 'books' | 'epochs' | 'outbox' | 'ids' | 'timer' | 'log' | 'metrics' | 'isolate'
  > {
  readonly account: Account;
  /** The name of its heartbeat. */
  readonly process: string;
  readonly progress: JoinProgress;
  readonly ask: (call: AccountCall) => Promise<AccountReply>;
}

export interface JoinProgress {
  /** The epoch in which the present account has told what it holds; 0: none. */
  joined: number;
  /** The epoch that the store last answered. */
  storeEpoch: number;
  /** The store is not what it was: the epoch must be raised. */
  hasGoneBack: boolean;
  /** Requests wait longer. */
  isRebuilding: boolean;
  /** Earlier accounts of this process and of its outbox, with the corrections that are not booked yet; undefined: not closed yet. */
  readonly own: Map<string, ReadonlyArray<Ended> | undefined>;
}

/** A process that has not joined by then is not waited for. */
const JOIN_TIMEOUT: Millis = 1000;
const CHECK_AGAIN_AFTER: Millis = 25;

/** Resolves when the epoch is open and joined. Throws when PostgreSQL or the store do not reply; may be called again. */
export async function join(deps: JoinDependencies): Promise<void> {
  const { progress, account } = deps;
  if (account.id !== '') abandon(deps);
  for (;;) {
    const state = await beat(deps);
    if (state.epoch === 0) await raise(deps, 0);
    else if (!state.isOpen) await gather(deps, state);
    else if (await isCurrent(deps, state)) break;
  }
  Object.assign(progress, { hasGoneBack: false, isRebuilding: false });
  account.store.epoch = account.epoch;
  account.isOpen = true;
}

/** The account is left for another one; its process closes it itself. */
function abandon({ account, progress, isolate }: JoinDependencies): void {
  if (isolate === undefined || account.number > 0) progress.own.set(account.id, undefined);
  progress.joined = 0;
  leave(account);
}

const beat = ({ epochs, process, progress, timer }: JoinDependencies): Promise<EpochState> =>
  withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.beat(process, progress.joined));

async function raise({ epochs, timer, log, instanceUid, progress }: JoinDependencies, from: number): Promise<void> {
  await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.raise(from, progress.storeEpoch));
  progress.hasGoneBack = false;
  // The first epoch of an instance is not a loss.
  if (from === 0) return;
  progress.isRebuilding = true;
  log.warn('the store has forgotten: it is rebuilt from PostgreSQL', { instance: instanceUid, epoch: from });
}

/** The epoch was raised: the store starts empty, every live process joins, and the last one opens the epoch. */
async function gather(deps: JoinDependencies, { epoch }: EpochState): Promise<void> {
  const { accounts, epochs, timer, progress, metrics } = deps;
  progress.isRebuilding = epoch > 1;
  const begun = await withTimeout(timer, TIMEOUT, 'the store', accounts.begin(epoch));
  if (begun > epoch) {
    progress.storeEpoch = begun;
    return raise(deps, epoch);
  }
  if (progress.joined !== epoch && !(await enter(deps, epoch, true))) return;
  const { epoch: now, isOpen, awaited, age } = await beat(deps);
  if (now !== epoch || isOpen) return;
  if (awaited > 0 && age < JOIN_TIMEOUT) return new Promise((resolve) => void timer(CHECK_AGAIN_AFTER, resolve));
  await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.open(epoch));
  metrics.add('gateway_operator_ledger_rebuilds_total');
}

/** Whether the store is in the open epoch, as it was. Else the epoch is raised. */
async function isCurrent(deps: JoinDependencies, { epoch, calls }: EpochState): Promise<boolean> {
  const { account, progress } = deps;
  if (account.store.epoch === epoch) account.store.calls = Math.max(account.store.calls, calls);
  else Object.assign(account.store, { epoch, calls });
  if (!progress.hasGoneBack && (progress.joined === epoch || (await enter(deps, epoch, false)))) return true;
  if (progress.hasGoneBack || progress.storeEpoch !== epoch) await raise(deps, epoch);
  return false;
}

/** Closes earlier accounts and tells everything under a new one. False: the epoch is over, or the account could not be opened. */
async function enter(deps: JoinDependencies, epoch: number, isRebuild: boolean): Promise<boolean> {
  const { account, progress } = deps;
  const ends = await closeOwn(deps, epoch, isRebuild);
  if (ends === undefined) return false;
  const corrections = await correctionsOf(deps);
  await dropBooked(deps);
  for (const ended of corrections) owe(account, ended);
  if (isRebuild && !(await bookByIds(deps, epoch))) return false;
  // The store counts from zero again.
  if (isRebuild) account.store.calls = 0;
  const id = deps.ids.next();
  // The outbox names every account of its process, so that a successor closes and corrects it.
  if (deps.isolate === undefined) await deps.outbox.append({ type: 'account', id });
  Object.assign(account, { id, epoch, number: 0, answered: 0 });
  if (!(await tellAll(deps, { ends, isRebuild }))) {
    abandon(deps);
    return false;
  }
  progress.joined = epoch;
  return true;
}

/** Closes own accounts, in the store and in PostgreSQL; returns those that the store has until the next account's call ends them. */
async function closeOwn(deps: JoinDependencies, epoch: number, isRebuild: boolean): Promise<string[] | undefined> {
  const { accounts, books, timer, progress } = deps;
  const ends: string[] = [];
  for (const id of progress.own.keys()) {
    const how = { isOwn: true, isRebuild };
    const marked = await withTimeout(timer, TIMEOUT, 'the store', accounts.mark(epoch, id, how));
    if (marked.outcome === 'epoch') progress.storeEpoch = marked.epoch;
    if (marked.outcome === 'absent') await load(deps, epoch, marked.counters);
    if (marked.outcome !== 'marked' && marked.outcome !== 'none') return undefined;
    const figures = marked.outcome === 'marked' ? marked.figures : undefined;
    const closing = { epoch, account: id, figures, at: marked.now };
    const closed = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.close(closing));
    if (closed.outcome === 'epoch') return undefined;
    if (marked.outcome === 'marked') ends.push(id);
  }
  return ends;
}

/** Charges in the name of own accounts are taken back: their requests are booked by their ids. */
async function correctionsOf({ account, books, timer, progress }: JoinDependencies): Promise<Ended[]> {
  if (progress.own.size === 0) return [];
  const known = new Set(unbookedOf(account).map(({ entry }) => `${entry.kind} ${entry.id}`));
  const charges = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.charges([...progress.own.keys()]));
  const corrections = charges
    .filter(({ id }) => !known.has(`correction ${id}`))
    .map((charge) => {
      const entry = toCorrection(charge, account.now());
      return { entry, counters: entry.charges.map(account.counters.of), cover: 0n, since: account.now() };
    });
  const pending = [...unbookedOf(account).filter(({ entry }) => entry.kind === 'correction'), ...corrections];
  for (const id of progress.own.keys()) progress.own.set(id, pending);
  return corrections;
}

/** Entries that PostgreSQL has are not told again. */
async function dropBooked({ account, books, outbox, timer }: JoinDependencies): Promise<void> {
  const { untold } = account;
  if (untold.length === 0) return;
  const ids = untold.map(({ entry }) => entry.id);
  const booked = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.bookedOf(ids));
  const isBooked = ({ entry }: Ended): boolean =>
    booked.get(entry.id)?.some(({ kind }) => kind === entry.kind) === true;
  drop(account, isBooked);
  outbox.done(untold.filter(isBooked).map(({ entry }) => entry.id));
}

/** Before the epoch is open: everything that is not booked, by its ids. The store learns it from PostgreSQL. */
async function bookByIds(deps: JoinDependencies, epoch: number): Promise<boolean> {
  const { account, books, outbox, timer } = deps;
  if (account.untold.length === 0) return true;
  const booked = new Set(account.untold);
  const entries = [...booked].map(({ entry }) => entry);
  const work = books.bookBatch({ epoch, calls: 0, entries });
  const { outcome, rejected } = await withTimeout(timer, TIMEOUT, 'PostgreSQL', work);
  if (outcome !== 'booked') return false;
  reportRejected(deps, rejected);
  drop(account, (ended) => booked.has(ended));
  outbox.done(entries.map(({ id }) => id));
  return true;
}

function drop(account: Account, isDropped: (ended: Ended) => boolean): void {
  for (const ended of account.untold.filter(isDropped))
    for (const counter of ended.counters) {
      counter.untold -= ended.entry.cost;
      counter.uncovered -= ended.cover;
    }
  account.untold = account.untold.filter((ended) => !isDropped(ended));
}

/**
 * The first calls of the account: live holds whatever the limits say, settlements, then corrections. The last one ends the earlier accounts.
 * Before the epoch is open no spend is told, since nobody reads sums; requests that have just ended keep their escrow till then.
 */
async function tellAll(
  deps: JoinDependencies,
  { ends, isRebuild }: { readonly ends: ReadonlyArray<string>; readonly isRebuild: boolean },
): Promise<boolean> {
  const { account } = deps;
  const needOf = ({ live, untold }: CounterState): Nano => live + (isRebuild && untold > 0n ? untold : 0n);
  const registering = new Set([...account.counters.all()].filter((counter) => needOf(counter) > 0n));
  for (const counter of registering) change(account, counter);
  for (let isOver = false; !isOver; ) {
    const composed = compose(account, [], isRebuild);
    const isTold = isRebuild || account.untold.length === 0;
    isOver = isTold && ![...registering].some(({ isChanged }) => isChanged);
    const lines = composed.call.lines.map((line, index) => {
      const counter = composed.counters[index];
      const registered = counter !== undefined && registering.has(counter) ? needOf(counter) : 0n;
      return { ...line, returned: 0n, ahead: 0n, registered };
    });
    const pending = { ...composed, call: { ...composed.call, lines, ends: isOver ? ends : [] } };
    const reply = await deps.ask(pending.call);
    if (reply.outcome === 'done') {
      applyDone(account, pending, reply);
      for (const counter of pending.counters) registering.delete(counter);
    } else if (!(await mend(deps, pending, reply))) return false;
    else isOver = false;
  }
  return true;
}

/** Makes ready to tell again what a call did not tell. False: the account cannot be opened. */
async function mend(
  deps: JoinDependencies,
  pending: Pending,
  reply: Exclude<AccountReply, { outcome: 'done' }>,
): Promise<boolean> {
  const { account, progress } = deps;
  if (reply.outcome === 'epoch') progress.storeEpoch = reply.epoch;
  if (reply.outcome === 'stale' && reply.why === 'behind') progress.hasGoneBack = true;
  if (reply.outcome === 'epoch' || reply.outcome === 'stale') return false;
  applyRefused(account, pending);
  if (reply.outcome === 'absent') {
    const absent = reply.absent.flatMap((index) => pending.counters[index]?.counter ?? []);
    await load(deps, account.epoch, absent);
  }
  return true;
}
