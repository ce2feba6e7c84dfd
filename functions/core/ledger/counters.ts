// Counters of an account: the escrow that the store has set aside here, and what live holds and settlements take of it (LEDGER 3).

import type { AskAnswer } from '../ports/accounts.ts';
import type { HoldRefusal, RateView } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { ScopePolicy, ScopeWindow } from '../ports/policy.ts';
import { counterKey } from '../ports/policy.ts';
import type { RatesAsked } from './rates.ts';

/** One scope in one window, as this process sees it. */
export interface CounterState {
  readonly key: string;
  readonly counter: ScopeWindow;
  /** The limit of the policy that was used last; undefined: the scope spends without one. */
  limit: Nano | undefined;
  /** The limit of the last grant, which was within it with all escrow before; undefined: escrow was registered since, whatever the limit says. */
  grantedUnder: Nano | undefined;
  /** Escrow as last answered. */
  escrow: Nano;
  /** Escrow that the pending call gives back. */
  returning: Nano;
  /** Live holds, and their sizes. */
  holds: number;
  live: Nano;
  /** The charge of live holds if this process dies now: sizes; of streams, what they have produced. */
  risk: Nano;
  /** Costs of ended requests that no call has told; and those in the pending call. */
  untold: Nano;
  sent: Nano;
  /** The charge that the store must be able to make for those requests if process and disk are lost. */
  uncovered: Nano;
  sentUncovered: Nano;
  /** The risk that the store has, and the one in the pending call. */
  toldRisk: Nano;
  sentRisk: Nano | undefined;
  /** The store's figures as last answered. */
  spent: Nano | undefined;
  held: Nano;
  /** An ask elsewhere was refused because of escrow. */
  isWanted: boolean;
  /** Sizes of holds begun in this second, and in the one before. */
  demand: Nano;
  lastDemand: Nano;
  /** Seconds since the last request. */
  quiet: number;
  /** The size of the last hold that was not free. */
  lastAmount: Nano;
  /** Requests that were refused here because of holds, in order of arrival. */
  readonly line: Set<Waiter>;
  /** PostgreSQL is being read for it: no call names it. */
  isLoading: boolean;
  /** The next call names it. */
  isChanged: boolean;
  /** Another object stands for the counter now. */
  isDropped: boolean;
  /** Its index in the call that was composed last with it, and which of all calls that was. */
  lineIndex: number;
  lineOf: number;
}

/** A request between its arrival and its hold. */
export interface Waiter {
  /** The scopes of its counters, in the same order. */
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /** Counters that are asked; none where only a rate is asked for. */
  counters: ReadonlyArray<CounterState>;
  readonly amount: Nano;
  readonly minAmount: Nano;
  readonly rates: RatesAsked | undefined;
  /** Rates as last answered, where it was refused because of holds. */
  view: RateView | undefined;
  readonly deadline: Millis;
  /** The counter that refused it because of holds: it waits in that line. */
  busyIn: CounterState | undefined;
  /** The pending call asks for it. */
  isAsking: boolean;
  isOver: boolean;
  /** Windows and limits as of now; called before the request asks. */
  readonly renew: () => void;
  readonly onAnswer: (answer: AskAnswer) => void;
  readonly onRefused: (refusal: HoldRefusal) => void;
}

export interface Counters {
  of(counter: ScopeWindow): CounterState;
  all(): IterableIterator<CounterState>;
  /** The account is left: its escrow is gone, and nothing is told any more. */
  reset(): void;
  /** Drops counters that nothing is in. */
  prune(): void;
}

export function createCounters(): Counters {
  const counters = new Map<string, CounterState>();
  return {
    of(counter) {
      const key = counterKey(counter);
      let state = counters.get(key);
      if (state === undefined) {
        state = emptyCounter(key, counter);
        counters.set(key, state);
      }
      return state;
    },
    all: () => counters.values(),
    reset() {
      for (const state of counters.values()) {
        state.untold += state.sent;
        state.uncovered += state.sentUncovered;
        Object.assign(state, { escrow: 0n, returning: 0n, sent: 0n, sentUncovered: 0n, toldRisk: 0n });
        Object.assign(state, { sentRisk: undefined, spent: undefined, held: 0n, isWanted: false, isLoading: false });
      }
    },
    prune() {
      for (const state of counters.values()) {
        if (isUsed(state)) continue;
        state.isDropped = true;
        counters.delete(state.key);
      }
    },
  };
}

/** Escrow that no hold and no untold cost needs. Below zero where replies cost more than their holds. */
export const idleOf = ({ escrow, returning, live, untold, sent }: CounterState): Nano =>
  escrow - returning - live - untold - sent;

/** Whether escrow that becomes idle may be used again: the limit has not fallen since it was granted. */
export const isUsable = ({ limit = 0n, grantedUnder }: CounterState): boolean =>
  grantedUnder !== undefined && grantedUnder <= limit;

/** Whether the whole hold fits into the idle escrow. An empty one admits nothing, since a free request is refused by spend that has reached the limit. */
export function fits(state: CounterState, amount: Nano): boolean {
  const { limit, escrow, returning, untold, sent, live } = state;
  if (limit === undefined) return true;
  if (!isUsable(state)) return false;
  const left = escrow - returning - untold - sent;
  return left > 0n && left - live >= amount;
}

/**
 * Whether the store could charge what this process has not told, if process and disk were lost now: with the pending call done, and with
 * it not done.
 */
export function isCovered({ uncovered, sentUncovered, toldRisk, sentRisk }: CounterState): boolean {
  return uncovered + sentUncovered <= toldRisk && (sentRisk === undefined || uncovered <= sentRisk);
}

/** Requests that wait for an answer know the counters of their last seconds. */
const QUIET = 3;

function isUsed({ holds, quiet, isLoading, isChanged, line, sentRisk, ...amounts }: CounterState): boolean {
  const { escrow, returning, untold, sent, toldRisk } = amounts;
  if (holds > 0 || quiet < QUIET || isLoading || isChanged || line.size > 0 || sentRisk !== undefined) return true;
  return escrow !== 0n || returning !== 0n || untold !== 0n || sent !== 0n || toldRisk !== 0n;
}

const emptyCounter = (key: string, { scopeId, window }: ScopeWindow): CounterState => ({
  ...{ key, counter: { scopeId, window }, limit: undefined, grantedUnder: undefined, escrow: 0n, returning: 0n },
  ...{ holds: 0, live: 0n, risk: 0n, untold: 0n, sent: 0n, uncovered: 0n, sentUncovered: 0n, toldRisk: 0n },
  ...{ sentRisk: undefined, spent: undefined, held: 0n, isWanted: false, line: new Set() },
  ...{ demand: 0n, lastDemand: 0n, lastAmount: 0n, quiet: 0 },
  ...{ isLoading: false, isChanged: false, isDropped: false, lineIndex: 0, lineOf: 0 },
});
