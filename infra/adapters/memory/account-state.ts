// State of the counter store in memory: counters, and what each account has in them (LEDGER 3).
import type { AccountCall, AccountReply, CounterChange } from '#core/ports/counter-store.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { type AccountRates, createAccountRates } from './account-rates.ts';

export interface Counter extends ScopeWindow {
  /** Undefined while the counter is absent; accounts may have figures in it nevertheless. */
  spent: Nano | undefined;
  /** Figures of accounts, by their ids. */
  readonly figures: Map<string, Figures>;
  /** Accounts that were refused because of escrow, each with the time until which other accounts see the refusal. */
  readonly refusals: Map<string, Millis>;
  keptUntil: Millis;
}

export interface Figures {
  escrow: Nano;
  risk: Nano;
  unbookedSpend: { readonly batch: number; spend: Nano }[];
  /** The last batch that was removed from `unbookedSpend`. */
  lastBookedBatch: number;
  /** Whether they are forgotten: their escrow is free, and audits compare the rest. */
  isForgotten: boolean;
}

type DoneReply = Extract<AccountReply, { outcome: 'done' }>;

/** The outcome of a call: a repeated call gets the same outcome, with present figures. */
export type Outcome =
  | Pick<DoneReply, 'outcome' | 'replies'>
  | { readonly outcome: 'absent'; readonly absent: ReadonlyArray<number> }
  | { readonly outcome: 'window' };

export interface AccountState {
  readonly id: string;
  callNumber: number;
  /** The outcome of the last call. */
  outcome: Outcome;
  bookedBatch: number;
  /** The last batch with spend. */
  reportedBatch: number;
  /** The value of `storeCalls` after the last booking or the end of the account. */
  lastBookedCall: number;
  /** The end of the lease. */
  leaseEnd: Millis;
  /** Of a finished account: the time until which its id is remembered. */
  keptUntil: Millis;
  isFrozen: boolean;
  isFinished: boolean;
}

export interface MemoryStore {
  readonly epoch: number;
  /** The number of figures in a page. */
  readonly figuresPage: number;
  storeCalls: number;
  nextCleanup: Millis;
  lastCallAt: Millis;
  /** The last call before a silence of all processes, and the first call after it. */
  lastBeforeSilence: Millis;
  firstAfterSilence: Millis;
  readonly counters: Map<string, Counter>;
  readonly accounts: Map<string, AccountState>;
  readonly rates: AccountRates;
}

/** A counter that a call changes, with the figures of its account. */
export interface ChangedCounter {
  readonly change: CounterChange;
  readonly counter: Counter;
  readonly figures: Figures;
}

/**
 * Finished accounts and unused counters are kept longer than any call takes: no late first call reopens a finished
 * account, and no late load brings back a dropped counter.
 */
const KEEP: Millis = 60_000;
const CLEANUP_INTERVAL: Millis = 10_000;
/**
 * No call for this long means that the store may have been away: each process on Node calls at least every two seconds.
 * Leases that ended meanwhile end only `GRACE` after the next call of any process, so that their processes can renew
 * them.
 */
const MAX_CALL_GAP: Millis = 5000;
const GRACE: Millis = 3000;

export function recordCall(store: MemoryStore, now: Millis): void {
  if (store.lastCallAt > 0 && store.lastCallAt + MAX_CALL_GAP < now)
    Object.assign(store, { lastBeforeSilence: store.lastCallAt, firstAfterSilence: now });
  store.lastCallAt = now;
}

/** Leases that end at this time or before have ended. */
export const endedUntil = ({ lastBeforeSilence, firstAfterSilence }: MemoryStore, now: Millis): Millis =>
  now < firstAfterSilence + GRACE ? lastBeforeSilence : now;

export const createMemoryStore = (epoch: number, figuresPage: number): MemoryStore => ({
  epoch,
  figuresPage,
  storeCalls: 0,
  nextCleanup: 0,
  lastCallAt: 0,
  lastBeforeSilence: 0,
  firstAfterSilence: Number.NEGATIVE_INFINITY,
  counters: new Map(),
  accounts: new Map(),
  rates: createAccountRates(),
});

/** The account; a new one if the id is unknown. */
export function accountOf({ accounts }: MemoryStore, id: string): AccountState {
  const account: AccountState = accounts.get(id) ?? {
    ...{ id, callNumber: 0, outcome: { outcome: 'window' }, bookedBatch: 0, reportedBatch: 0, lastBookedCall: 0 },
    ...{ leaseEnd: 0, keptUntil: 0, isFrozen: false, isFinished: false },
  };
  accounts.set(id, account);
  return account;
}

/** The counter; absent (`spent` is undefined) until it is loaded. */
export function counterOf({ counters }: MemoryStore, { scopeId, window }: ScopeWindow): Counter {
  const key = `${window.start} ${window.end} ${scopeId}`;
  const initial = { scopeId, window, spent: undefined, figures: new Map(), refusals: new Map(), keptUntil: 0 };
  const counter = counters.get(key) ?? initial;
  counters.set(key, counter);
  return counter;
}

/** Figures of an account in the counter, without the batches that are booked. */
export function figuresIn({ figures }: Counter, { id, bookedBatch }: AccountState): Figures {
  const own = figures.get(id) ?? { escrow: 0n, risk: 0n, unbookedSpend: [], lastBookedBatch: 0, isForgotten: false };
  figures.set(id, own);
  for (const { batch } of own.unbookedSpend)
    if (batch <= bookedBatch) own.lastBookedBatch = Math.max(own.lastBookedBatch, batch);
  own.unbookedSpend = own.unbookedSpend.filter(({ batch }) => batch > bookedBatch);
  return own;
}

export const changedCounters = (
  store: MemoryStore,
  account: AccountState,
  { changes }: AccountCall,
): ChangedCounter[] =>
  changes.map((change) => {
    const counter = counterOf(store, change);
    return { change, counter, figures: figuresIn(counter, account) };
  });

/** Counters in which the account has figures, forgotten ones too. */
export const usedBy = (store: MemoryStore, account: AccountState) =>
  [...store.counters.values()]
    .filter((counter) => counter.figures.has(account.id))
    .map((counter) => ({ counter, figures: figuresIn(counter, account) }));

/** Whether figures must be forgotten before their account is finished: audits need the last booked batch too. */
export const isKept = ({ figures }: { readonly figures: Figures }): boolean =>
  hasAnything(figures) || (!figures.isForgotten && figures.lastBookedBatch > 0);

const hasAnything = ({ escrow, risk, unbookedSpend, isForgotten }: Figures): boolean =>
  !isForgotten && (escrow !== 0n || risk !== 0n || unbookedSpend.length > 0);

/** The escrow of all accounts. */
export const escrowIn = ({ figures }: Counter): Nano =>
  [...figures.values()].reduce((sum, { escrow }) => sum + escrow, 0n);

/** An absent counter does not change: the sum that is loaded later contains the charge. */
export function spend(counter: Counter, amount: Nano): void {
  if (counter.spent !== undefined) counter.spent += amount;
}

export function load(store: MemoryStore, sum: ScopeSpend, now: Millis): void {
  const counter = counterOf(store, sum);
  if (counter.spent !== undefined) return;
  Object.assign(counter, { spent: sum.spent, keptUntil: Math.max(now, sum.window.end) + KEEP });
}

/** Whether the account is live. A frozen account is live until its lease ends, because it still has its escrow. */
export const isLive = ({ isFinished, leaseEnd }: AccountState, now: Millis): boolean => !isFinished && leaseEnd > now;

/** Forgets the figures of an account in a counter: its escrow is free, and its risk becomes spend if `isCharged`. */
export function forgetFigures(counter: Counter, account: AccountState, isCharged: boolean): void {
  if (!counter.figures.has(account.id)) return;
  const figures = figuresIn(counter, account);
  if (isCharged && !figures.isForgotten) spend(counter, figures.risk);
  Object.assign(figures, { escrow: 0n, isForgotten: true });
}

/** Finishes an account without figures. Its id is remembered for a while. */
export function finishAccount(store: MemoryStore, account: AccountState, now: Millis): void {
  store.rates.end(account.id);
  Object.assign(account, { isFinished: true, keptUntil: now + KEEP, lastBookedCall: store.storeCalls + 1 });
}

/** Drops finished accounts, and counters whose window is over if no account has figures in them. */
export function dropUnused(store: MemoryStore, now: Millis): void {
  if (now < store.nextCleanup) return;
  store.nextCleanup = now + CLEANUP_INTERVAL;
  const { accounts, counters, rates } = store;
  rates.dropUnused(now);
  for (const [id, { isFinished, keptUntil }] of accounts) if (isFinished && keptUntil <= now) accounts.delete(id);
  for (const [key, counter] of counters) {
    for (const id of counter.figures.keys()) if (!accounts.has(id)) counter.figures.delete(id);
    if (counter.keptUntil > now) continue;
    const isUsed = [...accounts.values()].some(
      (account) => counter.figures.has(account.id) && hasAnything(figuresIn(counter, account)),
    );
    if (!isUsed) counters.delete(key);
  }
}
