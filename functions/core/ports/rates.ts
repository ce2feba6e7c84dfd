// Rates: requests and tokens per minute, concurrent requests, and what is left of each (decision 0012).
import type { Millis } from './money.ts';
import type { RateLimits } from './policy.ts';

const MINUTE: Millis = 60_000;

/** The limits of one scope or one model entry. An absent member is not limited. */
export interface RateLimit {
  /** The id within the instance; use is counted under it. */
  readonly id: string;
  /** Requests in a minute of the clock. */
  readonly requests?: number | undefined;
  /** Tokens in a minute of the clock. */
  readonly tokens?: number | undefined;
  /** Requests in flight at the same time. */
  readonly parallel?: number;
}

/**
 * The kinds of rates. `limit`: the member of a spec that limits the kind. `window`: use counts in windows of the clock
 * of this length, which is whole minutes; absent: requests in flight count. `singular`: the name of one unit, in
 * messages. `account.lua` has the windows of this table by `npm run generate`.
 */
export const RATE_KINDS = {
  requests: { limit: 'rpmLimit', window: MINUTE, singular: 'request per minute' },
  tokens: { limit: 'tpmLimit', window: MINUTE, singular: 'token per minute' },
  parallel: { limit: 'maxParallelRequests', window: undefined, singular: 'request at the same time' },
} as const satisfies Readonly<Record<string, RateKindRow>>;

interface RateKindRow {
  readonly limit: keyof RateLimits;
  readonly window: Millis | undefined;
  readonly singular: string;
}

export type RateKind = keyof typeof RATE_KINDS;

/** The kinds that count in windows. */
export type WindowedRate = {
  [Kind in RateKind]: (typeof RATE_KINDS)[Kind]['window'] extends Millis ? Kind : never;
}[RateKind];

const isWindowed = (kind: RateKind): kind is WindowedRate => RATE_KINDS[kind].window !== undefined;

export const WINDOWED_RATES: ReadonlyArray<WindowedRate> = (Object.keys(RATE_KINDS) as RateKind[]).filter(isWindowed);

/** The rates that a reservation takes beside its money. */
export interface RateRequest {
  /** An estimate of the tokens that the request will use; the settlement reports the true number. */
  readonly tokens: number;
  /** Limits that must all have room. */
  readonly limits: ReadonlyArray<RateLimit>;
  /** Alternatives, the best first: one of them must have room; `undefined` is not limited. Empty: none is needed. */
  readonly entries: ReadonlyArray<RateLimit | undefined>;
}

/** The rest of one limit. */
export interface RateLeft {
  readonly remaining: number;
  /** The time until the limit is whole again, if nothing more is used. */
  readonly resetIn: Millis;
}

export type RatesLeft = { readonly [Kind in WindowedRate]?: RateLeft };

/** Rates as of the reply, this request included. */
export interface RateReply {
  /** The alternative that was taken. */
  readonly entry?: number;
  /** The minute of the store's clock, since 1970: what was taken counts in it. */
  readonly minute: number;
  /** One per element of `limits`, in order. */
  readonly left: ReadonlyArray<RatesLeft>;
}

/** A refusal by the limit with the longest wait. */
export interface RateRefusal {
  /** The index in `limits`, or after them in `entries` (then all entries are full, and this entry has room first). */
  readonly limit: number;
  readonly rate: RateKind;
  /** The wait until it has room, or until a request in flight ends. */
  readonly retryIn: Millis;
}
