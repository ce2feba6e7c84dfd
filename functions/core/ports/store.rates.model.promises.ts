// Model rates that are too simple to be wrong: one list of uses, summed for every question.
import * as fc from 'fast-check';
import type { Millis } from './money.ts';
import type { RateLimit } from './rates.ts';
import type { StoreCall } from './store.ts';

/** The last change of a limit's count. */
interface Touch {
  readonly limit: number;
  readonly at: Millis;
}

/** One step of a random history: time passes, then an event happens to a hold. */
export interface RateEvent {
  readonly advance: Millis;
  readonly kind: 'hold' | 'settle' | 'release' | 'call';
  /** Index of the hold, counted from the newest. */
  readonly which: number;
  /** Indices of the LIMITS that are asked for. */
  readonly limits: ReadonlyArray<number>;
  readonly tokens: number;
}

export const rateEventOf: fc.Arbitrary<RateEvent> = fc.record({
  advance: fc.constantFrom(0, 0, 0, 300, 700, 5000, 20_000, 61_000),
  kind: fc.constantFrom('hold', 'hold', 'hold', 'hold', 'settle', 'release', 'call'),
  which: fc.nat(4),
  limits: fc.subarray([0, 1, 2], { minLength: 1 }),
  tokens: fc.nat(70),
});

const LIMITS: ReadonlyArray<RateLimit> = [
  { id: 'a', requests: 3 },
  { id: 'b', requests: 5, tokens: 100 },
  { id: 'c', tokens: 60, parallel: 2 },
];

interface ModelUse {
  readonly id: string;
  readonly at: Millis;
  readonly ends: Millis;
  readonly limits: ReadonlyArray<number>;
  readonly tokens: number;
  counted: boolean;
  live: boolean;
  /** The tokens it used, and when that was reported. */
  used: number;
  /** The tokens are not reported: as many count as were reserved in each limit. */
  untold: boolean;
  usedAt: Millis;
}

const second = (at: Millis): number => Math.floor(at / 1000);

export function modelRates(lease: Millis) {
  const uses: ModelUse[] = [];
  const touches: Touch[] = [];
  let made = 0;

  const of = (limit: number) => uses.filter(({ limits }) => limits.includes(limit));
  /** Counted until a minute after the last use of the same second. */
  const isRecent = (limit: number, at: Millis, now: Millis): boolean =>
    touches.some((touch) => touch.limit === limit && second(touch.at) === second(at) && touch.at + 60_000 > now);
  const requestsOf = (limit: number, now: Millis): number =>
    of(limit).filter(({ counted, at }) => counted && isRecent(limit, at, now)).length;
  const reserveOf = ({ tokens }: ModelUse, limit: number): number => Math.min(tokens, LIMITS[limit]?.tokens ?? 0);
  const tokensOf = (limit: number, now: Millis): number =>
    of(limit)
      .filter(({ usedAt }) => isRecent(limit, usedAt, now))
      .reduce((sum, use) => sum + (use.untold ? reserveOf(use, limit) : use.used), 0);
  const liveOf = (limit: number): ModelUse[] => of(limit).filter(({ live }) => live);

  const isRefused = (limit: number, tokens: number, now: Millis): boolean => {
    const { requests, tokens: most, parallel } = LIMITS[limit] ?? { id: '' };
    const reserved = liveOf(limit).reduce((sum, use) => sum + reserveOf(use, limit), 0);
    return (
      (requests !== undefined && requestsOf(limit, now) >= requests) ||
      (parallel !== undefined && liveOf(limit).length >= parallel) ||
      (most !== undefined && tokensOf(limit, now) + reserved + Math.min(tokens, most) > most)
    );
  };

  const touch = ({ limits }: ModelUse, at: Millis): void => {
    for (const limit of limits) if (LIMITS[limit]?.tokens !== undefined) touches.push({ limit, at });
  };

  const end = (use: ModelUse | undefined, used: number, counted: boolean, now: Millis): void => {
    if (use?.live !== true) return;
    Object.assign(use, { live: false, used, usedAt: now, counted: use.counted && counted });
    if (used > 0) touch(use, now);
  };

  return {
    toCall({ kind, which, limits, tokens }: RateEvent, now: Millis): StoreCall {
      const nothing: StoreCall = { epoch: 1, settles: [], releases: [], renewals: [], loads: [], holds: [] };
      const id = uses.at(-1 - which)?.id;
      if (kind === 'hold') {
        const rates = { tokens, limits: limits.flatMap((limit) => LIMITS[limit] ?? []), entries: [] };
        const note = { charges: [], model: '', identifier: '' };
        const sizes = { amount: 0n, minAmount: 0n, counters: [], deadline: now + 60_000, lease };
        made += 1;
        return { ...nothing, holds: [{ id: `use-${made}`, ...sizes, note, rates }] };
      }
      if (id === undefined) return nothing;
      if (kind === 'settle') return { ...nothing, settles: [{ id, cost: 0n, tokens }] };
      return { ...nothing, releases: [{ id, lease, ...(kind === 'call' ? { called: true } : {}) }] };
    },

    /** The answer that the store must give to that call. */
    expect({ settles, releases, holds }: Omit<StoreCall, 'epoch'>, now: Millis) {
      const find = (id: string) => uses.find((use) => use.id === id);
      for (const { id, tokens = 0 } of settles) end(find(id), tokens, true, now);
      for (const { id, called } of releases) end(find(id), 0, called === true, now);
      for (const use of uses.filter(({ live, ends }) => live && ends <= now)) {
        end(use, 0, true, now);
        use.untold = true;
        if (use.tokens > 0) touch(use, now);
      }
      const answers = holds.map(({ id, rates }) => {
        const limits = (rates?.limits ?? []).map((limit) => LIMITS.indexOf(limit));
        const tokens = rates?.tokens ?? 0;
        if (limits.some((limit) => isRefused(limit, tokens, now))) return { outcome: 'limited' };
        uses.push({
          ...{ id, at: now, ends: now + lease, limits, tokens },
          ...{ counted: true, live: true, used: 0, untold: false, usedAt: now },
        });
        for (const limit of limits) if (LIMITS[limit]?.requests !== undefined) touches.push({ limit, at: now });
        const left = limits.map((limit) => {
          const requests = LIMITS[limit]?.requests;
          return requests === undefined ? {} : { requests: { remaining: requests - requestsOf(limit, now) } };
        });
        return { outcome: 'held', rates: { left } };
      });
      return { holds: answers };
    },

    /** Whether the minute that ends now has at most as many requests as each limit, to the millisecond. */
    mostInAnyMinute: (now: Millis): boolean =>
      LIMITS.every(
        ({ requests }, limit) =>
          requests === undefined ||
          of(limit).filter(({ counted, at }) => counted && now - at < 60_000).length <= requests,
      ),
  };
}
