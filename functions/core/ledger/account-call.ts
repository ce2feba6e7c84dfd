// One numbered call: everything that changed since the last one, as totals per counter; and what its answer changes
// (LEDGER 3).
import {
  type AccountCall,
  type AccountReply,
  type CounterChange,
  MAX_COUNTERS,
  MAX_REQUESTS,
  type RateChange,
  type ReservationRequest,
} from '../ports/counter-store.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type Account, addRateChange, markChanged, sendCharges } from './account.ts';
import {
  type CounterState,
  confirmReport,
  idleEscrow,
  isUsable,
  revokeReport,
  type WaitingRequest,
} from './counters.ts';

/** A call as it was sent, and what it was made of. */
export interface PendingCall {
  readonly call: AccountCall;
  readonly counters: ReadonlyArray<CounterState>;
  readonly waiters: ReadonlyArray<WaitingRequest>;
  /** The store's count of calls when it was made. */
  readonly calls: number;
}

export type DoneReply = Extract<AccountReply, { outcome: 'done' }>;

const LEASE: Millis = 20_000;
/** A call that arrives later grants nothing: its requests have been refused by then. */
const DEADLINE: Millis = 1000;
/** Escrow that no request has asked for this long goes back with the next beat, so within a second. */
const UNUSED_AFTER: Millis = 750;
/** At most a sixteenth of what is left, divided among the live accounts. */
const IDLE_SHARE = 16n;

/** The next call of the account, empty. */
export function toCall(account: Account): AccountCall {
  account.number += 1;
  const { epoch, id, number, batch, booked } = account;
  return {
    epoch,
    account: id,
    number,
    lease: LEASE,
    deadline: account.now() + DEADLINE,
    batch,
    booked,
    changes: [],
    requests: [],
    rateChanges: [],
    previousAccounts: [],
    isLast: false,
  };
}

/**
 * Takes what fits out of the account; what does not fit goes with the next call. `asking`: the requests that need the
 * store, the first ones first.
 * Undefined where there is nothing to tell, unless the call is a renewal.
 */
export function compose(
  account: Account,
  asking: Iterable<WaitingRequest>,
  isRenewal: boolean,
): PendingCall | undefined {
  const counters: CounterState[] = [];
  const waiters = takeRequests(counters, asking);
  // Requests whose counters all fit. A free reply is no news to the store.
  sendCharges(account, ({ row, counters: charged }) => row.cost === 0n || addCounters(counters, charged));
  for (const counter of account.changed) if (!addCounters(counters, [counter])) break;
  const uses = takeRateChanges(account);
  if (!isRenewal && counters.length + waiters.length + account.requests.in('inFlight').length + uses.length === 0)
    return undefined;
  const isAsked = new Set(waiters.flatMap(({ charges }) => charges.counters));
  const lines = counters.map((counter) => toCounterChange(account, counter, isAsked.has(counter)));
  const call = { ...toCall(account), changes: lines, requests: waiters.map(toReservationRequest), rateChanges: uses };
  return { call, counters, waiters, calls: account.store.calls };
}

/** Changes of rates that fit into a call. */
export function takeRateChanges({ rateChanges }: Account): RateChange[] {
  const taken = [...rateChanges].slice(0, MAX_COUNTERS);
  for (const [key] of taken) rateChanges.delete(key);
  return taken.map(([, use]) => use);
}

/** Adds lines of these counters, all or none. */
function addCounters(lines: CounterState[], added: ReadonlyArray<CounterState>): boolean {
  let missing = 0;
  for (const counter of added) {
    if (counter.isLoading) return false;
    if (lines[counter.changeIndex] !== counter) missing += 1;
  }
  if (lines.length + missing > MAX_COUNTERS) return false;
  for (const counter of added)
    if (lines[counter.changeIndex] !== counter) counter.changeIndex = lines.push(counter) - 1;
  return true;
}

function takeRequests(lines: CounterState[], asking: Iterable<WaitingRequest>): WaitingRequest[] {
  const taken: WaitingRequest[] = [];
  for (const waiter of asking) {
    if (taken.length === MAX_REQUESTS) break;
    if (!addCounters(lines, waiter.charges.counters)) continue;
    waiter.isAsking = true;
    taken.push(waiter);
  }
  return taken;
}

const toReservationRequest = ({ charges, amount, minAmount, rates, isGrowth }: WaitingRequest): ReservationRequest => ({
  counters: charges.counters.map(({ changeIndex }) => changeIndex),
  amount,
  minAmount,
  rates,
  ...(isGrowth ? { isGrowth } : {}),
});

export function toCounterChange(account: Account, counter: CounterState, isAsked: boolean): CounterChange {
  const { scopeId, window } = counter.counter;
  const { limit, spend, risk } = counter;
  account.changed.delete(counter);
  counter.isChanged = false;
  risk.inFlight = risk.live;
  const wanted = escrowChangeOf(account, counter, isAsked);
  counter.returning = wanted.returned;
  return { scopeId, window, limit, spend: spend.inFlight, risk: risk.live, registered: 0n, ...wanted };
}

/**
 * Escrow to give back, or to get ahead. What the next second needs stays idle, at most the share of what is left: none
 * near the limit, and all of it goes back where requests wait, none has come for a while, the limit has fallen, or the
 * window is over.
 */
function escrowChangeOf(
  account: Account,
  counter: CounterState,
  isAsked: boolean,
): Pick<CounterChange, 'returned' | 'ahead'> {
  const idle = idleEscrow(counter);
  const free = idle > 0n ? idle : 0n;
  const { limit, spend, reserved, demand, lastDemand, lastAmount, lastAt, waitQueue, isWanted } = counter;
  const now = account.now();
  const isOver = counter.counter.window.end <= now;
  const isUnused = lastAt + UNUSED_AFTER <= now || isWanted || waitQueue.size > 0;
  const spent = spend.reported;
  if (limit === undefined || spent === undefined || isOver || isUnused || !isUsable(counter))
    return { returned: free, ahead: 0n };
  const share = (limit - spent - reserved) / (IDLE_SHARE * BigInt(account.accounts));
  const enough = demand > lastDemand ? demand : lastDemand;
  const most = enough < share ? enough : share;
  const kept = most < lastAmount ? 0n : most;
  if (isAsked) return { returned: free, ahead: kept };
  return free > kept ? { returned: free - kept, ahead: 0n } : { returned: 0n, ahead: kept - free };
}

/** The call was done. */
export function applyDone(account: Account, { call, counters, waiters }: PendingCall, reply: DoneReply): void {
  account.answered = call.number;
  // A repeated call does not renew a lease that has ended.
  account.accounts = Math.max(1, reply.accounts);
  counters.forEach((counter, index) => {
    const [told, line] = [call.changes[index], reply.counters[index]];
    if (told === undefined || line === undefined) return;
    const { spent, reserved, escrow, isWanted } = line;
    counter.grantedUnder = grantedUnder(counter, told, escrow);
    confirmReport(counter);
    counter.spend.reported = spent;
    counter.risk.reported = told.risk;
    Object.assign(counter, { reserved, escrow, isWanted } satisfies Partial<CounterState>);
    if (isWanted && idleEscrow(counter) > 0n) markChanged(account, counter);
  });
  account.requests.move('inFlight', 'openBatch');
  // Grants are part of the risk that the store has.
  waiters.forEach(({ charges }, index) => {
    const answer = reply.replies[index];
    if (answer?.outcome === 'reserved') for (const counter of charges.counters) counter.risk.reported += answer.amount;
  });
}

/** A grant is within the limit that its call names, with all escrow that the account had before. */
function grantedUnder(
  { escrow: before, grantedUnder: under }: CounterState,
  { registered, spend, returned, limit }: CounterChange,
  escrow: Nano,
): Nano | undefined {
  if (registered > 0n) return undefined;
  const freed = (spend > 0n ? spend : 0n) + returned;
  return escrow > (freed < before ? before - freed : 0n) ? limit : under;
}

/** The call was refused as a whole: all it told goes with the next one. */
export function applyRefused(account: Account, { call, counters }: PendingCall): void {
  account.answered = call.number;
  for (const counter of counters) {
    revokeReport(counter);
    markChanged(account, counter);
  }
  account.requests.move('inFlight', 'unreported');
  for (const each of call.rateChanges) addRateChange(account, each);
}
