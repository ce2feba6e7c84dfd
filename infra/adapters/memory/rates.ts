// Rates of live holds, checked and taken in one step with the money (decision 0012).
import type { Millis } from '#core/ports/money.ts';
import type { MoveAnswer, MoveOperation, RateLimit, RateRefusal, RateReply, RateRequest } from '#core/ports/rates.ts';
import { leftOf, longest, type RateState, secondOf, slotAt, type Wait, waitOf } from './rate-state.ts';

/** A hold's shares of its rates. */
export interface Shares {
  readonly chosen: number | undefined;
  readonly limits: Share[];
  entry: Share | undefined;
}

/** A hold's share of one rate. */
interface Share {
  readonly id: string;
  /** When its request was counted; undefined: requests are not limited here. */
  readonly at: Millis | undefined;
  /** Tokens it reserves; undefined: tokens are not limited here. */
  readonly reserved: number | undefined;
}

/** How a hold ended: the tokens it used (absent: what it reserved), and whether its request comes back. */
export interface Use {
  readonly tokens?: number | undefined;
  readonly uncounted?: boolean;
}

export interface Rates {
  /** Why it has to wait, if it has. Takes nothing. */
  check(request: RateRequest, now: Millis): RateRefusal | undefined;
  take(request: RateRequest, now: Millis): Shares;
  /** `shares`: of the hold that has them, if any. */
  reply(request: RateRequest, shares: Shares | undefined, now: Millis): RateReply;
  end(shares: Shares, use: Use, now: Millis): void;
  move(operation: MoveOperation, shares: Shares, now: Millis): MoveAnswer;
  sweep(now: Millis): void;
}

/** Longer than any rate is measured over. */
const KEEP: Millis = 120_000;

export function createRates(): Rates {
  const states = new Map<string, RateState>();
  let nextSweep = 0;

  const stateOf = (id: string): RateState => {
    const known = states.get(id);
    if (known !== undefined) return known;
    const state = { slots: [], live: 0, reserved: 0 };
    states.set(id, state);
    return state;
  };

  const takeOne = (limit: RateLimit, tokens: number, now: Millis): Share => {
    const state = stateOf(limit.id);
    const reserved = limit.tokens === undefined ? undefined : Math.min(tokens, limit.tokens);
    const at = limit.requests === undefined ? undefined : now;
    state.live += 1;
    state.reserved += reserved ?? 0;
    if (at !== undefined) slotAt(state, at).requests += 1;
    return { id: limit.id, at, reserved };
  };

  const endOne = ({ id, at, reserved }: Share, { tokens, uncounted }: Use, now: Millis): void => {
    const state = stateOf(id);
    state.live = Math.max(0, state.live - 1);
    const used = reserved === undefined ? 0 : (tokens ?? reserved);
    state.reserved = Math.max(0, state.reserved - (reserved ?? 0));
    if (used > 0) slotAt(state, now).tokens += used;
    if (uncounted !== true || at === undefined) return;
    const slot = state.slots.find((one) => secondOf(one.at) === secondOf(at));
    if (slot !== undefined) slot.requests = Math.max(0, slot.requests - 1);
  };

  const waits = (limit: RateLimit | undefined, tokens: number, now: Millis): Wait | undefined =>
    limit === undefined ? undefined : waitOf(limit, stateOf(limit.id), tokens, now);

  const choose = ({ entries, tokens }: RateRequest, now: Millis): number =>
    entries.findIndex((entry) => waits(entry, tokens, now) === undefined);

  /** All alternatives are full: the one that is free first. */
  const fullest = ({ entries, limits, tokens }: RateRequest, now: Millis): RateRefusal[] => {
    const refusals = entries.flatMap((entry, index): RateRefusal[] => {
      const wait = waits(entry, tokens, now);
      return wait === undefined ? [] : [{ ...wait, limit: limits.length + index }];
    });
    const [first, ...others] = refusals;
    if (first === undefined) return [];
    return [others.reduce((soonest, next) => (next.retryIn < soonest.retryIn ? next : soonest), first)];
  };

  return {
    check(request, now) {
      const { limits, entries, tokens } = request;
      const refusals = limits.flatMap((limit, index): RateRefusal[] => {
        const wait = waits(limit, tokens, now);
        return wait === undefined ? [] : [{ ...wait, limit: index }];
      });
      if (entries.length > 0 && choose(request, now) < 0) refusals.push(...fullest(request, now));
      return longest(refusals);
    },

    take(request, now) {
      const { limits, entries, tokens } = request;
      const chosen = entries.length === 0 ? undefined : choose(request, now);
      const entry = chosen === undefined ? undefined : entries[chosen];
      return {
        chosen,
        limits: limits.map((limit) => takeOne(limit, tokens, now)),
        entry: entry === undefined ? undefined : takeOne(entry, tokens, now),
      };
    },

    reply({ limits }, shares, now) {
      const left = limits.map((limit) => leftOf(limit, stateOf(limit.id), now));
      return shares?.chosen === undefined ? { left } : { entry: shares.chosen, left };
    },

    end(shares, use, now) {
      for (const share of shares.limits.splice(0)) endOne(share, use, now);
      if (shares.entry !== undefined) endOne(shares.entry, use, now);
      shares.entry = undefined;
    },

    move({ tokens, to }, shares, now) {
      const wait = waits(to, tokens, now);
      if (wait !== undefined) return wait;
      if (shares.entry !== undefined) endOne(shares.entry, { tokens: 0 }, now);
      shares.entry = to === undefined ? undefined : takeOne(to, tokens, now);
      return undefined;
    },

    sweep(now) {
      if (now < nextSweep) return;
      nextSweep = now + KEEP;
      for (const [id, state] of states) {
        state.slots = state.slots.filter(({ at }) => at + KEEP > now);
        if (state.live === 0 && state.slots.length === 0) states.delete(id);
      }
    },
  };
}
