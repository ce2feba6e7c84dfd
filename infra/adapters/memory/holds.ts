// What became of each hold: held, settled, released or expired, and how does each go on from there?
import type { Millis, Nano } from '#core/ports/money.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { MoveAnswer, MoveOperation } from '#core/ports/rates.ts';
import type {
  Expired as ExpiredHold,
  HoldAnswer,
  HoldOperation,
  ReleaseAnswer,
  ReleaseOperation,
  SettleAnswer,
  SettleOperation,
  StoreCall,
} from '#core/ports/store.ts';
import type { CounterState, Counters } from './counters.ts';
import { charge, type Expired, type Held, type HoldState, join, occupy, vacate } from './hold-state.ts';
import { judge } from './judge.ts';
import type { Rates, Shares, Use } from './rates.ts';

type Renewal = StoreCall['renewals'][number];

export interface Holds {
  take(operation: HoldOperation, now: Millis): HoldAnswer;
  settle(operation: SettleOperation, now: Millis): SettleAnswer;
  release(operation: ReleaseOperation, now: Millis): ReleaseAnswer;
  renew(renewal: Renewal, now: Millis): void;
  /** The hold's request goes on to another entry. */
  move(operation: MoveOperation, now: Millis): MoveAnswer;
  /** This counter was just loaded. */
  join(counter: CounterState): void;
  /** Ends leases and forgets what may be forgotten. */
  sweep(now: Millis): void;
  /** Leases that ended and are not acknowledged. */
  expired(): ReadonlyArray<ExpiredHold>;
  forget(id: string, now: Millis): void;
}

const DAY: Millis = 86_400_000;
const UNTOUCHED = { late: undefined, until: undefined } as const;

export function createHolds(counters: Counters, rates: Rates): Holds {
  const states = new Map<string, HoldState>();
  /** Ids that a counter of this scope may have to count when it is loaded. */
  const byScope = new Map<ScopeId, Set<string>>();
  const unacknowledged = new Map<string, ExpiredHold>();
  /** No lease ends and nothing is forgotten before this. */
  let nextSweep = Number.POSITIVE_INFINITY;

  const watch = (until: Millis): void => {
    nextSweep = Math.min(nextSweep, until);
  };

  const index = (id: string, hold: Held): void => {
    for (const { scopeId } of hold.note.charges) {
      const ids = byScope.get(scopeId);
      if (ids === undefined) byScope.set(scopeId, new Set([id]));
      else ids.add(id);
    }
  };

  const drop = (id: string, state: HoldState): void => {
    states.delete(id);
    if (state.state === 'released') return;
    for (const { scopeId } of state.note.charges) {
      const ids = byScope.get(scopeId);
      ids?.delete(id);
      if (ids?.size === 0) byScope.delete(scopeId);
    }
  };

  const endRates = ({ shares }: Held, use: Use, now: Millis): void => {
    if (shares !== undefined) rates.end(shares, use, now);
  };

  const expire = (id: string, hold: Held, now: Millis): void => {
    const charged = hold.known ?? hold.amount;
    vacate(hold, charged);
    endRates(hold, {}, now);
    const { at, amount, note } = hold;
    const expired: Expired = { state: 'expired', at, amount, note, counters: hold.counters, charged, ...UNTOUCHED };
    states.set(id, expired);
    unacknowledged.set(id, { id, charged, note });
  };

  const settleUnknown = ({ id, cost, counted, counters: of }: SettleOperation, now: Millis): SettleAnswer => {
    if (of === undefined) return { outcome: 'unknown' };
    const found = of.map((counter) => counters.find(counter));
    // A window that is over needs no counter any more.
    const absent = of.flatMap(({ window }, at) => (found[at] === undefined && window.end > now ? [at] : []));
    if (absent.length > 0) return { outcome: 'absent', counters: absent };
    const there = found.filter((counter) => counter !== undefined);
    charge(there, cost - (counted ?? 0n));
    const note = { charges: [], model: '', identifier: '' };
    states.set(id, { state: 'settled', at: now, amount: cost, cost, note, counters: there });
    return { outcome: 'settled' };
  };

  const toldOf = ({ rates: asked }: HoldOperation, shares: Shares | undefined, now: Millis) =>
    asked === undefined ? {} : { rates: rates.reply(asked, shares, now) };

  /** Spend that refuses says so; a rate that refuses does before holds that are in the way. */
  const judgeRates = (operation: HoldOperation, answer: HoldAnswer, now: Millis): HoldAnswer => {
    const { rates: asked } = operation;
    if (asked === undefined || !('amount' in answer || 'counter' in answer)) return answer;
    const told = { rates: rates.reply(asked, undefined, now) };
    const refusal = answer.outcome === 'exceeded' ? undefined : rates.judge(asked, now);
    return refusal === undefined ? { ...answer, ...told } : { outcome: 'limited', ...refusal, ...told };
  };

  return {
    take(operation, now) {
      const { id, note, lease, deadline } = operation;
      const before = states.get(id);
      if (before?.state === 'held' || before?.state === 'settled') {
        return { outcome: 'held', amount: before.amount, ...toldOf(operation, before.shares, now) };
      }
      if (before !== undefined || now > deadline) return { outcome: 'late' };
      const found = operation.counters.map((counter) => counters.find(counter));
      const answer = judgeRates(operation, judge(operation, found, now), now);
      if (answer.outcome !== 'held') return answer;
      const shares = operation.rates === undefined ? undefined : rates.take(operation.rates, now);
      const taken = note.charges.flatMap(({ scopeId }) => counters.at(scopeId, now));
      const { amount } = answer;
      const until = now + lease;
      const hold: Held = { state: 'held', at: now, amount, note, counters: taken, known: undefined, until, shares };
      for (const counter of taken) occupy(hold, counter);
      states.set(id, hold);
      index(id, hold);
      watch(hold.until);
      return { ...answer, ...toldOf(operation, shares, now) };
    },

    settle(operation, now) {
      const { id, cost } = operation;
      const before = states.get(id);
      if (before === undefined) return settleUnknown(operation, now);
      if (before.state === 'expired') return settleLate(before, cost);
      if (before.state !== 'held') return { outcome: before.state };
      vacate(before, cost);
      endRates(before, { tokens: operation.tokens }, now);
      const { at, amount, note, shares } = before;
      states.set(id, { state: 'settled', at, amount, cost, note, counters: before.counters, shares });
      return { outcome: 'settled' };
    },

    release({ id, lease, called }, now) {
      const before = states.get(id);
      if (before?.state === 'settled') return { outcome: 'settled' };
      if (before?.state === 'expired') return releaseLate(before);
      if (before?.state === 'held') {
        vacate(before, 0n);
        endRates(before, { tokens: 0, uncounted: called !== true }, now);
        drop(id, before);
      }
      states.set(id, { state: 'released', until: now + lease });
      watch(now + lease);
      return { outcome: 'released' };
    },

    renew({ id, known, lease }, now) {
      const hold = states.get(id);
      if (hold?.state !== 'held') return;
      hold.until = Math.max(hold.until, now + lease);
      if (known !== undefined) hold.known = known;
    },

    move(operation, now) {
      const hold = states.get(operation.id);
      if (hold?.state !== 'held' || hold.shares === undefined) return undefined;
      return rates.move(operation, hold.shares, now);
    },

    join(counter) {
      for (const id of byScope.get(counter.scopeId) ?? []) {
        const hold = states.get(id);
        if (hold !== undefined) join(hold, counter);
      }
    },

    sweep(now) {
      if (now < nextSweep) return;
      nextSweep = Number.POSITIVE_INFINITY;
      for (const [id, state] of states) {
        if (state.state === 'settled' || state.until === undefined) continue;
        if (now < state.until) watch(state.until);
        else if (state.state === 'held') expire(id, state, now);
        else drop(id, state);
      }
    },

    expired: () => (unacknowledged.size === 0 ? [] : [...unacknowledged.values()]),

    forget(id, now) {
      const state = states.get(id);
      if (state?.state === 'settled') drop(id, state);
      if (state?.state !== 'expired' || state.until !== undefined) return;
      unacknowledged.delete(id);
      state.until = now + DAY;
      watch(state.until);
    },
  };
}

function settleLate(hold: Expired, cost: Nano): SettleAnswer {
  if (hold.late?.outcome === 'released') return { outcome: 'released' };
  if (hold.late === undefined) change(hold, 'settled', cost);
  return { outcome: 'expired', charged: hold.charged };
}

function releaseLate(hold: Expired): ReleaseAnswer {
  if (hold.late?.outcome === 'settled') return { outcome: 'settled' };
  if (hold.late === undefined) change(hold, 'released', 0n);
  return { outcome: 'expired', charged: hold.charged };
}

function change(hold: Expired, outcome: 'settled' | 'released', cost: Nano): void {
  charge(hold.counters, cost - hold.charged);
  hold.late = { outcome, cost };
}
