// State of the accounts in memory: counters, and what each account has in them (LEDGER 3).
import type { AccountCall, AccountReply, CounterChange } from '#core/ports/counter-store.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { type AccountRates, createAccountRates } from './account-rates.ts';

export interface Counter extends ScopeWindow {
  /** Undefined while the counter is absent, in which accounts may have something all the same. */
  spent: Nano | undefined;
  /** Figures of accounts, by their ids. */
  readonly figures: Map<string, Figures>;
  /** Accounts that were refused because of escrow, and until when that is told to others. */
  readonly wanted: Map<string, Millis>;
  keepUntil: Millis;
}

export interface Figures {
  escrow: Nano;
  risk: Nano;
  unbooked: { readonly batch: number; spend: Nano }[];
  /** The last batch that left `unbooked`. */
  left: number;
}

type Done = Extract<AccountReply, { outcome: 'done' }>;

/** The outcome of a call: a repeated one is answered with it, beside present figures. */
export type Outcome =
  | Pick<Done, 'outcome' | 'replies'>
  | { readonly outcome: 'absent'; readonly absent: ReadonlyArray<number> }
  | { readonly outcome: 'window' };

export interface Account {
  readonly id: string;
  number: number;
  /** Of the last call. */
  outcome: Outcome;
  booked: number;
  /** The end of its lease; of a finished account, until when its id is known. */
  until: Millis;
  isMarked: boolean;
  isFinished: boolean;
}

export interface Life {
  readonly epoch: number;
  calls: number;
  nextSweep: Millis;
  readonly counters: Map<string, Counter>;
  readonly accounts: Map<string, Account>;
  readonly rates: AccountRates;
}

/** One line of a call, in its place. */
export interface Place {
  readonly line: CounterChange;
  readonly counter: Counter;
  readonly figures: Figures;
}

/**
 * Longer than any call is under way: no late first call opens a finished account, no late load a counter that has left.
 */
const KEEP: Millis = 60_000;
const SWEEP_EVERY: Millis = 10_000;

export const beginLife = (epoch: number): Life => ({
  epoch,
  calls: 0,
  nextSweep: 0,
  counters: new Map(),
  accounts: new Map(),
  rates: createAccountRates(),
});

/** The account, opened where nobody knows it. */
export function accountOf({ accounts }: Life, id: string): Account {
  const fresh = { id, number: 0, booked: 0, until: 0, isMarked: false, isFinished: false };
  const account: Account = accounts.get(id) ?? { ...fresh, outcome: { outcome: 'window' } };
  accounts.set(id, account);
  return account;
}

/** The counter, absent where nobody has loaded it. */
export function counterOf({ counters }: Life, { scopeId, window }: ScopeWindow): Counter {
  const key = `${window.start} ${window.end} ${scopeId}`;
  const fresh = { scopeId, window, spent: undefined, figures: new Map(), wanted: new Map(), keepUntil: 0 };
  const counter = counters.get(key) ?? fresh;
  counters.set(key, counter);
  return counter;
}

/** Figures of an account, without the batches that are booked. */
export function figuresIn({ figures }: Counter, { id, booked }: Account): Figures {
  const found = figures.get(id) ?? { escrow: 0n, risk: 0n, unbooked: [], left: 0 };
  figures.set(id, found);
  for (const { batch } of found.unbooked) if (batch <= booked) found.left = Math.max(found.left, batch);
  found.unbooked = found.unbooked.filter(({ batch }) => batch > booked);
  return found;
}

export const placesOf = (life: Life, account: Account, { changes }: AccountCall): Place[] =>
  changes.map((line) => {
    const counter = counterOf(life, line);
    return { line, counter, figures: figuresIn(counter, account) };
  });

/** Counters that the account has something in. */
export const usedBy = (life: Life, account: Account) =>
  [...life.counters.values()]
    .filter((counter) => counter.figures.has(account.id))
    .map((counter) => ({ counter, figures: figuresIn(counter, account) }))
    .filter(({ figures }) => hasAnything(figures));

export const hasAnything = ({ escrow, risk, unbooked }: Figures): boolean =>
  escrow !== 0n || risk !== 0n || unbooked.length > 0;

/** The escrow of all accounts. */
export const heldIn = ({ figures }: Counter): Nano =>
  [...figures.values()].reduce((held, { escrow }) => held + escrow, 0n);

/** An absent counter is not changed: its load contains what was charged. */
export function spend(counter: Counter, amount: Nano): void {
  if (counter.spent !== undefined) counter.spent += amount;
}

export function load(life: Life, sum: ScopeSpend, now: Millis): void {
  const counter = counterOf(life, sum);
  if (counter.spent !== undefined) return;
  Object.assign(counter, { spent: sum.spent, keepUntil: Math.max(now, sum.window.end) + KEEP });
}

/** A marked account lives until its lease ends: it has its escrow. */
export const isLive = ({ isFinished, until }: Account, now: Millis): boolean => !isFinished && until > now;

/** Forgets an account: its escrow goes back, or its risk becomes spend. The id stays known for a while. */
export function forget(life: Life, account: Account, isCharged: boolean, now: Millis): void {
  for (const { counter, figures } of usedBy(life, account)) {
    figures.escrow = 0n;
    if (isCharged) spend(counter, figures.risk);
  }
  life.rates.end(account.id);
  Object.assign(account, { isFinished: true, until: now + KEEP });
}

/**
 * Forgets an account that another has closed, or that nobody knows. One that has ended itself still answers its last
 * call.
 */
export function close(life: Life, id: string, isCharged: boolean, now: Millis): void {
  const account = accountOf(life, id);
  if (!account.isFinished) forget(life, Object.assign(account, { isMarked: true }), isCharged, now);
}

/** Drops finished accounts, and counters whose window is over and that no account has anything in. */
export function sweep(life: Life, now: Millis): void {
  if (now < life.nextSweep) return;
  life.nextSweep = now + SWEEP_EVERY;
  const { accounts, counters, rates } = life;
  rates.sweep(now);
  for (const [id, { isFinished, until }] of accounts) if (isFinished && until <= now) accounts.delete(id);
  for (const [key, counter] of counters) {
    for (const id of counter.figures.keys()) if (!accounts.has(id)) counter.figures.delete(id);
    if (counter.keepUntil > now) continue;
    const isUsed = [...accounts.values()].some(
      (account) => !account.isFinished && counter.figures.has(account.id) && hasAnything(figuresIn(counter, account)),
    );
    if (!isUsed) counters.delete(key);
  }
}
