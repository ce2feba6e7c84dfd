// Rates of accounts: the use of this minute and the previous one, and requests in flight (LEDGER 3).
import type { RateChange } from '#core/ports/counter-store.ts';
import type { Millis } from '#core/ports/money.ts';
import {
  addedUse,
  perWindowedRate,
  RATE_KINDS,
  type RateKind,
  type RateLimit,
  type RateRefusal,
  type RateRemainder,
  type RateReply,
  type RateRequest,
  WINDOWED_RATES,
  type WindowedRate,
} from '#core/ports/rates.ts';

/** Use of one kind in the window that has begun last, and in the previous one. */
interface WindowUse {
  /** The number of that window since 1970. */
  number: number;
  current: number;
  before: number;
}

interface Use {
  readonly windows: Readonly<Record<WindowedRate, WindowUse>>;
  /** Requests in flight, by account. */
  readonly inFlight: Map<string, number>;
}

const MINUTE: Millis = 60_000;
/** Waits for kinds that count requests in flight, which may end at any time. `account.lua` has the same. */
const IN_FLIGHT_WAITS: Readonly<Record<Exclude<RateKind, WindowedRate>, Millis>> = { parallel: 1000 };

export type AccountRates = ReturnType<typeof createAccountRates>;

/**
 * The previous minute counts by the share of it that is in the last 60 s, rounded down: exact for requests that come
 * evenly. No minute of the clock admits more than the limit; 60 s across two minutes admit up to twice the limit, if
 * the first minute admitted all of its requests at its end. A limit that is used up at the beginning of a minute is
 * whole again up to 60 s late.
 */
export function createAccountRates() {
  const uses = new Map<string, Use>();

  const useOf = (id: string, now: Millis): Use => {
    const existing = uses.get(id) ?? { windows: perWindowedRate(noUse), inFlight: new Map() };
    uses.set(id, existing);
    for (const kind of WINDOWED_RATES) {
      const use = existing.windows[kind];
      const number = Math.floor(now / RATE_KINDS[kind].window);
      if (use.number === number) continue;
      Object.assign(use, {
        number,
        before: use.number === number - 1 ? use.current : 0,
        current: 0,
      });
    }
    return existing;
  };

  const rateRefusalOf = (
    limit: RateLimit,
    request: RateRequest,
    now: Millis,
  ): Omit<RateRefusal, 'limitIndex'> | undefined => {
    const { parallel } = limit;
    const use = useOf(limit.id, now);
    const waits = WINDOWED_RATES.flatMap((kind) => {
      const max = limit[kind];
      return max === undefined ? [] : [waitOf(use, kind, max - addedUse(kind, request, max), now)];
    });
    return maxWait([
      ...waits,
      ...(parallel === undefined || inFlightOf(use) < parallel
        ? []
        : [{ rate: 'parallel' as const, retryIn: IN_FLIGHT_WAITS.parallel }]),
    ]);
  };

  return {
    /** The reason why a request has to wait; undefined: it need not wait. Takes nothing. */
    check(request: RateRequest, now: Millis): RateRefusal | undefined {
      const { limits, modelEntryLimits } = request;
      const refusals = [...limits, ...modelEntryLimits].flatMap((limit, index): RateRefusal[] => {
        const refusal = limit && rateRefusalOf(limit, request, now);
        return refusal === undefined ? [] : [{ ...refusal, limitIndex: index }];
      });
      const ofLimits = refusals.filter(({ limitIndex }) => limitIndex < limits.length);
      const ofEntries = refusals.slice(ofLimits.length);
      // All alternatives are full: the entry that has room first.
      const isFull = modelEntryLimits.length > 0 && ofEntries.length === modelEntryLimits.length;
      return maxWait(isFull ? [...ofLimits, ...ofEntries.sort(byWait).slice(0, 1)] : ofLimits);
    },

    /** Takes the room that `check` found, and returns the entry. */
    take(request: RateRequest, account: string, now: Millis): number | undefined {
      const { limits, modelEntryLimits } = request;
      const modelEntryIndex = modelEntryLimits.findIndex(
        (entry) => entry === undefined || rateRefusalOf(entry, request, now) === undefined,
      );
      for (const limit of [...limits, modelEntryLimits[modelEntryIndex]]) {
        if (limit === undefined) continue;
        const { windows, inFlight } = useOf(limit.id, now);
        for (const kind of WINDOWED_RATES) {
          const max = limit[kind];
          if (max !== undefined) windows[kind].current += addedUse(kind, request, max);
        }
        if (limit.parallel !== undefined) inFlight.set(account, (inFlight.get(account) ?? 0) + 1);
      }
      return modelEntryIndex < 0 ? undefined : modelEntryIndex;
    },

    remainders: ({ limits }: RateRequest, now: Millis): Omit<RateReply, 'modelEntryIndex'> => ({
      minute: Math.floor(now / MINUTE),
      remainders: limits.map((limit) => {
        const use = useOf(limit.id, now);
        return Object.assign({}, ...WINDOWED_RATES.map((kind) => remainderOf(limit, use, kind, now)));
      }),
    }),

    applyChange(change: RateChange, account: string, now: Millis): void {
      const { id, minute = Math.floor(now / MINUTE) } = change;
      const use = useOf(id, now);
      for (const kind of WINDOWED_RATES) addUse(use.windows[kind], kind, change[kind], minute);
      const inFlight = (use.inFlight.get(account) ?? 0) + change.parallel;
      if (inFlight > 0) use.inFlight.set(account, inFlight);
      else use.inFlight.delete(account);
    },

    /** Ends all requests that the account has in flight. */
    end(account: string): void {
      for (const { inFlight } of uses.values()) inFlight.delete(account);
    },

    dropUnused(now: Millis): void {
      for (const [id, { inFlight, windows }] of uses) {
        const isOver = (kind: WindowedRate) => windows[kind].number < Math.floor(now / RATE_KINDS[kind].window) - 1;
        if (inFlight.size === 0 && WINDOWED_RATES.every(isOver)) uses.delete(id);
      }
    },
  };
}

const noUse = (): WindowUse => ({ number: 0, current: 0, before: 0 });

const inFlightOf = ({ inFlight }: Use): number => [...inFlight.values()].reduce((sum, count) => sum + count, 0);

interface Wait {
  readonly retryIn: Millis;
}

const byWait = (one: Wait, other: Wait): number => one.retryIn - other.retryIn;

/** The first of the longest waits; undefined: there is no wait. */
const maxWait = <T extends Wait>(waits: ReadonlyArray<T>): T | undefined =>
  waits.filter((wait) => wait.retryIn > 0).sort((one, other) => byWait(other, one))[0];

/** Adds a change of use to the window of the minute that it names; a window that no longer counts does not change. */
function addUse(use: WindowUse, kind: WindowedRate, by: number, minute: number): void {
  const number = Math.floor((minute * MINUTE) / RATE_KINDS[kind].window);
  if (number === use.number) use.current = Math.max(0, use.current + by);
  else if (number === use.number - 1) use.before = Math.max(0, use.before + by);
}

const usedOf = ({ windows }: Use, kind: WindowedRate, now: Millis): number => {
  const { current, before } = windows[kind];
  const { window } = RATE_KINDS[kind];
  return current + before - Math.ceil((before * (now % window)) / window);
};

/**
 * The wait until at most `max` is used; 0: no wait. At most a minute, since clients ignore longer waits. A limit of 0
 * never has room.
 */
const waitOf = (use: Use, rate: WindowedRate, max: number, now: Millis) => {
  const retryIn = max < 0 ? MINUTE : Math.min(MINUTE, untilUsed(use, rate, max, now));
  return { rate, retryIn };
};

function untilUsed(use: Use, kind: WindowedRate, max: number, now: Millis): Millis {
  if (usedOf(use, kind, now) <= max) return 0;
  const { window } = RATE_KINDS[kind];
  const { current, before } = use.windows[kind];
  /** The time in a window after which the previous window counts at most `rest`. */
  const from = (count: number, rest: number): Millis => Math.floor((window * (count - rest - 1)) / count) + 1;
  const inWindow = now % window;
  return current > max ? window - inWindow + from(current, max) : from(before, max - current) - inWindow;
}

function remainderOf(
  limit: RateLimit,
  use: Use,
  kind: WindowedRate,
  now: Millis,
): Partial<Record<WindowedRate, RateRemainder>> {
  const max = limit[kind];
  if (max === undefined) return {};
  return { [kind]: { remaining: Math.max(0, max - usedOf(use, kind, now)), resetIn: untilUsed(use, kind, 0, now) } };
}
