// Counters of an account: the escrow that the store has set aside here, and what live reservations and settlements take
// of it (LEDGER 3).

import { spendWindow } from '../money/window.ts';
import type { RateView, ReservationRefusal } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { counterKey, type ScopePolicy, type ScopeWindow } from '../ports/policy.ts';
import type { RateReply, RateRequest } from '../ports/rates.ts';

/** An amount, by what the counter store knows of it. */
export interface Quantity<Reported> {
  reported: Reported;
  /** In the pending call. */
  inFlight: Nano;
  /** In no call yet. */
  unreported: Nano;
}

/** One scope in one window, as this process sees it. */
export interface CounterState {
  readonly key: string;
  readonly counter: ScopeWindow;
  /** The limit of the policy that was used last; undefined: the scope spends without one. */
  limit: Nano | undefined;
  /**
   * The limit of the last grant, which was within it with all escrow before; undefined: escrow was registered since,
   * whatever the limit says.
   */
  grantedUnder: Nano | undefined;
  /** Escrow as last answered. */
  escrow: Nano;
  /** Escrow that the pending call gives back. */
  returning: Nano;
  /** Live reservations, and the sum of their amounts. */
  reservations: number;
  live: Nano;
  /**
   * Costs of ended requests. `reported`: spend of all processes as the store last answered; undefined: not answered.
   */
  readonly spend: Quantity<Nano | undefined>;
  /** The charge that the store must be able to make for those requests if process and disk are lost. */
  readonly unguaranteed: Omit<Quantity<Nano>, 'reported'>;
  /** The charge of live reservations if this process dies: now, as last reported, and in the pending call (if any). */
  readonly risk: { live: Nano; reported: Nano; inFlight: Nano | undefined };
  /** Escrow of all processes, as the store last answered. */
  reserved: Nano;
  /** An ask elsewhere was refused because of escrow. */
  isWanted: boolean;
  /** Sizes of reservations begun in this second, and in the previous one. */
  demand: Nano;
  lastDemand: Nano;
  /** The size of the last reservation that was not free, and when it was asked for, on the store's clock. */
  lastAmount: Nano;
  lastAt: Millis;
  /** Requests that were refused here because of reservations, in order of arrival. */
  readonly waitQueue: Set<WaitingRequest>;
  /** PostgreSQL is being read for it: no call names it. */
  isLoading: boolean;
  /** The next call names it. */
  isChanged: boolean;
  /** Another object stands for the counter now. */
  isDropped: boolean;
  /** Its index in the call that was composed last with it. */
  changeIndex: number;
}

/** The scopes that pay for a request. */
export interface ChargedCounters {
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /**
   * Their windows, with or without a limit; the entry names each. The same list for the same scopes and windows: it is
   * encoded once.
   */
  readonly all: ReadonlyArray<ScopeWindow>;
  /** Their counters and limits, in the same order. */
  readonly counters: ReadonlyArray<CounterState>;
  readonly limits: ReadonlyArray<Nano | undefined>;
}

/** A request between its arrival and its reservation. */
export interface WaitingRequest {
  /** Windows and limits as of its last ask; without scopes where only a rate is asked for. */
  charges: ChargedCounters;
  readonly amount: Nano;
  readonly minAmount: Nano;
  readonly rates: RateRequest | undefined;
  /** More money for a reservation: in the windows of that reservation, and never in a line. */
  readonly isGrowth: boolean;
  readonly deadline: Millis;
  readonly onReserved: (granted: GrantedReservation) => void;
  readonly onRefused: (refusal: ReservationRefusal) => void;
  /** Rates as last answered, where it was refused because of reservations. */
  rateView: { readonly rates?: RateView };
  /** The counter that refused it because of reservations: it waits in that line. */
  busyIn: CounterState | undefined;
  /** The pending call asks for it. */
  isAsking: boolean;
  isOver: boolean;
}

/** Money of these counters, and rates where they were asked for. */
export interface GrantedReservation {
  readonly charges: ChargedCounters;
  readonly amount: Nano;
  readonly rates?: RateRequest | undefined;
  readonly reply?: RateReply | undefined;
}

export type Counters = ReturnType<typeof createCounters>;

export function createCounters() {
  const counters = new Map<string, CounterState>();
  const known = new WeakMap<ReadonlyArray<ScopePolicy>, ChargedCounters>();
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
     * Reads a list of policies once per list and window; refreshed policies are another list, so nothing grows stale.
     */
    charges(scopes: ReadonlyArray<ScopePolicy>, now: Millis): ChargedCounters {
      const before = known.get(scopes);
      if (before !== undefined && isCurrent(before, now)) return before;
      const all = scopes.map((scope) => ({ scopeId: scope.scopeId, window: spendWindow(scope, now) }));
      const limits = scopes.map(({ budget }) => (budget === undefined ? undefined : BigInt(budget.limit)));
      const charges = { scopes, all, counters: all.map(of), limits };
      known.set(scopes, charges);
      return charges;
    },
    /** A second has passed: counters that nothing is in are dropped. */
    rotate(): void {
      for (const state of counters.values()) {
        Object.assign(state, { lastDemand: state.demand, demand: 0n });
        if (isUsed(state)) continue;
        state.isDropped = true;
        counters.delete(state.key);
      }
    },
  };
}

/** The store has what the pending call reported. */
export function confirmReport(counter: CounterState): void {
  counter.spend.inFlight = 0n;
  counter.unguaranteed.inFlight = 0n;
  endReport(counter);
}

/** The store has taken nothing of the pending call: all of it is reported again. */
export function revokeReport(counter: CounterState): void {
  for (const quantity of [counter.spend, counter.unguaranteed]) {
    quantity.unreported += quantity.inFlight;
    quantity.inFlight = 0n;
  }
  endReport(counter);
}

function endReport(counter: CounterState): void {
  counter.returning = 0n;
  counter.risk.inFlight = undefined;
}

/** An account that has made no call has nothing in a counter. */
export function forgetReports(counter: CounterState): void {
  Object.assign(counter.spend, { reported: undefined, inFlight: 0n, unreported: 0n });
  Object.assign(counter.unguaranteed, { inFlight: 0n, unreported: 0n });
  counter.risk.reported = 0n;
  endReport(counter);
  Object.assign(counter, { escrow: 0n, reserved: 0n, isWanted: false, isLoading: false });
}

const emptyCounter = (key: string, counter: ScopeWindow): CounterState => ({
  key,
  counter,
  limit: undefined,
  grantedUnder: undefined,
  escrow: 0n,
  returning: 0n,
  reservations: 0,
  live: 0n,
  spend: { reported: undefined, inFlight: 0n, unreported: 0n },
  unguaranteed: { inFlight: 0n, unreported: 0n },
  risk: { live: 0n, reported: 0n, inFlight: undefined },
  reserved: 0n,
  isWanted: false,
  demand: 0n,
  lastDemand: 0n,
  lastAmount: 0n,
  lastAt: 0,
  waitQueue: new Set(),
  isLoading: false,
  isChanged: false,
  isDropped: false,
  changeIndex: 0,
});

function isCurrent({ counters }: ChargedCounters, now: Millis): boolean {
  for (const { isDropped, counter } of counters)
    if (isDropped || now < counter.window.start || counter.window.end <= now) return false;
  return true;
}

/** Costs of ended requests that the store is not known to have. */
export const pendingSpend = ({ spend }: CounterState): Nano => spend.inFlight + spend.unreported;

/** Escrow that no reservation and no cost needs. Below zero if replies cost more than their reservations. */
export const idleEscrow = (counter: CounterState): Nano =>
  counter.escrow - counter.returning - counter.live - pendingSpend(counter);

/** Whether escrow that becomes idle may be used again: the limit has not fallen since it was granted. */
export const isUsable = ({ limit = 0n, grantedUnder }: CounterState): boolean =>
  grantedUnder !== undefined && grantedUnder <= limit;

/**
 * Whether the whole reservation fits into the idle escrow. An empty one admits nothing, since a free request is refused
 * by spend that has reached the limit.
 */
export function fits(state: CounterState, amount: Nano): boolean {
  const { limit, escrow, returning, live } = state;
  if (limit === undefined) return true;
  if (!isUsable(state)) return false;
  const left = escrow - returning - pendingSpend(state);
  return left > 0n && left - live >= amount;
}

/**
 * Whether the store could charge what this process has not told, if process and disk were lost now: with the pending
 * call done, and with it not done.
 */
export const isGuaranteed = ({ unguaranteed: { inFlight, unreported }, risk }: CounterState): boolean =>
  inFlight + unreported <= risk.reported && (risk.inFlight === undefined || unreported <= risk.inFlight);

function isUsed({ reservations, isLoading, isChanged, waitQueue, ...amounts }: CounterState): boolean {
  const { escrow, returning, spend, risk } = amounts;
  if (reservations > 0 || isLoading || isChanged || waitQueue.size > 0 || risk.inFlight !== undefined) return true;
  return [escrow, returning, spend.inFlight, spend.unreported, risk.reported].some((amount) => amount !== 0n);
}
