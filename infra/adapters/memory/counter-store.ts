// The counter store in memory, for one process or for tests of several. PostgreSQL and the journal outlive it.

import type { Clock } from '#core/ports/clock.ts';
import {
  type AccountCall,
  type AccountReply,
  type CounterChange,
  type CounterReply,
  type CounterStore,
  FIGURES_PAGE,
} from '#core/ports/counter-store.ts';
import type { Millis } from '#core/ports/money.ts';
import { audit, finishAfterCall, forget, freeze, pageOf } from './account-closing.ts';
import * as state from './account-state.ts';
import { answerRequest, grantAhead, isWantedByOthers, liveAccounts } from './reservation-requests.ts';

/** The only epoch of a memory store, which loses nothing while its process runs. */
export const MEMORY_EPOCH = 1;

export interface MemoryCounterStoreDependencies {
  readonly clock: Clock;
  /** 0: no epoch yet, as in an empty Redis. */
  readonly epoch?: number;
  /** The number of figures in a page. */
  readonly figuresPage?: number;
}

/** The maximum number of ended accounts in a reply. */
const MAX_ENDED = 16;

/**
 * Milliseconds by which the clock may be set back. If it was further ahead before, leases and windows would last too
 * long, by as much as it was ahead: the store counts as lost, as a Redis does (account.lua).
 */
const MAX_AHEAD = 60_000;

/** Every method is one synchronous step, as the script is in Redis. */
export function createMemoryCounterStore({
  clock,
  epoch: firstEpoch = MEMORY_EPOCH,
  figuresPage = FIGURES_PAGE,
}: MemoryCounterStoreDependencies): CounterStore {
  const create = (epoch: number) => state.createMemoryStore(epoch, figuresPage);
  let store = create(firstEpoch);
  let latest: Millis = 0;
  const tick = (): Millis => {
    const now = clock.now();
    if (latest > now + MAX_AHEAD) [store, latest] = [create(0), now];
    latest = Math.max(latest, now);
    state.dropUnused(store, latest);
    return latest;
  };
  return {
    async call(call) {
      const now = tick();
      return call.epoch === store.epoch ? answerCall(store, call, now) : { outcome: 'epoch', now, epoch: store.epoch };
    },
    async load(inEpoch, sums) {
      const now = tick();
      if (inEpoch === store.epoch) for (const sum of sums) state.load(store, sum, now);
    },
    async read(counters) {
      return counters.map((scopeWindow) => {
        const counter = state.counterOf(store, scopeWindow);
        return counter.spent === undefined ? undefined : { spent: counter.spent, escrowOfAll: state.escrowIn(counter) };
      });
    },
    async freeze(inEpoch, id, isOwn) {
      const now = tick();
      return inEpoch === store.epoch ? freeze(store, id, isOwn, now) : { outcome: 'epoch', now, epoch: store.epoch };
    },
    async figures(inEpoch, id, cursor) {
      const now = tick();
      return inEpoch === store.epoch ? pageOf(store, id, cursor) : { outcome: 'epoch', now, epoch: store.epoch };
    },
    async forget(inEpoch, id, isCharged, counters) {
      const now = tick();
      if (inEpoch === store.epoch) forget(store, id, { isCharged, counters }, now);
    },
    async accounts(isEnded, max) {
      const now = tick();
      const all = isEnded ? endedAccounts(store, now) : unfinished(store, Number.POSITIVE_INFINITY);
      const chosen = all.slice(0, max);
      return chosen.map((account) => {
        const used = state.usedBy(store, account);
        const unbookedBatch = used.reduce(
          (max, { figures }) => Math.max(max, figures.unbookedSpend.at(-1)?.batch ?? 0),
          0,
        );
        return { account: account.id, callNumber: account.callNumber, unbookedBatch };
      });
    },
    async loaded(from, max) {
      // Pages begin at the end: counters that are dropped are the oldest.
      const loaded = [...store.counters.values()].filter(({ spent }) => spent !== undefined).reverse();
      const counters = loaded.slice(from, from + max).map(({ scopeId, window }) => ({ scopeId, window }));
      return { counters, total: loaded.length };
    },
    async audit(inEpoch, sums, rows, terms) {
      const now = tick();
      if (inEpoch !== store.epoch) return { outcome: 'epoch', now, epoch: store.epoch };
      const isLate = now > terms.deadline;
      const result = isLate ? { differences: [], changedAccounts: [], minSums: [] } : audit(store, sums, rows, terms);
      if (result.changedAccounts.length === 0) store.storeCalls += 1;
      return { outcome: 'done', now, storeCalls: store.storeCalls, ...result };
    },
    async begin(epoch, isNew) {
      if (isNew && store.epoch < epoch) store = create(epoch);
      return store.epoch;
    },
    reconnect() {},
    async clear() {
      store = create(0);
    },
  };
}

function answerCall(store: state.MemoryStore, call: AccountCall, now: Millis): AccountReply {
  const existing = store.accounts.get(call.account);
  const last = existing?.callNumber ?? 0;
  const isRepeated = existing !== undefined && !existing.isFrozen && call.callNumber === last;
  if (!isRepeated) {
    // A late first call opens no account.
    const hasEnded =
      existing === undefined ? call.callNumber === 1 && now > call.deadline : existing.isFrozen || existing.isFinished;
    const stale = { outcome: 'stale', now, storeCalls: store.storeCalls } as const;
    if (hasEnded || call.callNumber <= last) return { ...stale, why: 'accountClosed' };
    if (call.callNumber !== last + 1) return { ...stale, why: 'wentBack' };
  }
  state.recordCall(store, now);
  const account = state.accountOf(store, call.account);
  if (!isRepeated) perform(store, account, call, now);
  const head = { now, storeCalls: store.storeCalls };
  if (account.outcome.outcome !== 'done') return { ...account.outcome, ...head };
  const replies = state.changedCounters(store, account, call).map(
    ({ counter, figures: { escrow } }): CounterReply => ({
      spent: counter.spent,
      escrowOfAll: state.escrowIn(counter),
      escrow,
      isWantedByOthers: isWantedByOthers(counter, now, account.id),
    }),
  );
  const ended = endedAccounts(store, now).flatMap(({ id }) => (id === account.id ? [] : [id]));
  return {
    ...account.outcome,
    ...head,
    liveAccounts: liveAccounts(store, now),
    counters: replies,
    endedAccounts: ended.slice(0, MAX_ENDED),
  };
}

/** Unfinished accounts whose lease ends before that time, sorted by its end. */
const unfinished = ({ accounts }: state.MemoryStore, before: Millis): state.AccountState[] =>
  [...accounts.values()]
    .filter(({ isFinished, leaseEnd }) => !isFinished && leaseEnd <= before)
    .sort((a, b) => a.leaseEnd - b.leaseEnd);

/** Unfinished accounts whose lease has ended, and is not about to be renewed. */
const endedAccounts = (store: state.MemoryStore, now: Millis): state.AccountState[] =>
  unfinished(store, state.endedUntil(store, now));

/** Performs a numbered call, once. */
function perform(store: state.MemoryStore, account: state.AccountState, call: AccountCall, now: Millis): void {
  store.storeCalls += 1;
  Object.assign(account, { callNumber: call.callNumber, leaseEnd: now + call.lease });
  const isLate = now > call.deadline;
  for (const { scopeId, window, sum } of isLate ? [] : call.changes)
    if (sum !== undefined) state.load(store, { scopeId, window, spent: sum }, now);
  account.outcome = obstacleOf(store, call, now) ?? { outcome: 'done', replies: [] };
  if (account.outcome.outcome !== 'done') return;
  if (account.bookedBatch < call.bookedBatch)
    Object.assign(account, { bookedBatch: call.bookedBatch, lastBookedCall: store.storeCalls + 1 });
  const changed = state.changedCounters(store, account, call);
  for (const changedCounter of changed) {
    const parts = applyChange(changedCounter, call.batch);
    account.reportedBatch = Math.max(account.reportedBatch, ...parts.map(({ batch }) => batch));
  }
  for (const id of call.accountsToForget) {
    const previous = store.accounts.get(id);
    if (previous?.isFrozen) for (const { counter } of changed) state.forgetFigures(counter, previous, true);
  }
  for (const change of call.rateChanges) store.rates.applyChange(change, account.id, now);
  const step = { store, account, changed, now };
  const replies = call.requests.map((request) =>
    isLate ? { outcome: 'late' as const } : answerRequest(step, request),
  );
  account.outcome = { outcome: 'done', replies };
  if (!isLate) grantAhead(step, call, replies);
  if (call.finishesAccount) finishAfterCall(store, account, now);
}

/** The reason why nothing of a call is done; undefined: it is done. */
function obstacleOf(
  store: state.MemoryStore,
  { changes, requests }: AccountCall,
  now: Millis,
): state.Outcome | undefined {
  const absent = changes.flatMap((change, index) =>
    (partsOf(change).length > 0 || change.ahead > 0n) && state.counterOf(store, change).spent === undefined
      ? [index]
      : [],
  );
  if (absent.length > 0) return { outcome: 'absent', absent };
  const admitting = new Set(requests.flatMap(({ isGrowth, counters }) => (isGrowth ? [] : counters)));
  // A scope without a limit has one window, its whole life, which may begin a moment ahead of this clock.
  const isOver = changes
    .filter((change, index) => admitting.has(index) || change.ahead > 0n)
    .some(({ limit, window }) => limit !== undefined && (now < window.start || window.end <= now));
  return isOver ? { outcome: 'window' } : undefined;
}

/** Applies a change, and returns its spend by batch. */
function applyChange({ change, counter, figures }: state.ChangedCounter, batch: number) {
  const { returned, carriedOver, risk } = change;
  const parts = partsOf(change, batch);
  const spend = parts.reduce((sum, part) => sum + part.spend, 0n);
  const freed = (spend > 0n ? spend : 0n) + returned;
  figures.escrow = (freed < figures.escrow ? figures.escrow - freed : 0n) + carriedOver;
  figures.risk = risk;
  state.spend(counter, spend);
  for (const part of parts) {
    const open = figures.unbookedSpend.find(({ batch }) => batch === part.batch);
    if (open === undefined) figures.unbookedSpend.push({ ...part });
    else open.spend += part.spend;
  }
  return parts;
}

/** The spend of a change by batch. */
const partsOf = ({ spend, laterSpend = [] }: CounterChange, batch = 0) =>
  [{ batch, spend }, ...laterSpend].filter((part) => part.spend !== 0n);
