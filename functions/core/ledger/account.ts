// The account of a process: live holds, ended requests on their way to PostgreSQL, and the numbers of its calls (LEDGER 3, 8).

import type { RateUse } from '../ports/accounts.ts';
import type { Entry } from '../ports/books.ts';
import type { Hold } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { RateLimit } from '../ports/rates.ts';
import { type Charges, createCharges } from './charges.ts';
import { type CounterState, type Counters, createCounters } from './counters.ts';
import type { Clocks, StoreMemory } from './deps.ts';

/** A hold in flight; its caller has the same object. */
export interface LiveHold extends Hold {
  counters: ReadonlyArray<CounterState>;
  readonly model: string;
  readonly identifier: string;
  readonly since: Millis;
  /** The cost of the reply so far, of a stream. */
  known: (() => Nano) | undefined;
  /** Called when others may hold its money: another process has closed the account. */
  lost: (() => void) | undefined;
  /** The last `known` in the outbox. */
  written: Nano;
  /** Its part of the risk: its size; of a stream that has been told of, what it has produced. */
  risk: Nano;
  isStream: boolean;
  /** The rates it counts in; undefined without any. */
  readonly counted: HeldRates | undefined;
  /** Set when it settles or releases: resolves when that is durable. */
  ending: Promise<void> | undefined;
  /** Its index among the live holds. */
  place: number;
}

export interface HeldRates {
  readonly limits: ReadonlyArray<RateLimit>;
  entry: RateLimit | undefined;
  /** Tokens that were reserved. */
  readonly tokens: number;
}

/** An entry that PostgreSQL does not have yet. */
export interface Ended {
  readonly entry: Entry;
  counters: ReadonlyArray<CounterState>;
  /** The charge that the store must be able to make for it until it is told. */
  readonly cover: Nano;
  readonly since: Millis;
}

/** Why an account is left: another process has closed it, the store is in another epoch, or it has gone back in time. */
export type Loss = 'closed' | 'epoch' | 'behind';

export interface Account {
  /** Empty: none yet, or left. */
  id: string;
  epoch: number;
  /** The number of the last call, answered or not. */
  number: number;
  /** The number of the last answered call. */
  answered: number;
  /** Whether requests are admitted: the epoch is open and the account has told what it holds. */
  isOpen: boolean;
  /** When the last answered call was sent: on the clock of intervals, and on the wall clock. */
  sentAt: Millis;
  sentAtWall: Millis;
  /** Live accounts, as last answered. */
  accounts: number;
  readonly store: StoreMemory;
  readonly counters: Counters;
  readonly charges: (scopes: Charges['scopes'], now: Millis) => Charges;
  /** In no order. Not a `Set`: a table that has grown old keeps what its successors hold, so that whole requests outlive young garbage collections. */
  readonly live: LiveHold[];
  /** Ended requests: not told, in the pending call, told in the batch that collects, in the batch that is being booked. */
  untold: Ended[];
  sent: Ended[];
  collecting: Ended[];
  sealed: Ended[];
  /** The number of the batch that collects, and of the last one that PostgreSQL has. */
  batch: number;
  booked: number;
  /** Changes of rates by requests that have ended. */
  readonly uses: Map<string, RateUse>;
  /** How many calls were composed, of this account and those before it. */
  composed: number;
  /** Counters that the next call names. */
  readonly changed: Set<CounterState>;
  /** The store's clock. */
  now(): Millis;
}

export function createAccount(clocks: Clocks, isolate: StoreMemory | undefined): Account {
  const { clock, wall } = clocks;
  const counters = createCounters();
  // The wall clock is the best guess at the store's.
  const store = isolate ?? { epoch: 0, calls: 0, ahead: wall.now() - clock.now() };
  return {
    ...{ id: '', epoch: 0, number: 0, answered: 0, isOpen: false, accounts: 1 },
    ...{ sentAt: Number.NEGATIVE_INFINITY, sentAtWall: Number.NEGATIVE_INFINITY },
    ...{ store, counters, charges: createCharges(counters), live: [], changed: new Set(), uses: new Map() },
    ...{ untold: [], sent: [], collecting: [], sealed: [], batch: 1, booked: 0, composed: 0 },
    // Whole milliseconds, as PostgreSQL has them: a monotonic clock shows parts.
    now: () => Math.floor(clock.now() + store.ahead),
  };
}

/** The next call names the counter; while it is loaded, the first call after that. */
export function change(account: Account, counter: CounterState): void {
  if (counter.isChanged || counter.isLoading) return;
  counter.isChanged = true;
  account.changed.add(counter);
}

/** The hold takes its part of the escrow. */
export function begin(account: Account, hold: LiveHold): void {
  hold.place = account.live.push(hold) - 1;
  for (const counter of hold.counters) {
    counter.holds += 1;
    counter.live += hold.amount;
    counter.risk += hold.risk;
    change(account, counter);
  }
}

/** The hold ends: it takes nothing any more. */
export function end(account: Account, hold: LiveHold): void {
  const { live } = account;
  if (live[hold.place] !== hold) return;
  const last = live.pop();
  if (last !== undefined && last !== hold) {
    live[hold.place] = last;
    last.place = hold.place;
  }
  for (const counter of hold.counters) {
    counter.holds -= 1;
    counter.live -= hold.amount;
    counter.risk -= hold.risk;
    change(account, counter);
  }
}

/** A stream has produced more: the risk is what it cost so far, never less than before. */
export function produce(account: Account, hold: LiveHold, cost: Nano): void {
  if (hold.isStream && cost <= hold.risk) return;
  hold.counters = current(account, hold.counters);
  for (const counter of hold.counters) {
    counter.risk += cost - hold.risk;
    change(account, counter);
  }
  hold.risk = cost;
  hold.isStream = true;
}

/** An entry waits to be told. */
export function owe(account: Account, ended: Ended): void {
  account.untold.push(ended);
  for (const counter of ended.counters) {
    counter.untold += ended.entry.cost;
    counter.uncovered += ended.cover;
    change(account, counter);
  }
}

/** The next call tells it. */
export function take(account: Account, ended: Ended): void {
  const { entry, counters, cover } = ended;
  account.sent.push(ended);
  for (const counter of counters) {
    counter.untold -= entry.cost;
    counter.sent += entry.cost;
    counter.uncovered -= cover;
    counter.sentUncovered += cover;
  }
}

export function use(account: Account, { id, requests, tokens, parallel }: RateUse): void {
  const before = account.uses.get(id);
  account.uses.set(id, {
    id,
    requests: requests + (before?.requests ?? 0),
    tokens: tokens + (before?.tokens ?? 0),
    parallel: parallel + (before?.parallel ?? 0),
  });
}

/** The counters that stand for these now: one that nothing was in may have been dropped. */
export const current = (account: Account, counters: ReadonlyArray<CounterState>): ReadonlyArray<CounterState> =>
  counters.some(({ isDropped }) => isDropped) ? counters.map(({ counter }) => account.counters.of(counter)) : counters;

/** Entries that PostgreSQL is not known to have. */
export const unbookedOf = ({ sealed, collecting, sent, untold }: Account): ReadonlyArray<Ended> => [
  ...sealed,
  ...collecting,
  ...sent,
  ...untold,
];

/** The account is left: what PostgreSQL is not known to have is told again by the next one. */
export function leave(account: Account): void {
  const unbooked = unbookedOf(account);
  const rates = account.live.flatMap(({ counted }) => (counted === undefined ? [] : [counted]));
  account.counters.reset();
  for (const counter of account.counters.all()) Object.assign(counter, { untold: 0n, uncovered: 0n });
  Object.assign(account, { id: '', number: 0, answered: 0, isOpen: false, batch: 1, booked: 0 });
  Object.assign(account, { untold: [], sent: [], collecting: [], sealed: [] });
  account.uses.clear();
  account.sentAt = Number.NEGATIVE_INFINITY;
  account.sentAtWall = Number.NEGATIVE_INFINITY;
  for (const ended of unbooked) owe(account, { ...ended, counters: current(account, ended.counters) });
  // The store counts requests in flight by account.
  for (const { limits, entry } of rates)
    for (const limit of entry === undefined ? limits : [...limits, entry])
      use(account, { id: limit.id, requests: 0, tokens: 0, parallel: 1 });
}
