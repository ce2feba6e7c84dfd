// State of the accounts in memory: counters, and what each account has in them (LEDGER 3).
import type { AccountCall, AccountFigures, AccountReply } from '#core/ports/accounts.ts';
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeSpend, ScopeWindow } from '#core/ports/policy.ts';
import { type AccountRates, createAccountRates, type InFlight } from './account-rates.ts';

export interface Counter extends ScopeWindow {
  /** The order in which counters were loaded. */
  readonly serial: number;
  spent: Nano;
  /** The escrow of all accounts. */
  held: Nano;
  /** Accounts that were refused because of escrow, and until when that is told to others. */
  readonly wanted: Map<string, Millis>;
  readonly keepUntil: Millis;
}

export interface Figures extends ScopeWindow {
  escrow: Nano;
  risk: Nano;
  unbooked: { readonly batch: number; spend: Nano }[];
  /** The last batch that left `unbooked`. */
  left: number;
}

type Done = Extract<AccountReply, { outcome: 'done' }>;

/** The outcome of the last call: what a repeated call is answered with, beside present figures. */
export type Outcome =
  | Pick<Done, 'outcome' | 'asks'>
  | { readonly outcome: 'absent'; readonly absent: ReadonlyArray<number> }
  | { readonly outcome: 'window' };

export interface Account {
  readonly id: string;
  number: number;
  outcome: Outcome;
  /** The end of its lease; of a finished account, until when its id is known. */
  until: Millis;
  booked: number;
  readonly figures: Map<string, Figures>;
  readonly inFlight: InFlight;
  isMarked: boolean;
  isFinished: boolean;
}

export interface Life {
  readonly epoch: number;
  calls: number;
  serial: number;
  nextSweep: Millis;
  readonly counters: Map<string, Counter>;
  readonly accounts: Map<string, Account>;
  readonly rates: AccountRates;
}

/** Longer than any call is under way: no late first call opens a finished account, no late load a counter that has left. */
const KEEP: Millis = 60_000;
const SWEEP_EVERY: Millis = 1000;

export const beginLife = (epoch: number): Life => ({
  ...{ epoch, calls: 0, serial: 0, nextSweep: 0, counters: new Map(), accounts: new Map() },
  rates: createAccountRates(),
});

export function open({ accounts }: Life, id: string): Account {
  const account: Account = {
    ...{ id, number: 0, until: 0, booked: 0, figures: new Map(), inFlight: new Map() },
    ...{ outcome: { outcome: 'window' }, isMarked: false, isFinished: false },
  };
  accounts.set(id, account);
  return account;
}

const keyOf = ({ scopeId, window: { start, end } }: ScopeWindow): string => `${start} ${end} ${scopeId}`;

export const find = ({ counters }: Life, of: ScopeWindow): Counter | undefined => counters.get(keyOf(of));

/** Figures of the account in a counter, without the batches that are booked. */
export function figuresIn({ figures, booked }: Account, of: ScopeWindow): Figures {
  const key = keyOf(of);
  const fresh = { scopeId: of.scopeId, window: of.window, escrow: 0n, risk: 0n, unbooked: [], left: 0 };
  const found = figures.get(key) ?? fresh;
  figures.set(key, found);
  for (const { batch } of found.unbooked) if (batch <= booked) found.left = Math.max(found.left, batch);
  found.unbooked = found.unbooked.filter(({ batch }) => batch > booked);
  return found;
}

export const hasAnything = ({ escrow, risk, unbooked }: AccountFigures): boolean =>
  escrow !== 0n || risk !== 0n || unbooked.length > 0;

export const figuresOf = (account: Account): Figures[] =>
  [...account.figures.values()].map((one) => figuresIn(account, one)).filter(hasAnything);

/** Changes escrow, by a negative amount too. An absent counter learns of it when it is loaded. */
export function setAside(life: Life, figures: Figures, amount: Nano): void {
  figures.escrow += amount;
  const counter = find(life, figures);
  if (counter !== undefined) counter.held += amount;
}

export function settle(life: Life, account: Account, { lines, batch }: AccountCall): void {
  for (const line of lines) {
    const figures = figuresIn(account, line);
    const freed = (line.spend > 0n ? line.spend : 0n) + line.returned;
    setAside(life, figures, freed < figures.escrow ? -freed : -figures.escrow);
    setAside(life, figures, line.registered);
    figures.risk = line.risk;
    const counter = find(life, line);
    if (counter === undefined || line.spend === 0n) continue;
    counter.spent += line.spend;
    const open = figures.unbooked.find((one) => one.batch === batch);
    if (open === undefined) figures.unbooked.push({ batch, spend: line.spend });
    else open.spend += line.spend;
  }
}

/** Forgets an account that another has closed; an unknown one is known from now on. */
export function close(life: Life, id: string, isCharged: boolean, now: Millis): void {
  const account = life.accounts.get(id) ?? open(life, id);
  account.isMarked = true;
  forget(life, account, isCharged, now);
}

/** Escrow goes back; charged, the risk becomes spend. The id stays known for a while. */
export function forget(life: Life, account: Account, isCharged: boolean, now: Millis): void {
  if (account.isFinished) return;
  for (const figures of figuresOf(account)) {
    setAside(life, figures, -figures.escrow);
    const counter = find(life, figures);
    if (isCharged && counter !== undefined) counter.spent += figures.risk;
  }
  life.rates.end(account.inFlight);
  Object.assign(account, { isFinished: true, until: now + KEEP });
}

export function load(life: Life, { scopeId, window, spent }: ScopeSpend, now: Millis): void {
  const key = keyOf({ scopeId, window });
  if (life.counters.has(key)) return;
  let held = 0n;
  for (const { figures } of life.accounts.values()) held += figures.get(key)?.escrow ?? 0n;
  life.serial += 1;
  const keepUntil = Math.max(now, window.end) + KEEP;
  life.counters.set(key, { scopeId, window, spent, held, serial: life.serial, wanted: new Map(), keepUntil });
}

/** Drops finished accounts, and counters whose window is over and that no account has anything in. */
export function sweep(life: Life, now: Millis): void {
  if (now < life.nextSweep) return;
  life.nextSweep = now + SWEEP_EVERY;
  const { accounts, counters, rates } = life;
  rates.sweep(now);
  for (const [id, { isFinished, until }] of accounts) if (isFinished && until <= now) accounts.delete(id);
  for (const [key, { keepUntil }] of counters) {
    if (keepUntil > now) continue;
    const users = [...accounts.values()].filter(({ figures }) => figures.has(key));
    const isUsed = (account: Account): boolean => {
      const figures = account.figures.get(key);
      return !account.isFinished && figures !== undefined && hasAnything(figuresIn(account, figures));
    };
    if (users.some(isUsed)) continue;
    for (const { figures } of users) figures.delete(key);
    counters.delete(key);
  }
}
