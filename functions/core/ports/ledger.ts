// The ledger as the gateway asks it: hold before the upstream, settle or release after it (LEDGER).
import type { Result } from '../result.ts';
import type { Tokens } from './books.ts';
import type { Millis, Nano } from './money.ts';
import type { ScopePolicy, ScopeSpend, ScopeWindow } from './policy.ts';
import type { RateKind, RateLeft, RateLimit } from './rates.ts';

export interface HoldRequest {
  /** The request's own UUIDv7, under which its hold and its entry are known: that of its log line and its trace. Absent: the ledger draws one. */
  readonly id?: string;
  /** Every scope that pays: all or none. */
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /** Upper bound of what the request can cost; 0n for a free model. */
  readonly amount: Nano;
  /** The minimum that makes sense: the prompt and one token. */
  readonly minAmount: Nano;
  readonly model: string;
  /** `identifier` of the dearest target. */
  readonly identifier: string;
  /** About how many tokens it will use, for limits of tokens per minute; absent: none. */
  readonly tokens?: number;
  /**
   * Limits of the model entries that could serve, the best first, `undefined` where there is none: the first that has room
   * is taken. Absent: none of them is limited, and the hold moves to none that is.
   */
  readonly entries?: ReadonlyArray<RateLimit | undefined>;
  /** For so long the request has waited for the database already (its key was looked up). Absent: not at all. */
  readonly waited?: Millis;
}

/** What is left of the limit that leaves least, of requests and of tokens per minute. */
export interface RateView {
  readonly requests?: RateLeft & { readonly limit: number };
  readonly tokens?: RateLeft & { readonly limit: number };
}

/** Money set aside. Only the ledger makes one. */
export interface Hold {
  readonly id: string;
  /** What is really set aside: less than asked when spend left less (the caller then clamps the output). */
  readonly amount: Nano;
  readonly charges: ReadonlyArray<ScopeWindow>;
  /** Place of the entry that was taken, where entries are limited. */
  readonly entry?: number;
  /** Where anything is limited; this request is counted. */
  readonly rates?: RateView;
}

export type HoldRefusal =
  /** Spend alone leaves too little, until `resetAt`. */
  | {
      readonly reason: 'exceeded';
      readonly scope: ScopePolicy;
      readonly spent: Nano;
      readonly limit: Nano;
      readonly resetAt: Millis;
      readonly rates?: RateView;
    }
  /** Spend leaves enough, but requests in flight hold it. */
  | { readonly reason: 'busy'; readonly scope: ScopePolicy; readonly rates?: RateView }
  /** Too fast. Where no scope is named, every model entry is full. */
  | {
      readonly reason: 'limited';
      readonly scope?: ScopePolicy;
      readonly rate: RateKind;
      readonly limit: number;
      readonly retryIn: Millis;
      readonly rates: RateView;
    }
  /** Store, database or outbox could not be asked. `why` is for the log. */
  | { readonly reason: 'unavailable'; readonly why: string };

export interface Settlement {
  readonly cost: Nano;
  readonly tokens: Tokens;
  readonly model: string;
  readonly identifier: string;
  readonly estimated: boolean;
}

export interface Ledger {
  /**
   * Waits up to 1 s where only live holds stand in the way. Whatever store and database do, `unavailable` comes 0.9 s after the
   * request did, 1.8 s where the store is rebuilt meanwhile or all that is asked answers, slowly (decision 0027).
   */
  hold(request: HoldRequest): Promise<Result<Hold, HoldRefusal>>;
  /**
   * Says from now on what the reply has cost so far: the charge, should this process die. Asked when that is written down, not
   * for every chunk. `lost` is told once when the hold's lease may have ended, because store and process did not hear of each
   * other for so long: what is left of it may be others' now, and nothing more may be spent from it.
   */
  progress(hold: Hold, known: () => Nano, lost?: () => void): void;
  /**
   * Durable in the outbox (or booked) when it resolves: await it before the reply's last byte, and withhold that when it
   * rejects. Once per hold; a repeat changes nothing.
   */
  settle(hold: Hold, settlement: Settlement): Promise<void>;
  /**
   * Nothing was consumed. After a settlement it changes nothing. Never rejects: repeated until the store has it. `called`:
   * a provider was asked all the same, so the request counts in rates.
   */
  release(hold: Hold, how?: { readonly called: boolean }): Promise<void>;
  /**
   * The request goes on to another entry, because the one before failed. Refused where that one is full; the hold then
   * stays where it was. Nothing is asked of the store where neither is limited.
   */
  move(hold: Hold, to: RateLimit | undefined): Promise<Result<void, HoldRefusal>>;
  /** Spend of each scope in its current window, holds left out. Scopes without a budget answer undefined. `waited`: as of a `HoldRequest`. */
  spend(
    scopes: ReadonlyArray<ScopePolicy>,
    waited?: Millis,
  ): Promise<Result<ReadonlyArray<ScopeSpend | undefined>, HoldRefusal>>;
  /** Books everything settled so far into PostgreSQL; resolves when it is there, throws when it cannot be. */
  flush(): Promise<void>;
  /** Flushes what it can within the grace of a stop, then stops its timers. The outbox stays its maker's to close. */
  close(): Promise<void>;
}
