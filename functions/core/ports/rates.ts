// Rates: requests and tokens per minute, concurrent requests, and what is left of each (decision 0012).
import type { Millis } from './money.ts';
import type { SpecRateLimits } from './policy.ts';

const MINUTE: Millis = 60_000;

/**
 * The kinds of rates. `account.lua` has the windows and the estimated kinds of this table by `npm run generate`.
 * docs/internals/contributing.md has the steps to add a kind.
 */
export const RATE_KINDS = {
  requests: {
    limit: 'rpmLimit',
    window: MINUTE,
    isEstimated: false,
    units: ['request per minute', 'requests per minute'],
  },
  tokens: {
    limit: 'tpmLimit',
    window: MINUTE,
    isEstimated: true,
    units: ['token per minute', 'tokens per minute'],
  },
  parallel: {
    limit: 'maxParallelRequests',
    window: undefined,
    isEstimated: false,
    units: ['request at the same time', 'requests at the same time'],
  },
} as const satisfies Readonly<Record<string, RateKindRow>>;

interface RateKindRow {
  /** The member of a spec that limits the kind. */
  readonly limit: keyof SpecRateLimits;
  /** The length of the windows in which use counts, in whole minutes. Undefined: requests in flight count. */
  readonly window: Millis | undefined;
  /**
   * Whether a request names an estimate of its use, in the member of the kind's name; its settlement reports the true
   * use. Otherwise each request counts as 1, and as 0 if no provider was called.
   */
  readonly isEstimated: boolean;
  /** The name of one unit and of several units, in messages. */
  readonly units: readonly [string, string];
}

export type RateKind = keyof typeof RATE_KINDS;

/** The kinds that count in windows. */
export type WindowedRate = {
  [Kind in RateKind]: (typeof RATE_KINDS)[Kind]['window'] extends Millis ? Kind : never;
}[RateKind];

/** The kinds of which a request names an estimate. */
export type EstimatedRate = {
  [Kind in WindowedRate]: (typeof RATE_KINDS)[Kind]['isEstimated'] extends true ? Kind : never;
}[WindowedRate];

/** The limits of one scope or one model entry. An absent member is not limited. */
export interface RateLimit extends Readonly<Partial<Record<RateKind, number | undefined>>> {
  /** The id within the instance; use is counted under it. */
  readonly id: string;
}

/** The expected use of a request, known before its reply. */
export type RateEstimates = Readonly<Record<EstimatedRate, number>>;

/** The true use of a request, known at its end. */
export type RateUsage = Readonly<Record<WindowedRate, number>>;

const isWindowed = (kind: RateKind): kind is WindowedRate => RATE_KINDS[kind].window !== undefined;

export const WINDOWED_RATES: ReadonlyArray<WindowedRate> = (Object.keys(RATE_KINDS) as RateKind[]).filter(isWindowed);

export const isEstimated = (kind: RateKind): kind is EstimatedRate => RATE_KINDS[kind].isEstimated;

/** A value for each kind that counts in windows. */
export const perWindowedRate = <T>(toValue: (kind: WindowedRate) => T): Record<WindowedRate, T> => ({
  requests: toValue('requests'),
  tokens: toValue('tokens'),
});

/** A value for each kind. */
export const perRate = <T>(toValue: (kind: RateKind) => T): Record<RateKind, T> => ({
  ...perWindowedRate(toValue),
  parallel: toValue('parallel'),
});

/**
 * The use that a request adds to a limit. An estimate above the limit uses the whole limit, once nothing else uses it.
 */
export const addedUse = (kind: WindowedRate, estimates: RateEstimates, limit: number): number =>
  isEstimated(kind) ? Math.min(estimates[kind], limit) : 1;

/** The rates that a reservation takes together with its money. */
export interface RateRequest extends RateEstimates {
  /** Limits of scopes: all must have room. */
  readonly limits: ReadonlyArray<RateLimit>;
  /**
   * Limits of the candidate model entries, the best first: one must have room. `undefined`: a model entry without
   * limits. Empty: none is limited.
   */
  readonly modelEntryLimits: ReadonlyArray<RateLimit | undefined>;
}

/** The remainder of one limit. */
export interface RateRemainder {
  readonly remaining: number;
  /** The time until the limit is whole again, if nothing more is used. */
  readonly resetIn: Millis;
}

export type RateRemainders = { readonly [Kind in WindowedRate]?: RateRemainder };

/** Rates as of the reply, this request included. */
export interface RateReply {
  /** The index in `modelEntryLimits` of the model entry that was taken. */
  readonly modelEntryIndex?: number;
  /** The minute of the store's clock, since 1970: what was taken counts in it. */
  readonly minute: number;
  /** One per element of `limits`, in order. */
  readonly left: ReadonlyArray<RateRemainders>;
}

/** A refusal by the limit with the longest wait. */
export interface RateRefusal {
  /** The index in `limits`; beyond them in `modelEntryLimits`: all model entries are full, and this one has room first. */
  readonly limitIndex: number;
  readonly rate: RateKind;
  /** The wait until it has room, or until a request in flight ends. */
  readonly retryIn: Millis;
}
