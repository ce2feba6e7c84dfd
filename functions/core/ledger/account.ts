// The account of a process: live holds, ended requests on their way to PostgreSQL, and the numbers of its calls (LEDGER 3, 8).

import type { Clock } from '../ports/clock.ts';
import type { RateUse } from '../ports/counter-store.ts';
import type { Hold } from '../ports/ledger.ts';
import type { Entry } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { ScopePolicy } from '../ports/policy.ts';
import { type CounterState, type Counters, createCounters, NOTHING_TOLD } from './counters.ts';

/** A hold in flight; its caller has the same object. */
export interface LiveHold extends Hold {
  /** Larger where it has grown. */
  amount: Nano;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  readonly counters: ReadonlyArray<CounterState>;
  readonly model: string;
  readonly identifier: string;
  readonly since: Millis;
  /** The cost of the reply so far, of a stream. */
  known: (() => Nano) | undefined;
  /** Called when others may hold its money: another process has closed the account. */
  lost: (() => void) | undefined;
  /** The last `known` in the outbox; undefined: none, so that a restart charges its size. */
  written: Nano | undefined;
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
  readonly limits: ReadonlyArray<TakenRate>;
  entry: TakenRate | undefined;
  /** Tokens that were asked for. */
  readonly tokens: number;
}

/** The part of one limit that a request has taken. Absent members are not limited, and so not counted. */
export interface TakenRate {
  readonly id: string;
  readonly requests: number | undefined;
  /** At most the limit. */
  readonly tokens: number | undefined;
  readonly parallel: number;
  /** Where it was taken: a later epoch knows nothing of it. */
  readonly minute: number;
  readonly epoch: number;
}

/** An entry that PostgreSQL does not have yet. */
export interface Ended {
  readonly entry: Entry;
  readonly counters: ReadonlyArray<CounterState>;
  /** The charge that the store must be able to make for it until it is told. */
  readonly cover: Nano;
  readonly since: Millis;
}

/** Why an account is left: another process has closed it, the store is in another epoch or has gone back in time, or our own error has left it half changed. */
export type Loss = 'closed' | 'epoch' | 'behind' | 'error';

/** A process's knowledge of its store, as plain data: on Workers, requests that share no I/O share it (LEDGER 7). */
export interface StoreMemory {
  /** The epoch that was open last. 0: none yet. */
  epoch: number;
  /** The store's count of calls in it, as last answered. */
  calls: number;
  /** How far the store's clock is ahead of ours. */
  ahead: Millis;
}

/** Why nothing is held, told or booked any more. */
export const STOPPED = 'the ledger stops';

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
  /** Resolves when it is; rejects when the ledger has stopped before. */
  opened: PromiseWithResolvers<void>;
  /** Why it is not. */
  why: string;
  /** Requests wait longer. */
  isRebuilding: boolean;
  /** The disk has refused a record: the outbox is discarded. */
  isDiskless: boolean;
  /** The ledger stops: no request is admitted any more; then its parts do nothing any more. */
  isStopping: boolean;
  isOver: boolean;
  /** When the last answered call was sent: on the clock of intervals, and on the wall clock. */
  sentAt: Millis;
  sentAtWall: Millis;
  /** When the store last answered; and why the last call failed: empty, where it did not. */
  heardAt: Millis;
  storeFailure: string;
  /** Live accounts, as last answered. */
  accounts: number;
  readonly store: StoreMemory;
  readonly counters: Counters;
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
  /** Changes of rates by requests that have ended, by limit and minute. */
  readonly uses: Map<string, RateUse>;
  /** Counters that the next call names. */
  readonly changed: Set<CounterState>;
  /** Earlier accounts of this process and of its outbox, with the corrections that are not booked yet; undefined: not closed yet. */
  readonly earlier: Map<string, ReadonlyArray<Ended> | undefined>;
  /** The epoch in which it has told what it holds; 0: none. */
  joined: number;
  /** The epoch in which the store is not what it was: it must be raised. */
  lostIn: number | undefined;
  /** The epoch that the store last answered. */
  storeEpoch: number;
  /** The store's clock. */
  now(): Millis;
}

/** An account that has made no call. */
const unused = () => ({
  ...{ id: '', number: 0, answered: 0, isOpen: false, batch: 1, booked: 0 },
  ...{ untold: [], sent: [], collecting: [], sealed: [] },
  ...{ sentAt: Number.NEGATIVE_INFINITY, sentAtWall: Number.NEGATIVE_INFINITY },
});

export type StoreCount = Pick<StoreMemory, 'epoch' | 'calls'>;

/** The store's count of calls never falls within an epoch. */
export function learnCalls(store: StoreCount, epoch: number, calls: number): void {
  if (store.epoch === epoch) store.calls = Math.max(store.calls, calls);
}

export const createStoreMemory = (ahead: Millis = 0): StoreMemory => ({ epoch: 0, calls: 0, ahead });

/** `store`: by default the wall clock is the best guess at the store's. */
export const createAccount = (clock: Clock, store: StoreMemory): Account => ({
  ...{
    ...unused(),
    epoch: 0,
    accounts: 1,
    heardAt: Number.NEGATIVE_INFINITY,
    storeFailure: '',
    opened: Promise.withResolvers(),
  },
  ...{ why: 'the ledger starts', isRebuilding: false, isDiskless: false, isStopping: false, isOver: false },
  ...{ joined: 0, lostIn: undefined, storeEpoch: 0 },
  ...{ store, counters: createCounters(), live: [], uses: new Map(), changed: new Set(), earlier: new Map() },
  // Whole milliseconds, as PostgreSQL has them: a monotonic clock shows parts.
  now: () => Math.floor(clock.now() + store.ahead),
});

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

/** The hold takes more escrow. A stream's risk is what it has produced, whatever its size. */
export function enlarge(account: Account, hold: LiveHold, by: Nano): void {
  const risk = hold.isStream ? 0n : by;
  hold.amount += by;
  hold.risk += risk;
  for (const counter of hold.counters) {
    counter.live += by;
    counter.risk += risk;
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
    counter.owed += ended.entry.cost;
    counter.uncovered += ended.cover;
    change(account, counter);
  }
}

/** An entry without a hold. Its counters may have been dropped since it was made, when nothing was in them. */
export const oweAgain = (
  account: Account,
  { entry, cover = 0n, since }: Partial<Ended> & Pick<Ended, 'entry' | 'since'>,
): void => owe(account, { entry, counters: entry.charges.map(account.counters.of), cover, since });

/** The next call tells it. */
export function take(account: Account, ended: Ended): void {
  account.sent.push(ended);
  for (const counter of ended.counters) {
    counter.sent += ended.entry.cost;
    counter.sentUncovered += ended.cover;
  }
}

export function use(account: Account, { id, minute, requests, tokens, parallel }: RateUse): void {
  if (requests === 0 && tokens === 0 && parallel === 0) return;
  const key = `${minute ?? ''} ${id}`;
  const before = account.uses.get(key) ?? { requests: 0, tokens: 0, parallel: 0 };
  const sum = { requests: before.requests + requests, tokens: before.tokens + tokens };
  account.uses.set(key, { id, minute, ...sum, parallel: before.parallel + parallel });
}

/** Entries that PostgreSQL is not known to have, the oldest first. */
export const unbookedOf = ({ sealed, collecting, sent, untold }: Account): ReadonlyArray<Ended> => [
  ...sealed,
  ...collecting,
  ...sent,
  ...untold,
];

/** The account is left: what PostgreSQL is not known to have is told again by the next one. */
export function leave(account: Account): void {
  const unbooked = unbookedOf(account);
  Object.assign(account, unused());
  for (const counter of account.counters.all()) Object.assign(counter, NOTHING_TOLD);
  for (const ended of unbooked) oweAgain(account, ended);
  account.uses.clear();
  // The store counts requests in flight by account.
  for (const { counted } of account.live)
    for (const { id, parallel } of limitsOf(counted)) use(account, { id, requests: 0, tokens: 0, parallel });
}

/** The ledger's own object behind a hold. The caller has only the type of the port; every hold is made in holds.ts. */
export const liveOf = (hold: Hold): LiveHold | undefined => ('counters' in hold ? (hold as LiveHold) : undefined);

/** All limits that a hold counts in. */
export function limitsOf(counted: HeldRates | undefined): ReadonlyArray<TakenRate> {
  if (counted === undefined) return [];
  return counted.entry === undefined ? counted.limits : [...counted.limits, counted.entry];
}
