// Rates: requests and tokens per minute, concurrent requests, and what is left of each (decision 0012).
import type { Millis } from './money.ts';

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

export type RateKind = 'requests' | 'tokens' | 'parallel';

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

export interface RatesLeft {
  readonly requests?: RateLeft;
  readonly tokens?: RateLeft;
}

/** Rates as of the answer, this request included. */
export interface RateReply {
  /** The alternative that was taken. */
  readonly entry?: number;
  /** The minute of the store's clock, since 1970: what was taken counts in it. */
  readonly minute: number;
  /** One per element of `limits`, in order. */
  readonly left: ReadonlyArray<RatesLeft>;
}

/** A refusal: the limit with the longest wait. */
export interface RateRefusal {
  /** The index in `limits`, or behind them in `entries` (then all of these are full, and this is free first). */
  readonly limit: number;
  readonly rate: RateKind;
  /** The wait until it has room, or until a request in flight ends. */
  readonly retryIn: Millis;
}
