// Rates: requests and tokens per minute, requests at once, and what of them is left (decision 0012).
import type { Millis } from './money.ts';

/** What one scope or one model entry may use. A member that is absent is not limited. */
export interface RateLimit {
  /** Names it among those of its instance: what it uses is counted under this. */
  readonly id: string;
  /** Requests in any minute. */
  readonly requests?: number;
  /** Tokens in any minute. */
  readonly tokens?: number;
  /** Requests in flight at the same time. */
  readonly parallel?: number;
}

export type RateKind = 'requests' | 'tokens' | 'parallel';

/** What a hold takes of rates, beside its money. */
export interface RateRequest {
  /** About how many tokens the request will use; what it really used is told when it is settled. */
  readonly tokens: number;
  /** All of them must have room. */
  readonly limits: ReadonlyArray<RateLimit>;
  /** Alternatives, the best first: one of them must have room too; `undefined` is not limited. Empty: none is needed. */
  readonly entries: ReadonlyArray<RateLimit | undefined>;
}

/** What is left of one limit. */
export interface RateLeft {
  readonly remaining: number;
  /** Until all of it is there again, if nothing more is used. */
  readonly resetIn: Millis;
}

export interface RatesLeft {
  readonly requests?: RateLeft;
  readonly tokens?: RateLeft;
}

/** As of the answer, what it took included. */
export interface RateReply {
  /** Which of the alternatives was taken. */
  readonly entry?: number;
  /** In the order of `limits`. */
  readonly left: ReadonlyArray<RatesLeft>;
}

/** Refused: the limit that keeps it waiting longest. */
export interface RateRefusal {
  /** Its place in `limits`, or behind them in `entries` (then all of these are full, and this is free first). */
  readonly limit: number;
  readonly rate: RateKind;
  /** Earlier it cannot be taken, unless what is in flight ends; then at once. */
  readonly retryIn: Millis;
}

/** A request goes on to another alternative: the former one gets its tokens back, not its request. */
export interface MoveOperation {
  /** Of the hold. One that is not held any more moves nowhere, and may go on. */
  readonly id: string;
  readonly tokens: number;
  /** `undefined`: one that is not limited. */
  readonly to: RateLimit | undefined;
}

/** `undefined`: it moved. */
export type MoveAnswer = Pick<RateRefusal, 'rate' | 'retryIn'> | undefined;
