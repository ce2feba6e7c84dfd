// Rates of accounts: requests and tokens of this minute and the one before, and requests in flight (LEDGER 3).

import type { RateUse } from '#core/ports/accounts.ts';
import type { Millis } from '#core/ports/money.ts';
import type { RateKind, RateLeft, RateLimit, RateRefusal, RateReply, RateRequest } from '#core/ports/rates.ts';

/** Requests of an account in flight, by limit. */
export type InFlight = Map<string, number>;

/**
 * The minute before counts by the share of it that lies in the last 60 s, rounded down: exact for requests that come evenly. No minute of the clock
 * admits more than the limit; 60 s across its edge admit up to twice the limit, if the minute before got all of it in its last moments.
 * A limit used up in the first moments of a minute is whole again up to 60 s late. What is given back leaves this minute first.
 */
export interface AccountRates {
  /** Why a request has to wait, if it has. Takes nothing. */
  check(request: RateRequest, now: Millis): RateRefusal | undefined;
  /** Takes the room that `check` found, and answers the entry. */
  take(request: RateRequest, now: Millis, inFlight: InFlight): number | undefined;
  left(request: RateRequest, now: Millis): RateReply['left'];
  use(use: RateUse, now: Millis, inFlight: InFlight): void;
  /** Ends all requests that an account has in flight. */
  end(inFlight: InFlight): void;
  sweep(now: Millis): void;
}

type Countable = 'requests' | 'tokens';

interface Use {
  minute: number;
  readonly current: Record<Countable, number>;
  readonly before: Record<Countable, number>;
  inFlight: number;
}

interface Wait {
  readonly rate: RateKind;
  readonly retryIn: Millis;
}

const MINUTE: Millis = 60_000;
/** Requests in flight may end at any time. */
const SOON: Millis = 1000;

export function createAccountRates(): AccountRates {
  const uses = new Map<string, Use>();

  const useOf = (id: string, now: Millis): Use => {
    const minute = Math.floor(now / MINUTE);
    const fresh = { minute, current: { requests: 0, tokens: 0 }, before: { requests: 0, tokens: 0 }, inFlight: 0 };
    const use = uses.get(id) ?? fresh;
    uses.set(id, use);
    if (use.minute === minute) return use;
    Object.assign(use.before, use.minute === minute - 1 ? use.current : fresh.before);
    Object.assign(use.current, fresh.current);
    use.minute = minute;
    return use;
  };

  const waitOf = (limit: RateLimit | undefined, asked: number, now: Millis): Wait | undefined => {
    if (limit === undefined) return undefined;
    const { requests, tokens, parallel } = limit;
    const use = useOf(limit.id, now);
    const waits: Wait[] = [];
    const add = (rate: RateKind, retryIn: Millis): unknown => retryIn > 0 && waits.push({ rate, retryIn });
    if (requests !== undefined) add('requests', untilUsed(use, 'requests', requests - 1, now));
    // A request for more than the limit has the whole of it to itself, once it is free.
    if (tokens !== undefined) add('tokens', untilUsed(use, 'tokens', tokens - Math.min(asked, tokens), now));
    if (parallel !== undefined && use.inFlight >= parallel) add('parallel', SOON);
    return longest(waits);
  };

  const takeOne = ({ id, requests, tokens, parallel }: RateLimit, asked: number, now: Millis, inFlight: InFlight) => {
    const use = useOf(id, now);
    if (requests !== undefined) use.current.requests += 1;
    if (tokens !== undefined) use.current.tokens += Math.min(asked, tokens);
    if (parallel === undefined) return;
    use.inFlight += 1;
    inFlight.set(id, (inFlight.get(id) ?? 0) + 1);
  };

  const giveBack = (id: string, count: number, inFlight: InFlight): void => {
    const own = inFlight.get(id) ?? 0;
    const use = uses.get(id);
    if (use !== undefined) use.inFlight -= Math.min(own, count);
    if (own > count) inFlight.set(id, own - count);
    else inFlight.delete(id);
  };

  return {
    check({ limits, entries, tokens }, now) {
      const refusalsOf = (of: RateRequest['entries'], from: number): RateRefusal[] =>
        of.flatMap((limit, index) => {
          const wait = waitOf(limit, tokens, now);
          return wait === undefined ? [] : [{ ...wait, limit: from + index }];
        });
      const refusals = refusalsOf(limits, 0);
      const full = refusalsOf(entries, limits.length);
      // All alternatives are full: the one that is free first.
      if (entries.length > 0 && full.length === entries.length)
        refusals.push(full.reduce((soonest, next) => (next.retryIn < soonest.retryIn ? next : soonest)));
      return longest(refusals);
    },
    take({ limits, entries, tokens }, now, inFlight) {
      const chosen = entries.findIndex((entry) => waitOf(entry, tokens, now) === undefined);
      for (const limit of [...limits, entries[chosen]]) if (limit !== undefined) takeOne(limit, tokens, now, inFlight);
      return chosen < 0 ? undefined : chosen;
    },
    left: ({ limits }, now) =>
      limits.map((limit) => {
        const use = useOf(limit.id, now);
        const of = (what: Countable, most: number | undefined) =>
          most === undefined ? {} : { [what]: leftBelow(most, use, what, now) };
        return { ...of('requests', limit.requests), ...of('tokens', limit.tokens) };
      }),
    use({ id, requests, tokens, parallel }, now, inFlight) {
      const use = useOf(id, now);
      add(use, 'requests', requests);
      add(use, 'tokens', tokens);
      giveBack(id, -parallel, inFlight);
    },
    end(inFlight) {
      for (const [id, count] of [...inFlight]) giveBack(id, count, inFlight);
    },
    sweep(now) {
      const minute = Math.floor(now / MINUTE);
      for (const [id, use] of uses) if (use.inFlight === 0 && use.minute < minute - 1) uses.delete(id);
    },
  };
}

function longest<T extends { readonly retryIn: Millis }>(waits: ReadonlyArray<T>): T | undefined {
  return waits.reduce<T | undefined>((most, wait) => (most && most.retryIn >= wait.retryIn ? most : wait), undefined);
}

function add({ current, before }: Use, what: Countable, by: number): void {
  const sum = current[what] + by;
  current[what] = Math.max(0, sum);
  before[what] = Math.max(0, before[what] + Math.min(0, sum));
}

const usedOf = ({ current, before }: Use, what: Countable, now: Millis): number =>
  current[what] + before[what] - Math.ceil((before[what] * (now % MINUTE)) / MINUTE);

/** The wait until no more than `most` is used, 0 if that is so. Told as a minute where it is longer: clients ignore longer waits. */
const untilUsed = (use: Use, what: Countable, most: number, now: Millis): Millis =>
  Math.min(MINUTE, untilBelow(use, what, most, now));

function untilBelow(use: Use, what: Countable, most: number, now: Millis): Millis {
  // A limit of 0 never has room.
  if (most < 0) return MINUTE;
  if (usedOf(use, what, now) <= most) return 0;
  const current = use.current[what];
  /** The place in a minute from which on so much of the one before no longer counts more than `rest`. */
  const from = (before: number, rest: number): Millis => Math.floor((MINUTE * (before - rest - 1)) / before) + 1;
  const inMinute = now % MINUTE;
  return current > most ? MINUTE - inMinute + from(current, most) : from(use.before[what], most - current) - inMinute;
}

const leftBelow = (limit: number, use: Use, what: Countable, now: Millis): RateLeft => ({
  remaining: Math.max(0, limit - usedOf(use, what, now)),
  resetIn: untilBelow(use, what, 0, now),
});
