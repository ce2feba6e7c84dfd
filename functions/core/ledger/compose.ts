// One numbered call: everything that changed since the last one, as totals per counter, and the requests that need an answer (LEDGER 3).
import { type AccountCall, type Ask, type CounterLine, MAX_ASKS, MAX_LINES, type RateUse } from '../ports/accounts.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type Account, type Ended, take } from './account.ts';
import type { Waiter } from './counters.ts';
import { type CounterState, idleOf, isUsable } from './counters.ts';

/** A call as it was sent, and what it was made of. */
export interface Pending {
  readonly call: AccountCall;
  readonly counters: ReadonlyArray<CounterState>;
  readonly waiters: ReadonlyArray<Waiter>;
  /** The store's count of calls when it was made. */
  readonly calls: number;
}

export const LEASE: Millis = 20_000;
/** A call that arrives later grants nothing: its requests have been refused by then. */
const DEADLINE: Millis = 1000;
/** At most a sixteenth of what is left, divided among the live accounts. */
const SHARE = 16n;

interface Lines {
  readonly counters: CounterState[];
  readonly spends: Nano[];
  readonly serial: number;
}

/** The next call of the account, empty. */
export function toCall(account: Account): AccountCall {
  account.number += 1;
  const { epoch, id, number, batch, booked } = account;
  return {
    ...{ epoch, account: id, number, lease: LEASE, deadline: account.now() + DEADLINE, batch, booked },
    ...{ lines: [], asks: [], uses: [], ends: [], isLast: false },
  };
}

/**
 * Takes what fits out of the account; what does not fit goes with the next call. `asking`: the requests that need the store, the first ones first.
 * Undefined where there is nothing to tell, unless the call is a renewal.
 */
export function compose(account: Account, asking: Iterable<Waiter>, isRenewal: boolean): Pending | undefined {
  account.composed += 1;
  const lines: Lines = { counters: [], spends: [], serial: account.composed };
  const waiters = takeAsks(lines, asking);
  tellEnded(account, lines);
  for (const counter of account.changed) if (!addLines(lines, [counter])) break;
  const uses = takeUses(account);
  if (!isRenewal && lines.counters.length + waiters.length + account.sent.length + uses.length === 0) return undefined;
  const isAsked = new Set(waiters.flatMap(({ counters }) => counters));
  const figures = lines.counters.map((counter, index) => toLine(account, counter, lines.spends[index] ?? 0n, isAsked));
  const call = { ...toCall(account), lines: figures, asks: waiters.map(toAsk), uses };
  return { call, counters: lines.counters, waiters, calls: account.store.calls };
}

/** Changes of rates that fit into a call. */
export function takeUses({ uses }: Account): RateUse[] {
  const taken = [...uses.values()].slice(0, MAX_LINES);
  for (const { id } of taken) uses.delete(id);
  return taken;
}

/** Adds lines of these counters, all or none. */
function addLines({ counters, spends, serial }: Lines, added: ReadonlyArray<CounterState>): boolean {
  let missing = 0;
  for (const counter of added) {
    if (counter.isLoading) return false;
    if (counter.lineOf !== serial) missing += 1;
  }
  if (counters.length + missing > MAX_LINES) return false;
  for (const counter of added) {
    if (counter.lineOf === serial) continue;
    counter.lineOf = serial;
    counter.lineIndex = counters.length;
    counters.push(counter);
    spends.push(0n);
  }
  return true;
}

function takeAsks(lines: Lines, asking: Iterable<Waiter>): Waiter[] {
  const taken: Waiter[] = [];
  for (const waiter of asking) {
    if (taken.length === MAX_ASKS) break;
    if (!addLines(lines, waiter.counters)) continue;
    waiter.isAsking = true;
    taken.push(waiter);
  }
  return taken;
}

const toAsk = ({ counters, amount, minAmount, rates }: Waiter): Ask => ({
  lines: counters.map(({ lineIndex }) => lineIndex),
  ...{ amount, minAmount, ...(rates === undefined ? {} : { rates: rates.request }) },
});

/** Ended requests whose counters all fit; their batch is the one that collects. */
function tellEnded(account: Account, lines: Lines): void {
  if (account.untold.length === 0) return;
  const rest: Ended[] = [];
  for (const ended of account.untold) {
    // A free reply is no news to the store.
    if (ended.entry.cost !== 0n && !addLines(lines, ended.counters)) {
      rest.push(ended);
      continue;
    }
    take(account, ended);
    if (ended.entry.cost === 0n) continue;
    for (const { lineIndex } of ended.counters)
      lines.spends[lineIndex] = (lines.spends[lineIndex] ?? 0n) + ended.entry.cost;
  }
  account.untold = rest;
}

function toLine(account: Account, counter: CounterState, spend: Nano, isAsked: ReadonlySet<CounterState>): CounterLine {
  const { scopeId, window } = counter.counter;
  const { limit, risk } = counter;
  account.changed.delete(counter);
  counter.isChanged = false;
  counter.sentRisk = risk;
  const wanted = wantedOf(account, counter, isAsked.has(counter));
  counter.returning = wanted.returned;
  return { scopeId, window, limit, spend, risk, registered: 0n, ...wanted };
}

/**
 * Escrow to give back, or to get ahead. What the next second needs stays idle, at most the share of what is left: none near the limit, and all of it
 * goes back where requests wait, the limit has fallen, or the window is over.
 */
function wantedOf(account: Account, counter: CounterState, isAsked: boolean): Pick<CounterLine, 'returned' | 'ahead'> {
  const idle = idleOf(counter);
  const free = idle > 0n ? idle : 0n;
  const { limit, spent, held, demand, lastDemand, lastAmount, line, isWanted } = counter;
  const isOver = counter.counter.window.end <= account.now();
  if (limit === undefined || spent === undefined || isOver || isWanted || line.size > 0 || !isUsable(counter))
    return { returned: free, ahead: 0n };
  const share = (limit - spent - held) / (SHARE * BigInt(account.accounts));
  const enough = demand > lastDemand ? demand : lastDemand;
  const most = enough < share ? enough : share;
  const kept = most < lastAmount ? 0n : most;
  if (isAsked) return { returned: free, ahead: kept };
  return free > kept ? { returned: free - kept, ahead: 0n } : { returned: 0n, ahead: kept - free };
}
