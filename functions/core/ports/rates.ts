// Rates: how much may be used per minute or at the same time, and what is left of it (decision 0012).
import type { Tokens } from './ledger-rows.ts';
import type { Millis } from './money.ts';
import type { SpecRateLimits } from './policy.ts';

const MINUTE: Millis = 60_000;

/**
 * The kinds of rates. `account.lua` has the windows and the estimated kinds of this table by `npm run generate`.
 * docs/internals/contributing.md has the steps to add a kind.
 */
export const RATE_KINDS = {
  requests: {
    specField: 'rpmLimit',
    modelEntryField: 'rpm',
    window: MINUTE,
    isEstimated: false,
    units: ['request per minute', 'requests per minute'],
    header: 'requests',
    advice: undefined,
  },
  tokens: {
    specField: 'tpmLimit',
    modelEntryField: 'tpm',
    window: MINUTE,
    isEstimated: true,
    units: ['token per minute', 'tokens per minute'],
    header: 'tokens',
    advice: 'send less, or set a smaller max_completion_tokens',
  },
  parallel: {
    specField: 'maxParallelRequests',
    modelEntryField: undefined,
    window: undefined,
    isEstimated: false,
    units: ['request at the same time', 'requests at the same time'],
    header: undefined,
    advice: undefined,
  },
} as const satisfies Readonly<Record<string, RateKindRow>>;

interface RateKindRow {
  /** The field of a VirtualKey, User or Team that limits the kind. */
  readonly specField: keyof SpecRateLimits;
  /** The field of a model entry that limits the kind (`gatewayParams`). Undefined: model entries do not limit it. */
  readonly modelEntryField: string | undefined;
  /** The length of the windows in which use counts, in whole minutes. Undefined: requests in flight count. */
  readonly window: Millis | undefined;
  /**
   * Whether a request names an estimate of its use, in the member of the kind's name; its settlement reports the true
   * use. Otherwise each request counts as 1.
   */
  readonly isEstimated: boolean;
  /** The name of one unit and of several units, in messages. */
  readonly units: readonly [string, string];
  /**
   * The end of the names of the headers that show the kind to clients, `x-ratelimit-remaining-…`. Undefined: OpenAI has
   * no such header, so no header shows it.
   */
  readonly header: string | undefined;
  /** How a client can use less, in the message about a request whose estimate is above the limit. */
  readonly advice: string | undefined;
}

/** The end of a request, as far as it decides what the request has used. */
export interface RequestEnd {
  /** Whether a provider was called. */
  readonly isCalled: boolean;
  /** The tokens of its reply; 0 if there was none. */
  readonly tokens: Tokens;
  /** The expected use of the request: its estimates for the limits of scopes. */
  readonly estimates: RateEstimates;
}

export type RateKind = keyof typeof RATE_KINDS;

/** The fields of model entries that limit a kind. */
export type ModelEntryField = NonNullable<(typeof RATE_KINDS)[RateKind]['modelEntryField']>;

/** The rows of the table, for code that handles all kinds alike. */
export const RATE_ROWS: ReadonlyArray<readonly [RateKind, RateKindRow]> = Object.entries(RATE_KINDS) as Array<
  [RateKind, RateKindRow]
>;

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

/** A value for each kind of which a request names an estimate. */
export const perEstimatedRate = <T>(toValue: (kind: EstimatedRate) => T): Record<EstimatedRate, T> => ({
  tokens: toValue('tokens'),
});

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
 * What a request has used at its end: the rest is given back. A kind whose estimate is exact returns it (`estimates`)
 * if a provider was called.
 */
const USED_AT_END: Readonly<Record<WindowedRate, (end: RequestEnd) => number>> = {
  requests: ({ isCalled }) => (isCalled ? 1 : 0),
  tokens: ({ tokens }) => tokens.input + tokens.output,
};

/** The use of a request that has ended. */
export const usageAtEnd = (end: RequestEnd): RateUsage => perWindowedRate((kind) => USED_AT_END[kind](end));

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
  readonly remainders: ReadonlyArray<RateRemainders>;
}

/** A refusal by the limit with the longest wait. */
export interface RateRefusal {
  /**
   * The index in `limits`; beyond them in `modelEntryLimits`: all model entries are full, and this one has room first.
   */
  readonly limitIndex: number;
  readonly rate: RateKind;
  /** The wait until it has room, or until a request in flight ends. */
  readonly retryIn: Millis;
}
