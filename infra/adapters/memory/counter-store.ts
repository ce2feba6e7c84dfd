// The accounts of a store in memory, for one process or for tests of several. PostgreSQL and the journal outlive them.

import type { Clock } from '#core/ports/clock.ts';
import type {
  AccountCall,
  AccountReply,
  CounterChange,
  CounterReply,
  CounterStore,
} from '#core/ports/counter-store.ts';
import type { Millis } from '#core/ports/money.ts';
import { audit, mark } from './account-closing.ts';
import * as state from './account-state.ts';
import { answerAsk, grantAhead, isWanted, liveAccounts } from './reservation-requests.ts';

/** A store that is never wiped while its process lives has one epoch. */
export const MEMORY_EPOCH = 1;

export interface MemoryAccountsDependencies {
  readonly clock: Clock;
  /** 0: none yet, as a Redis that is empty. */
  readonly epoch?: number;
}

/** At most so many ended accounts are told in a reply. */
const MAX_ENDED = 16;

/** Every method is one synchronous step, which is what a script is elsewhere. */
export function createMemoryAccounts({ clock, epoch = MEMORY_EPOCH }: MemoryAccountsDependencies): CounterStore {
  let life = state.beginLife(epoch);
  let latest: Millis = 0;
  const tick = (): Millis => {
    latest = Math.max(latest, clock.now());
    state.sweep(life, latest);
    return latest;
  };
  return {
    async call(call) {
      const now = tick();
      return call.epoch === life.epoch ? answerCall(life, call, now) : { outcome: 'epoch', now, epoch: life.epoch };
    },
    async load(of, sums) {
      const now = tick();
      if (of === life.epoch) for (const sum of sums) state.load(life, sum, now);
    },
    async read(counters) {
      return counters.map((of) => {
        const counter = state.counterOf(life, of);
        return counter.spent === undefined ? undefined : { spent: counter.spent, reserved: state.heldIn(counter) };
      });
    },
    async freeze(of, id, how) {
      const now = tick();
      return of === life.epoch ? mark(life, id, how, now) : { outcome: 'epoch', now, epoch: life.epoch };
    },
    async forget(of, id, isCharged) {
      const now = tick();
      const account = life.accounts.get(id);
      if (of === life.epoch && account?.isMarked !== false) state.close(life, id, isCharged, now);
    },
    async accounts(isEnded, max) {
      const now = tick();
      const chosen = unfinished(life, isEnded ? now : Number.POSITIVE_INFINITY).slice(0, max);
      return chosen.map((account) => {
        const used = state.usedBy(life, account);
        const unbooked = used.reduce((most, { figures }) => Math.max(most, figures.unbooked.at(-1)?.batch ?? 0), 0);
        return { account: account.id, number: account.number, unbooked };
      });
    },
    async loaded(from, max) {
      // From the end: counters that leave are the first ones.
      const loaded = [...life.counters.values()].filter(({ spent }) => spent !== undefined).reverse();
      const next = Number(from) + max;
      const counters = loaded.slice(Number(from), next).map(({ scopeId, window }) => ({ scopeId, window }));
      return next < loaded.length ? { counters, next: `${next}` } : { counters };
    },
    async audit(of, sums, rows, deadline) {
      const now = tick();
      if (of !== life.epoch) return { outcome: 'epoch', now, epoch: life.epoch };
      const found = now > deadline ? { differences: [], moved: [] } : audit(life, sums, rows);
      if (found.moved.length === 0) life.calls += 1;
      return { outcome: 'done', now, calls: life.calls, ...found };
    },
    async begin(wanted) {
      if (life.epoch < wanted) life = state.beginLife(wanted);
      return life.epoch;
    },
    async clear() {
      life = state.beginLife(0);
    },
  };
}

function answerCall(life: state.Life, call: AccountCall, now: Millis): AccountReply {
  const known = life.accounts.get(call.account);
  const last = known?.number ?? 0;
  const isRepeated = known !== undefined && !known.isMarked && call.number === last;
  if (!isRepeated) {
    // A first call that is late opens no account.
    const isClosed =
      known === undefined ? call.number === 1 && now > call.deadline : known.isMarked || known.isFinished;
    const stale = { outcome: 'stale', now, calls: life.calls } as const;
    if (isClosed || call.number <= last) return { ...stale, why: 'closed' };
    if (call.number !== last + 1) return { ...stale, why: 'behind' };
  }
  const account = state.accountOf(life, call.account);
  if (!isRepeated) perform(life, account, call, now);
  const head = { now, calls: life.calls };
  if (account.outcome.outcome !== 'done') return { ...account.outcome, ...head };
  const lines = state.placesOf(life, account, call).map(
    ({ counter, figures: { escrow } }): CounterReply => ({
      spent: counter.spent ?? 0n,
      reserved: state.heldIn(counter),
      escrow,
      isWanted: isWanted(counter, now, account.id),
    }),
  );
  const ended = unfinished(life, now).flatMap(({ id }) => (id === account.id ? [] : [id]));
  return {
    ...account.outcome,
    ...head,
    accounts: liveAccounts(life, now),
    counters: lines,
    ended: ended.slice(0, MAX_ENDED),
  };
}

/** Accounts whose lease ends before then, by its end. */
const unfinished = ({ accounts }: state.Life, before: Millis): state.Account[] =>
  [...accounts.values()]
    .filter(({ isFinished, until }) => !isFinished && until <= before)
    .sort((a, b) => a.until - b.until);

/** A numbered call, once. */
function perform(life: state.Life, account: state.Account, call: AccountCall, now: Millis): void {
  life.calls += 1;
  Object.assign(account, { number: call.number, until: now + call.lease });
  account.outcome = whyNothing(life, call, now) ?? { outcome: 'done', replies: [] };
  if (account.outcome.outcome !== 'done') return;
  account.booked = Math.max(account.booked, call.booked);
  const places = state.placesOf(life, account, call);
  for (const place of places) settle(place, call.batch);
  for (const id of call.previousAccounts) state.close(life, id, true, now);
  for (const use of call.rateChanges) life.rates.use(use, account.id, now);
  const step = { life, account, places, now };
  const isLate = now > call.deadline;
  const asks = call.requests.map((ask) => (isLate ? { outcome: 'late' as const } : answerAsk(step, ask)));
  account.outcome = { outcome: 'done', replies: asks };
  if (!isLate) grantAhead(step, call, asks);
  if (call.isLast) state.forget(life, account, false, now);
}

/** The reason why a call is not done. */
function whyNothing(life: state.Life, { changes, requests }: AccountCall, now: Millis): state.Outcome | undefined {
  const asked = new Set(requests.flatMap((ask) => ask.counters));
  const isAsked = (line: CounterChange, index: number): boolean => asked.has(index) || line.ahead > 0n;
  const absent = changes.flatMap((line, index) =>
    (line.spend !== 0n || isAsked(line, index)) && state.counterOf(life, line).spent === undefined ? [index] : [],
  );
  if (absent.length > 0) return { outcome: 'absent', absent };
  const admitting = new Set(requests.flatMap((ask) => (ask.isGrowth ? [] : ask.counters)));
  // A scope without a limit has one window, its whole life, which may begin a moment ahead of this clock.
  const isOver = changes
    .filter((line, index) => admitting.has(index) || line.ahead > 0n)
    .some(({ limit, window }) => limit !== undefined && (now < window.start || window.end <= now));
  return isOver ? { outcome: 'window' } : undefined;
}

function settle({ line, counter, figures }: state.Place, batch: number): void {
  const { spend, returned, registered, risk } = line;
  const freed = (spend > 0n ? spend : 0n) + returned;
  figures.escrow = (freed < figures.escrow ? figures.escrow - freed : 0n) + registered;
  figures.risk = risk;
  if (spend === 0n) return;
  state.spend(counter, spend);
  const open = figures.unbooked.find((one) => one.batch === batch);
  if (open === undefined) figures.unbooked.push({ batch, spend });
  else open.spend += spend;
}
