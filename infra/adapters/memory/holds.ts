// Holds: held, settled, released or expired, and how each goes on from there.
import type { Millis } from '#core/ports/money.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { MoveAnswer, MoveOperation } from '#core/ports/rates.ts';
import type {
  EntryName,
  Expired as ExpiredHold,
  HoldAnswer,
  HoldNote,
  HoldOperation,
  Part,
  Registration,
  ReleaseAnswer,
  ReleaseOperation,
  SettleAnswer,
  SettleOperation,
  StoreCall,
} from '#core/ports/store.ts';
import type { CounterState, Counters } from './counters.ts';
import { decide } from './decide.ts';
import { createHoldIndex } from './hold-index.ts';
import {
  charge,
  type Expired,
  type Held,
  type HoldState,
  join,
  occupy,
  partsOf,
  type Settled,
  vacate,
} from './hold-state.ts';
import type { Rates, Shares, Use } from './rates.ts';

type Renewal = StoreCall['renewals'][number];

export interface Holds {
  take(operation: HoldOperation, now: Millis): HoldAnswer;
  register(registration: Registration, now: Millis): void;
  settle(operation: SettleOperation, now: Millis, by?: string): SettleAnswer;
  release(operation: ReleaseOperation, now: Millis, by?: string): ReleaseAnswer;
  renew(renewal: Renewal, now: Millis): void;
  /** The hold's request goes on to another entry. */
  move(operation: MoveOperation, now: Millis): MoveAnswer;
  /** This counter was just loaded, with a sum that has these entries. */
  join(counter: CounterState, booked: ReadonlyArray<EntryName>): void;
  /** Ends leases and forgets what may be forgotten. */
  sweep(now: Millis): void;
  /** Leases that ended and are not acknowledged. */
  expired(): ReadonlyArray<ExpiredHold>;
  forget(name: EntryName, now: Millis): void;
  /** Parts without acknowledgement that this counter counts, or would count when it is loaded. */
  partsIn(counter: ScopeWindow): Part[];
  /** Records of which something is not acknowledged, in the order in which they were counted. */
  unbooked(): Iterable<readonly [string, Settled | Expired]>;
}

const DAY: Millis = 86_400_000;
const UNTOUCHED = { late: undefined, until: undefined } as const;

export function createHolds(counters: Counters, rates: Rates): Holds {
  const states = new Map<string, HoldState>();
  /** Holds that a counter of their scopes may have to count when it is loaded. */
  const index = createHoldIndex();
  const unacknowledged = new Map<string, ExpiredHold>();
  /** In the order in which they were counted. */
  const pending = new Set<string>();
  /** No lease ends and nothing is forgotten before this. */
  let nextSweep = Number.POSITIVE_INFINITY;

  const watch = (until: Millis): void => {
    nextSweep = Math.min(nextSweep, until);
  };

  const drop = (id: string, state: HoldState): void => {
    states.delete(id);
    pending.delete(id);
    if (state.state !== 'released') index.remove(id, state.note);
  };

  const countersAt = ({ charges }: HoldNote, instant: Millis): CounterState[] => {
    const found: CounterState[] = [];
    for (const { scopeId } of charges) counters.at(scopeId, instant, found);
    // An array that has grown by pushes would keep room for more, as long as the hold lives.
    return found.slice();
  };

  const hold = (id: string, held: Held): void => {
    for (const counter of held.counters) occupy(held, counter);
    states.set(id, held);
    index.add(id, held.note);
    watch(held.until);
  };

  const endRates = ({ shares }: Held, use: Use, now: Millis): void => {
    if (shares !== undefined) rates.end(shares, use, now);
  };

  const expire = (id: string, hold: Held, now: Millis): void => {
    const charged = hold.known ?? hold.amount;
    vacate(hold, charged);
    endRates(hold, {}, now);
    const { at, amount, note } = hold;
    const { counters: taken } = hold;
    states.set(id, { state: 'expired', at, amount, note, counters: taken, since: now, charged, ...UNTOUCHED });
    pending.add(id);
    unacknowledged.set(id, { id, charged, note });
  };

  const settleUnknown = (operation: SettleOperation, now: Millis, by: string | undefined): SettleAnswer => {
    const { id, cost, counted, counters: of, note: settlement } = operation;
    if (of === undefined) return { outcome: 'unknown' };
    // A window that is over needs no counter any more.
    const absent = of.flatMap((one, at) => (counters.find(one) === undefined && one.window.end > now ? [at] : []));
    if (absent.length > 0) return { outcome: 'absent', counters: absent };
    const charges = settlement?.charges ?? of;
    const note = { charges, model: settlement?.model ?? '', identifier: settlement?.identifier ?? '' };
    // Some instant that all its windows have.
    const at = Math.min(now, ...charges.map(({ window }) => window.end - 1));
    const there = new Set([...of.flatMap((one) => counters.find(one) ?? []), ...countersAt(note, at)]);
    const delta = cost - (counted ?? 0n);
    charge([...there], delta);
    const kind = settlement?.kind ?? 'settled';
    const taken = { at, amount: cost, note, counters: [...there] };
    states.set(id, { state: 'settled', ...taken, kind, cost: delta, since: now, by, settlement });
    index.add(id, note);
    pending.add(id);
    return { outcome: 'settled' };
  };

  const change = (id: string, hold: Expired, late: Omit<NonNullable<Expired['late']>, 'isBooked'>): void => {
    charge(hold.counters, late.cost - hold.charged);
    hold.late = { ...late, isBooked: false };
    pending.add(id);
  };

  const toldOf = ({ rates: asked }: HoldOperation, shares: Shares | undefined, now: Millis) =>
    asked === undefined ? {} : { rates: rates.reply(asked, shares, now) };

  /** Spend that refuses says so; a rate that refuses does before holds that are in the way. */
  const decideRates = (operation: HoldOperation, answer: HoldAnswer, now: Millis): HoldAnswer => {
    const { rates: asked } = operation;
    if (asked === undefined || !('amount' in answer || 'counter' in answer)) return answer;
    const told = { rates: rates.reply(asked, undefined, now) };
    const refusal = answer.outcome === 'exceeded' ? undefined : rates.check(asked, now);
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
      const found = operation.counters.map(counters.find);
      const answer = decideRates(operation, decide(operation, found, now), now);
      if (answer.outcome !== 'held') return answer;
      const { amount } = answer;
      const shares = operation.rates === undefined ? undefined : rates.take(operation.rates, now);
      const taken = countersAt(note, now);
      hold(id, { state: 'held', at: now, amount, note, counters: taken, known: undefined, until: now + lease, shares });
      return operation.rates === undefined ? answer : { ...answer, ...toldOf(operation, shares, now) };
    },

    register({ id, amount, at, known, charged, note, lease }, now) {
      const before = states.get(id);
      if (before !== undefined && (before.state !== 'held' || charged === undefined)) return;
      if (before !== undefined) {
        vacate(before, 0n);
        endRates(before, {}, now);
      }
      const taken = { at, amount, note, counters: countersAt(note, at) };
      if (charged === undefined)
        return hold(id, { state: 'held', ...taken, known, until: now + lease, shares: undefined });
      states.set(id, { state: 'expired', ...taken, since: now, charged, late: undefined, until: now + DAY });
      index.add(id, note);
      watch(now + DAY);
    },

    settle(operation, now, by) {
      const { id, cost, note: settlement } = operation;
      const before = states.get(id);
      if (before === undefined) return settleUnknown(operation, now, by);
      if (before.state === 'expired') {
        if (before.late?.outcome === 'released') return { outcome: 'released' };
        if (before.late === undefined) change(id, before, { outcome: 'settled', cost, since: now, by, settlement });
        return { outcome: 'expired', charged: before.charged };
      }
      if (before.state !== 'held') return { outcome: before.state };
      vacate(before, cost);
      endRates(before, { tokens: operation.tokens }, now);
      const { at, amount, note, shares, counters: taken } = before;
      const kind = settlement?.kind ?? 'settled';
      states.set(id, {
        state: 'settled',
        at,
        amount,
        note,
        shares,
        counters: taken,
        kind,
        cost,
        since: now,
        by,
        settlement,
      });
      pending.add(id);
      return { outcome: 'settled' };
    },

    release({ id, lease, called }, now, by) {
      const before = states.get(id);
      if (before?.state === 'settled') return { outcome: 'settled' };
      if (before?.state === 'expired') {
        if (before.late?.outcome === 'settled') return { outcome: 'settled' };
        if (before.late === undefined)
          change(id, before, { outcome: 'released', cost: 0n, since: now, by, settlement: undefined });
        return { outcome: 'expired', charged: before.charged };
      }
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

    join(counter, booked) {
      for (const id of index.of(counter.scopeId)) {
        const hold = states.get(id);
        if (hold !== undefined) join(id, hold, counter, booked);
      }
    },

    sweep(now) {
      if (now < nextSweep) return;
      nextSweep = Number.POSITIVE_INFINITY;
      for (const [id, state] of states) {
        if (state.state === 'settled' || state.until === undefined) continue;
        if (now < state.until || pending.has(id)) watch(Math.max(state.until, now + 1));
        else if (state.state === 'held') expire(id, state, now);
        else drop(id, state);
      }
    },

    expired: () => (unacknowledged.size === 0 ? [] : [...unacknowledged.values()]),

    forget({ id, kind }, now) {
      const state = states.get(id);
      // The end of a lease under an epoch that is over says nothing of what was settled since.
      if (state?.state === 'settled') return kind === 'settled' || kind === state.kind ? drop(id, state) : undefined;
      if (state?.state !== 'expired') return;
      if (kind === 'correction') {
        if (state.late !== undefined) state.late.isBooked = true;
      } else if (state.until === undefined) {
        unacknowledged.delete(id);
        state.until = now + DAY;
        watch(state.until);
      }
      // The hold stays with its scopes: its settlement may still come, and counts in counters that are loaded until then.
      if (partsOf(id, state).length === 0) pending.delete(id);
    },

    partsIn(of) {
      const found = counters.find(of);
      return [...index.of(of.scopeId)].flatMap((id) => {
        const state = states.get(id);
        if (state === undefined || state.state === 'released' || state.state === 'held') return [];
        const counts = found === undefined ? isAt(state.at, of) : state.counters.includes(found);
        return counts ? partsOf(id, state) : [];
      });
    },

    *unbooked() {
      for (const id of pending) {
        const state = states.get(id);
        if (state?.state === 'settled' || state?.state === 'expired') yield [id, state];
      }
    },
  };
}

const isAt = (at: Millis, { window }: ScopeWindow): boolean => window.start <= at && at < window.end;
