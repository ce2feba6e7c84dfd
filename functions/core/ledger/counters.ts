// Counters of an account: the escrow that the store has set aside here, and what live reservations and settlements take
// of it (LEDGER 3).

import { spendWindow } from '../money/window.ts';
import type { RateView, ReservationRefusal } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { counterKey, type ScopeId, type ScopePolicy, type ScopeWindow } from '../ports/policy.ts';
import type { RateReply, RateRequest } from '../ports/rates.ts';

/** An amount that the counter store is not known to have. */
export interface PendingAmount {
  /** The part in the pending call. */
  inCall: Nano;
  /** The part that is not yet in a call. */
  unreported: Nano;
}

/**
 * One scope in one window, as this process sees it.
 *
 *     limit                 = spend of all processes + escrow of all processes + what is left
 *     escrow of the account = live amounts + pending spend + escrow that the pending call returns + idle escrow
 */
export interface CounterState {
  readonly key: string;
  readonly scopeWindow: ScopeWindow;
  /** Only for a derived counter: the scope from whose ledger rows it is counted before it is first loaded. */
  countedFrom: ScopeId | undefined;
  /** The limit of the last policy that was used; undefined: the scope has no limit. */
  limit: Nano | undefined;
  /**
   * The limit under which the store last granted escrow: all escrow of the account was within this limit. Undefined:
   * the account has carried over escrow since then, which no limit has checked.
   */
  limitAtGrant: Nano | undefined;
  /** Escrow of this account, as of the last reply. */
  escrow: Nano;
  /** Escrow that the pending call returns (`returned` of its `CounterChange`). */
  returnedInCall: Nano;
  /** The number of live reservations, and the sum of their amounts. */
  reservations: number;
  liveAmount: Nano;
  /** Costs of ended requests of this process that the store is not known to have. */
  readonly spend: PendingAmount;
  /** The part of these costs that the reported `risk` must cover: the store charges it if process and disk are lost. */
  readonly costToCover: PendingAmount;
  /**
   * The charge of live reservations if this process dies: now (`current`), as last reported, and in the pending call
   * (if there is one).
   */
  readonly risk: { current: Nano; reported: Nano; inCall: Nano | undefined };
  /** Spend of all processes, as of the last reply; undefined: there was no reply. */
  spendOfAll: Nano | undefined;
  /** Escrow of all processes, as of the last reply. */
  escrowOfAll: Nano;
  /** Whether the store has refused a request of another account because of escrow. */
  isWantedByOthers: boolean;
  /** The sum of the amounts reserved in this second, and in the previous second. */
  demand: Nano;
  lastDemand: Nano;
  /** The amount of the last reservation that was not free, and its time on the store's clock. */
  lastAmount: Nano;
  lastReservedAt: Millis;
  /** Requests that wait because reservations in this counter left too little, in order of arrival. */
  readonly waitingRequests: Set<WaitingRequest>;
  /** Whether the counter's sum is being read in PostgreSQL: no call names the counter meanwhile. */
  isLoading: boolean;
  /** The sum of an absent counter for the next call, and the time at which it was read, on the store's clock. */
  loadedSum: { readonly spent: Nano; readonly readAt: Millis } | undefined;
  /** Whether the next call names the counter. */
  isChanged: boolean;
  /** Whether the counter was dropped: another object may have its key now. */
  isDropped: boolean;
  /** The index of the counter in the last call that named it. */
  changeIndex: number;
}

/** The scopes that a request is charged to. */
export interface ChargedCounters {
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /**
   * The windows of these scopes, with or without a limit, as the ledger row has them. The same scopes and windows have
   * the same list object, so that the list is encoded once.
   */
  readonly scopeWindows: ReadonlyArray<ScopeWindow>;
  /** The counters and limits of these scopes, in the same order. */
  readonly counters: ReadonlyArray<CounterState>;
  readonly limits: ReadonlyArray<Nano | undefined>;
}

/** A request that waits for money or a rate: for its reservation, its growth, or a move to another model entry. */
export interface WaitingRequest {
  /** The namespace of the VirtualKey, as in `ReservationParams`. */
  readonly namespace: string;
  /** Windows and limits as of the last call with this request; without scopes if only a rate is requested. */
  chargedCounters: ChargedCounters;
  readonly amount: Nano;
  readonly minAmount: Nano;
  readonly rates: RateRequest | undefined;
  /** Whether the request adds money to a reservation: in the windows of that reservation, and never in a queue. */
  readonly isGrowth: boolean;
  readonly deadline: Millis;
  readonly onReserved: (granted: GrantedReservation) => void;
  readonly onRefused: (refusal: ReservationRefusal) => void;
  /** Rates as of the last reply, if reservations left too little. */
  rateView: { readonly rates?: RateView };
  /** The counter whose queue the request waits in, because reservations left too little there. */
  queuedIn: CounterState | undefined;
  /** Whether the pending call contains the request. */
  isInCall: boolean;
  hasEnded: boolean;
}

/** A grant of the store, or of idle escrow: money in these counters, and rates if they were requested. */
export interface GrantedReservation {
  readonly chargedCounters: ChargedCounters;
  readonly amount: Nano;
  readonly rates?: RateRequest | undefined;
  readonly reply?: RateReply | undefined;
}

export type Counters = ReturnType<typeof createCounters>;

export function createCounters() {
  const counters = new Map<string, CounterState>();
  const chargedCountersOf = new WeakMap<ReadonlyArray<ScopePolicy>, ChargedCounters>();
  const of = ({ scopeId, window }: ScopeWindow): CounterState => {
    const key = counterKey({ scopeId, window });
    let state = counters.get(key);
    if (state === undefined) {
      state = emptyCounter(key, { scopeId, window });
      counters.set(key, state);
    }
    return state;
  };
  return {
    of,
    all: () => counters.values(),
    /**
     * Counters and limits of these scopes now. They are made once for each list of scopes and its windows; changed
     * policies come as a new list.
     */
    ofScopes(scopes: ReadonlyArray<ScopePolicy>, now: Millis): ChargedCounters {
      const cached = chargedCountersOf.get(scopes);
      if (cached !== undefined && isCurrent(cached, now)) return cached;
      const scopeWindows = scopes.map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now) }));
      const limits = scopes.map(({ budget }) => (budget === undefined ? undefined : BigInt(budget.limit)));
      const charged = { scopes, scopeWindows, counters: scopeWindows.map(of), limits };
      charged.counters.forEach((counter, index) => {
        counter.countedFrom = scopes[index]?.countedFrom;
      });
      chargedCountersOf.set(scopes, charged);
      return charged;
    },
    /** Begins a second of demand: counters without figures are dropped. */
    beginSecond(): void {
      for (const state of counters.values()) {
        state.lastDemand = state.demand;
        state.demand = 0n;
        if (isUsed(state)) continue;
        state.isDropped = true;
        counters.delete(state.key);
      }
    },
  };
}

/** The store has everything that the pending call reported. */
export function confirmReport(counter: CounterState): void {
  counter.spend.inCall = 0n;
  counter.costToCover.inCall = 0n;
  endReport(counter);
}

/** The store has nothing of the pending call: all of it is reported again. */
export function revokeReport(counter: CounterState): void {
  for (const quantity of [counter.spend, counter.costToCover]) {
    quantity.unreported += quantity.inCall;
    quantity.inCall = 0n;
  }
  endReport(counter);
}

function endReport(counter: CounterState): void {
  counter.returnedInCall = 0n;
  counter.risk.inCall = undefined;
}

/** Resets the figures of the account, which has made no call. */
export function resetFigures(counter: CounterState): void {
  Object.assign(counter.spend, { inCall: 0n, unreported: 0n });
  Object.assign(counter.costToCover, { inCall: 0n, unreported: 0n });
  counter.risk.reported = 0n;
  endReport(counter);
  Object.assign(counter, { spendOfAll: undefined, escrow: 0n, escrowOfAll: 0n, isWantedByOthers: false });
  Object.assign(counter, { isLoading: false, loadedSum: undefined });
}

const emptyCounter = (key: string, scopeWindow: ScopeWindow): CounterState => ({
  key,
  scopeWindow,
  countedFrom: undefined,
  limit: undefined,
  limitAtGrant: undefined,
  escrow: 0n,
  returnedInCall: 0n,
  reservations: 0,
  liveAmount: 0n,
  spend: { inCall: 0n, unreported: 0n },
  costToCover: { inCall: 0n, unreported: 0n },
  risk: { current: 0n, reported: 0n, inCall: undefined },
  spendOfAll: undefined,
  escrowOfAll: 0n,
  isWantedByOthers: false,
  demand: 0n,
  lastDemand: 0n,
  lastAmount: 0n,
  lastReservedAt: 0,
  waitingRequests: new Set(),
  isLoading: false,
  loadedSum: undefined,
  isChanged: false,
  isDropped: false,
  changeIndex: 0,
});

function isCurrent({ counters }: ChargedCounters, now: Millis): boolean {
  for (const { isDropped, scopeWindow } of counters)
    if (isDropped || now < scopeWindow.window.start || scopeWindow.window.end <= now) return false;
  return true;
}

/** Costs of ended requests that the store is not known to have. */
export const pendingSpend = ({ spend }: CounterState): Nano => spend.inCall + spend.unreported;

/** Escrow that no reservation and no cost needs. Negative if replies cost more than their reservations. */
export const idleEscrow = (counter: CounterState): Nano =>
  counter.escrow - counter.returnedInCall - counter.liveAmount - pendingSpend(counter);

/** Whether escrow that becomes idle may be used again: the limit has not fallen since the grant. */
export const isUsable = ({ limit = 0n, limitAtGrant }: CounterState): boolean =>
  limitAtGrant !== undefined && limitAtGrant <= limit;

/**
 * Whether the whole amount fits into the idle escrow. Without any escrow nothing fits, not even a free request, since
 * spend that has reached the limit also refuses free requests.
 */
export function fits(state: CounterState, amount: Nano): boolean {
  const { limit, escrow, returnedInCall, liveAmount } = state;
  if (limit === undefined) return true;
  if (!isUsable(state)) return false;
  const left = escrow - returnedInCall - pendingSpend(state);
  return left > 0n && left - liveAmount >= amount;
}

/**
 * Whether the store would charge at least the unreported costs of this process if process and disk were lost now.
 */
export const isCovered = ({ costToCover: { inCall, unreported }, risk }: CounterState): boolean =>
  // If the pending call has not arrived, the store charges the last reported risk.
  inCall + unreported <= risk.reported &&
  // If it has arrived, the store has its costs as spend, and charges its risk.
  (risk.inCall === undefined || unreported <= risk.inCall);

function isUsed(counter: CounterState): boolean {
  const { escrow, returnedInCall, spend, risk } = counter;
  if (counter.reservations > 0 || counter.isLoading || counter.isChanged || counter.waitingRequests.size > 0)
    return true;
  if (risk.inCall !== undefined || risk.reported !== 0n || escrow !== 0n || returnedInCall !== 0n) return true;
  return spend.inCall !== 0n || spend.unreported !== 0n;
}
