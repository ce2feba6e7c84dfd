// A model store that is too simple to be wrong: one list of holds, summed for every question.
import * as fc from 'fast-check';
import type { Millis, Nano } from './money.ts';
import type { Counter, HoldAnswer, StoreCall } from './store.ts';

/** One step of a random history: time passes, then an event happens to a hold. */
export interface Event {
  readonly advance: Millis;
  readonly kind: 'hold' | 'settle' | 'release' | 'renew' | 'nothing';
  /** Index of the hold, counted from the newest. */
  readonly which: number;
  /** The scopes among a, b, c that pay. */
  readonly scopes: ReadonlyArray<number>;
  /** Thousandths of the limit. */
  readonly amount: number;
  readonly minAmount: number;
}

export const eventOf: fc.Arbitrary<Event> = fc.record({
  advance: fc.constantFrom(0, 0, 0, 150, 450),
  kind: fc.constantFrom('hold', 'hold', 'hold', 'settle', 'settle', 'release', 'renew', 'nothing'),
  which: fc.nat(4),
  scopes: fc.subarray([0, 1, 2], { minLength: 1 }),
  amount: fc.nat(600),
  minAmount: fc.nat(600),
});

interface ModelHold {
  readonly id: string;
  readonly amount: Nano;
  readonly scopes: ReadonlyArray<number>;
  state: 'held' | 'settled' | 'released' | 'expired';
  /** The end of its lease; for a released hold, the time when its id is forgotten. */
  until: Millis;
  forgotten: boolean;
  known: Nano | undefined;
  /** The hold's part of the counters. */
  cost: Nano;
  charged: Nano;
  late: 'settled' | 'released' | undefined;
}

const lower = (values: ReadonlyArray<Nano>): Nano => [...values].sort((a, b) => (a < b ? -1 : 1))[0] ?? 0n;

export function modelStore(limit: Nano, lease: Millis) {
  const holds: ModelHold[] = [];
  let now = 0;
  let made = 0;

  const spentIn = (scope: number): Nano =>
    holds.filter(({ scopes }) => scopes.includes(scope)).reduce((sum, { cost }) => sum + cost, 0n);
  const heldIn = (scope: number): Nano =>
    holds
      .filter(({ state, scopes }) => state === 'held' && scopes.includes(scope))
      .reduce((sum, { amount }) => sum + amount, 0n);
  /** Spend beyond the charges of expired leases, found after they ended. */
  const lateIn = (scope: number): Nano =>
    holds
      .filter(({ late, cost, charged, scopes }) => late === 'settled' && cost > charged && scopes.includes(scope))
      .reduce((sum, { cost, charged }) => sum + cost - charged, 0n);
  const find = (id: string): ModelHold | undefined => holds.find((hold) => hold.id === id);

  const settle = (id: string, cost: Nano) => {
    const hold = find(id);
    if (hold === undefined || hold.forgotten) return { outcome: 'unknown' };
    if (hold.state === 'released' || hold.late === 'released') return { outcome: 'released' };
    if (hold.state === 'expired') {
      if (hold.late === undefined) Object.assign(hold, { late: 'settled', cost });
      return { outcome: 'expired', charged: hold.charged };
    }
    if (hold.state === 'held') Object.assign(hold, { state: 'settled', cost });
    return { outcome: 'settled' };
  };

  const release = (id: string) => {
    const hold = find(id);
    if (hold?.state === 'settled' || hold?.late === 'settled') return { outcome: 'settled' };
    if (hold?.state === 'expired') {
      if (hold.late === undefined) Object.assign(hold, { late: 'released', cost: 0n });
      return { outcome: 'expired', charged: hold.charged };
    }
    if (hold !== undefined) Object.assign(hold, { state: 'released', until: now + lease, forgotten: false });
    return { outcome: 'released' };
  };

  const take = (id: string, asked: Nano, wanted: Nano, scopes: ReadonlyArray<number>): HoldAnswer => {
    const minAmount = lower([asked, wanted]);
    const exceeded = scopes.findIndex((scope) => spentIn(scope) >= limit || limit - spentIn(scope) < minAmount);
    const spent = spentIn(scopes[exceeded] ?? -1);
    if (exceeded >= 0) return { outcome: 'exceeded', counter: exceeded, spent };
    const amount = lower([asked, ...scopes.map((scope) => limit - spentIn(scope))]);
    const busy = scopes.findIndex((scope) => amount > 0n && spentIn(scope) + heldIn(scope) + amount > limit);
    if (busy >= 0) return { outcome: 'busy', counter: busy };
    const fresh = { forgotten: false, known: undefined, cost: 0n, charged: 0n, late: undefined };
    holds.push({ id, amount, scopes, state: 'held', until: now + lease, ...fresh });
    return { outcome: 'held', amount };
  };

  return {
    advance(millis: Millis): void {
      now += millis;
    },

    /** The call that applies the event to the real store; costs stay within the hold. */
    toCall(event: Event, counters: ReadonlyArray<Counter>, storeNow: Millis): StoreCall {
      const nothing: StoreCall = { epoch: 1, settles: [], releases: [], renewals: [], loads: [], holds: [] };
      const part = (share: number, of: Nano): Nano => (of * BigInt(share)) / 1000n;
      if (event.kind === 'hold') {
        const chosen = event.scopes.flatMap((scope) => counters[scope] ?? []);
        const note = { charges: chosen.map(({ scopeId, window }) => ({ scopeId, window })), model: '', identifier: '' };
        const sizes = { amount: part(event.amount, limit), minAmount: part(event.minAmount, limit) };
        const hold = { id: `hold-${made++}`, ...sizes, counters: chosen, note, deadline: storeNow + 60_000, lease };
        return { ...nothing, holds: [hold] };
      }
      const hold = holds.at(-1 - event.which);
      if (hold === undefined || event.kind === 'nothing') return nothing;
      const { id } = hold;
      const cost = part(event.amount, hold.amount);
      if (event.kind === 'settle') return { ...nothing, settles: [{ id, cost }] };
      if (event.kind === 'release') return { ...nothing, releases: [{ id, lease }] };
      return { ...nothing, renewals: [{ id, known: cost, lease }] };
    },

    /** The answer that the store must give to that call. */
    expect(call: Omit<StoreCall, 'epoch'>) {
      const settles = call.settles.map(({ id, cost }) => settle(id, cost));
      const releases = call.releases.map(({ id }) => release(id));
      for (const { id, known } of call.renewals) {
        const hold = find(id);
        if (hold?.state === 'held') Object.assign(hold, { known, until: now + lease });
      }
      for (const hold of holds.filter(({ state, until }) => state === 'held' && until <= now)) {
        const charged = hold.known ?? hold.amount;
        Object.assign(hold, { state: 'expired', cost: charged, charged });
      }
      for (const hold of holds) if (hold.state === 'released' && hold.until <= now) hold.forgotten = true;
      const answers = call.holds.map(({ id, amount, minAmount, counters }) =>
        take(
          id,
          amount,
          minAmount,
          counters.map(({ scopeId }) => ['a', 'b', 'c'].indexOf(scopeId)),
        ),
      );
      return { settles, releases, holds: answers };
    },

    spent: (): Nano[] => [0, 1, 2].map(spentIn),
    /** Expired holds give back all but their known cost; a later settlement still counts (LEDGER 1.4, 2). */
    isWithinLimit: (): boolean => [0, 1, 2].every((scope) => spentIn(scope) + heldIn(scope) <= limit + lateIn(scope)),
  };
}
