// What became of each hold: held, settled, released or expired, and what did that do to the counters?
import type { Millis, Nano } from '#core/ports/money.ts';
import type {
  Expired,
  HoldAnswer,
  HoldNote,
  HoldOperation,
  ReleaseAnswer,
  SettleAnswer,
  SettleOperation,
  StoreCall,
} from '#core/ports/store.ts';
import type { CounterState, Counters } from './counters.ts';
import { judge } from './judge.ts';

type Renewal = StoreCall['renewals'][number];
type Release = StoreCall['releases'][number];

type HoldState =
  | {
      state: 'held';
      readonly amount: Nano;
      readonly counters: ReadonlyArray<CounterState>;
      readonly note: HoldNote;
      known: Nano | undefined;
      until: Millis;
    }
  | { state: 'settled'; readonly amount: Nano }
  /** `until`: when the id may be forgotten. */
  | { state: 'released'; readonly until: Millis }
  | {
      state: 'expired';
      readonly charged: Nano;
      readonly counters: ReadonlyArray<CounterState>;
      readonly note: HoldNote;
      /** What came after the lease had ended: a repeat changes nothing. */
      late: 'settled' | 'released' | undefined;
      /** Set when it was booked. */
      until: Millis | undefined;
    };

type Held = Extract<HoldState, { state: 'held' }>;

export interface Holds {
  take(operation: HoldOperation, now: Millis): HoldAnswer;
  settle(operation: SettleOperation, now: Millis): SettleAnswer;
  release(operation: Release, now: Millis): ReleaseAnswer;
  renew(renewal: Renewal, now: Millis): void;
  /** Ends leases and forgets what may be forgotten. */
  sweep(now: Millis): void;
  /** Leases that ended and are not acknowledged. */
  expired(): ReadonlyArray<Expired>;
  forget(id: string, now: Millis): void;
}

const DAY: Millis = 86_400_000;

export function createHolds(counters: Counters): Holds {
  const states = new Map<string, HoldState>();
  const unacknowledged = new Map<string, Expired>();
  /** No lease ends and nothing is forgotten before this. */
  let nextSweep = Number.POSITIVE_INFINITY;

  const watch = (until: Millis): void => {
    nextSweep = Math.min(nextSweep, until);
  };

  const expire = (id: string, hold: Held): void => {
    const charged = hold.known ?? hold.amount;
    end(hold, charged);
    states.set(id, {
      state: 'expired',
      charged,
      counters: hold.counters,
      note: hold.note,
      late: undefined,
      until: undefined,
    });
    unacknowledged.set(id, { id, charged, note: hold.note });
  };

  return {
    take(operation, now) {
      const before = states.get(operation.id);
      if (before?.state === 'held' || before?.state === 'settled') return { outcome: 'held', amount: before.amount };
      if (before !== undefined || now > operation.deadline) return { outcome: 'late' };
      const found = operation.counters.map((counter) => counters.find(counter));
      const answer = judge(operation, found, now);
      if (answer.outcome !== 'held') return answer;
      const taken = found.filter((counter) => counter !== undefined);
      for (const counter of taken) {
        counter.held += answer.amount;
        counter.holds += 1;
      }
      const until = now + operation.lease;
      const { note } = operation;
      states.set(operation.id, {
        state: 'held',
        amount: answer.amount,
        counters: taken,
        note,
        known: undefined,
        until,
      });
      watch(until);
      return answer;
    },

    settle({ id, cost, counters: of, counted }, now) {
      const before = states.get(id);
      if (before === undefined) return settleUnknown(id, cost - (counted ?? 0n), of, now);
      if (before.state === 'settled') return { outcome: 'settled' };
      if (before.state === 'released' || (before.state === 'expired' && before.late === 'released')) {
        return { outcome: 'released' };
      }
      if (before.state === 'held') {
        end(before, cost);
        states.set(id, { state: 'settled', amount: before.amount });
        return { outcome: 'settled' };
      }
      if (before.late === undefined) charge(before.counters, cost - before.charged);
      before.late = 'settled';
      return { outcome: 'expired', charged: before.charged };
    },

    release({ id, lease }, now) {
      const before = states.get(id);
      if (before?.state === 'settled' || (before?.state === 'expired' && before.late === 'settled')) {
        return { outcome: 'settled' };
      }
      if (before?.state === 'expired') {
        if (before.late === undefined) charge(before.counters, -before.charged);
        before.late = 'released';
        return { outcome: 'expired', charged: before.charged };
      }
      if (before?.state === 'held') end(before, 0n);
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

    sweep(now) {
      if (now < nextSweep) return;
      nextSweep = Number.POSITIVE_INFINITY;
      for (const [id, state] of states) {
        if (state.state === 'settled' || state.until === undefined) continue;
        if (now < state.until) watch(state.until);
        else if (state.state === 'held') expire(id, state);
        else states.delete(id);
      }
    },

    expired: () => (unacknowledged.size === 0 ? [] : [...unacknowledged.values()]),

    forget(id, now) {
      const state = states.get(id);
      if (state?.state === 'settled') states.delete(id);
      if (state?.state !== 'expired' || state.until !== undefined) return;
      unacknowledged.delete(id);
      state.until = now + DAY;
      watch(state.until);
    },
  };

  /** A hold from before this store began. A window that is over needs no counter any more. */
  function settleUnknown(id: string, cost: Nano, of: SettleOperation['counters'], now: Millis): SettleAnswer {
    if (of === undefined) return { outcome: 'unknown' };
    const found = of.map((counter) => counters.find(counter));
    const absent = of.flatMap((counter, index) =>
      found[index] === undefined && counter.window.end > now ? [index] : [],
    );
    if (absent.length > 0) return { outcome: 'absent', counters: absent };
    charge(
      found.filter((counter) => counter !== undefined),
      cost,
    );
    states.set(id, { state: 'settled', amount: cost });
    return { outcome: 'settled' };
  }
}

/** Frees what was set aside, in the windows it was taken in, and counts what it cost. */
function end(hold: Held, cost: Nano): void {
  for (const counter of hold.counters) {
    counter.held -= hold.amount;
    counter.holds -= 1;
  }
  charge(hold.counters, cost);
}

function charge(counters: ReadonlyArray<CounterState>, cost: Nano): void {
  for (const counter of counters) counter.spent += cost;
}
