// Rates of accounts: requests and tokens of this minute and the one before, and requests in flight (LEDGER 3).
import type { RateChange } from '#core/ports/counter-store.ts';
import type { Millis } from '#core/ports/money.ts';
import type { RateLeft, RateLimit, RateRefusal, RateReply, RateRequest } from '#core/ports/rates.ts';

type Countable = 'requests' | 'tokens';

interface Use {
  minute: number;
  current: Record<Countable, number>;
  before: Record<Countable, number>;
  /** Requests in flight, by account. */
  readonly inFlight: Map<string, number>;
}

const MINUTE: Millis = 60_000;
/** Requests in flight may end at any time. */
const SOON: Millis = 1000;

export type AccountRates = ReturnType<typeof createAccountRates>;

/**
 * The minute before counts by the share of it that lies in the last 60 s, rounded down: exact for requests that come
 * evenly. No minute of the clock admits more than the limit; 60 s across its edge admit up to twice the limit, if the
 * minute before got all of it in its last moments.
 * A limit used up in the first moments of a minute is whole again up to 60 s late.
 */
export function createAccountRates() {
  const uses = new Map<string, Use>();

  const useOf = (id: string, now: Millis): Use => {
    const minute = Math.floor(now / MINUTE);
    const found = uses.get(id) ?? { minute, current: nothing(), before: nothing(), inFlight: new Map() };
    uses.set(id, found);
    if (found.minute === minute) return found;
    const before = found.minute === minute - 1 ? found.current : nothing();
    return Object.assign(found, { minute, before, current: nothing() });
  };

  const refusalOf = (limit: RateLimit, asked: number, now: Millis): Omit<RateRefusal, 'limit'> | undefined => {
    const { requests, tokens, parallel } = limit;
    const use = useOf(limit.id, now);
    return longest([
      ...(requests === undefined ? [] : [waitOf(use, 'requests', requests - 1, now)]),
      ...(tokens === undefined ? [] : [waitOf(use, 'tokens', tokens - Math.min(asked, tokens), now)]),
      ...(parallel === undefined || inFlightOf(use) < parallel ? [] : [{ rate: 'parallel' as const, retryIn: SOON }]),
    ]);
  };

  return {
    /** The reason why a request has to wait, if it has. Takes nothing. */
    check({ limits, entries, tokens }: RateRequest, now: Millis): RateRefusal | undefined {
      const refusals = [...limits, ...entries].flatMap((limit, index): RateRefusal[] => {
        const refusal = limit && refusalOf(limit, tokens, now);
        return refusal === undefined ? [] : [{ ...refusal, limit: index }];
      });
      const ofLimits = refusals.filter(({ limit }) => limit < limits.length);
      const ofEntries = refusals.slice(ofLimits.length);
      // All alternatives are full: the one that is free first.
      const isFull = entries.length > 0 && ofEntries.length === entries.length;
      return longest(isFull ? [...ofLimits, ...ofEntries.sort(byWait).slice(0, 1)] : ofLimits);
    },

    /** Takes the room that `check` found, and answers the entry. */
    take({ limits, entries, tokens: asked }: RateRequest, account: string, now: Millis): number | undefined {
      const chosen = entries.findIndex((entry) => entry === undefined || refusalOf(entry, asked, now) === undefined);
      for (const limit of [...limits, entries[chosen]]) {
        if (limit === undefined) continue;
        const { current, inFlight } = useOf(limit.id, now);
        if (limit.requests !== undefined) current.requests += 1;
        // A request for more than the limit has the whole of it to itself, once it is free.
        if (limit.tokens !== undefined) current.tokens += Math.min(asked, limit.tokens);
        if (limit.parallel !== undefined) inFlight.set(account, (inFlight.get(account) ?? 0) + 1);
      }
      return chosen < 0 ? undefined : chosen;
    },

    left: ({ limits }: RateRequest, now: Millis): Omit<RateReply, 'entry'> => ({
      minute: Math.floor(now / MINUTE),
      left: limits.map((limit) => {
        const use = useOf(limit.id, now);
        return { ...leftBelow(limit, use, 'requests', now), ...leftBelow(limit, use, 'tokens', now) };
      }),
    }),

    use({ id, minute, requests, tokens, parallel }: RateChange, account: string, now: Millis): void {
      const use = useOf(id, now);
      const counts = countsOf(use, minute);
      counts.requests = Math.max(0, counts.requests + requests);
      counts.tokens = Math.max(0, counts.tokens + tokens);
      const inFlight = (use.inFlight.get(account) ?? 0) + parallel;
      if (inFlight > 0) use.inFlight.set(account, inFlight);
      else use.inFlight.delete(account);
    },

    /** Ends all requests that the account has in flight. */
    end(account: string): void {
      for (const { inFlight } of uses.values()) inFlight.delete(account);
    },

    sweep(now: Millis): void {
      const last = Math.floor(now / MINUTE) - 1;
      for (const [id, { inFlight, minute }] of uses) if (inFlight.size === 0 && minute < last) uses.delete(id);
    },
  };
}

const nothing = (): Record<Countable, number> => ({ requests: 0, tokens: 0 });

const inFlightOf = ({ inFlight }: Use): number => [...inFlight.values()].reduce((all, one) => all + one, 0);

interface Wait {
  readonly retryIn: Millis;
}

const byWait = (one: Wait, other: Wait): number => one.retryIn - other.retryIn;

/** The first of those that wait longest, if any waits at all. */
const longest = <T extends Wait>(waits: ReadonlyArray<T>): T | undefined =>
  waits.filter((wait) => wait.retryIn > 0).sort((one, other) => byWait(other, one))[0];

/** The counts of this minute, of the one before, or of one that no longer matters. */
function countsOf({ minute, current, before }: Use, of = minute): Record<Countable, number> {
  if (of === minute) return current;
  return of === minute - 1 ? before : nothing();
}

const usedOf = ({ current, before }: Use, what: Countable, now: Millis): number =>
  current[what] + before[what] - Math.ceil((before[what] * (now % MINUTE)) / MINUTE);

/**
 * The wait until no more than `most` is used; 0: now. Never told above a minute: clients ignore longer waits. A limit
 * of 0 never has room.
 */
const waitOf = (use: Use, rate: Countable, most: number, now: Millis) => {
  const retryIn = most < 0 ? MINUTE : Math.min(MINUTE, untilUsed(use, rate, most, now));
  return { rate, retryIn };
};

function untilUsed(use: Use, what: Countable, most: number, now: Millis): Millis {
  if (usedOf(use, what, now) <= most) return 0;
  const current = use.current[what];
  /** The place in a minute from which on the one before counts no more than `rest`. */
  const from = (before: number, rest: number): Millis => Math.floor((MINUTE * (before - rest - 1)) / before) + 1;
  const inMinute = now % MINUTE;
  return current > most ? MINUTE - inMinute + from(current, most) : from(use.before[what], most - current) - inMinute;
}

function leftBelow(limit: RateLimit, use: Use, what: Countable, now: Millis): Partial<Record<Countable, RateLeft>> {
  const most = limit[what];
  if (most === undefined) return {};
  return { [what]: { remaining: Math.max(0, most - usedOf(use, what, now)), resetIn: untilUsed(use, what, 0, now) } };
}
