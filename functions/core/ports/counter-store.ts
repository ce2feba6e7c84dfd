// The store of accounts: what each process has set aside, has at risk and has not booked, per counter (LEDGER 3 to 6).
import type { Millis, Nano } from './money.ts';
import type { ScopeSpend, ScopeWindow } from './policy.ts';
import type { RateRefusal, RateReply, RateRequest } from './rates.ts';

/**
 * The figures of one counter in a call. A counter that did not change is left out; an ask names its counters here too.
 */
export interface CounterChange extends ScopeWindow {
  /** The limit of its scope. Absent: the scope spends without a limit, and no escrow is ever needed. */
  readonly limit?: Nano | undefined;
  /**
   * Spend since the last call; it belongs to the call's batch. Negative where corrections outweigh it. Escrow of the
   * same amount, as far as there is any, turns into spend.
   */
  readonly spend: Nano;
  /**
   * The charge if the account is closed by another: sizes of live reservations; of streams, the cost so far. Replaces
   * the earlier figure.
   */
  readonly risk: Nano;
  /** Escrow given back, never more than the account has beside `spend`. */
  readonly returned: Nano;
  /**
   * Live holds that are held again whatever the limit says: the first call of a process that was away. Also taken in an
   * absent counter.
   */
  readonly registered: Nano;
  /**
   * Escrow wanted ahead of requests. Granted whole or not at all: while no ask of the call was refused in this counter,
   * nobody is refused in it elsewhere (`isWanted`), and 16 × live accounts × `ahead` fits into what spend and escrow
   * leave of the limit.
   */
  readonly ahead: Nano;
}

/** One request that needs the store: its whole amount from all its counters, or nothing. */
export interface ReservationRequest {
  /** Indexes of its counters in `lines`. */
  readonly counters: ReadonlyArray<number>;
  /** The size of the reservation. 0n: a free model, refused only by spend that has reached a limit. */
  readonly amount: Nano;
  /** The smallest useful amount: spend that leaves less refuses, spend that leaves more clamps. */
  readonly minAmount: Nano;
  /** Rates, taken together with the money or not at all; absent where nothing is limited. */
  readonly rates?: RateRequest | undefined;
  /** More money for a reservation of this account, whose window may be over. */
  readonly isGrowth?: true;
}

/**
 * What a request that has ended changes in its rates. Requests and tokens count in the minute of the store's clock; the
 * minute before counts for the share of it that the last 60 s still cover, rounded down. So requests that come evenly,
 * less often than the limit, are never refused; no minute of the clock admits more than the limit, and no 60 s more
 * than twice as much (all of it at the end of one minute and at the end of the next). A refusal never tells a wait
 * above a minute.
 */
export interface RateChange {
  readonly id: string;
  /**
   * The minute that requests and tokens are given back to, in which they were taken; one that no longer counts stays as
   * it is. Absent: the present one.
   */
  readonly minute?: number | undefined;
  /** -1: no provider was called. */
  readonly requests: number;
  /** Tokens that were taken and not used, negative; or used beyond those. */
  readonly tokens: number;
  /**
   * -1: it is no longer in flight; 1: in flight in this account, after an earlier one has ended. An account gives back
   * no more than it has in flight, and all of that when it ends.
   */
  readonly parallel: number;
}

/** At most this many lines and asks in one call (LEDGER 3). */
export const MAX_COUNTERS = 256;
export const MAX_REQUESTS = 64;

/** One numbered call. Numbers of an account begin with 1; a call is repeated unchanged until its outcome is known. */
export interface AccountCall {
  readonly epoch: number;
  /** A UUID, drawn by its process. */
  readonly account: string;
  readonly number: number;
  /** How long the account lives without a call. */
  readonly lease: Millis;
  /**
   * On the store's clock: a call that arrives later grants nothing (asks answer `late`), the rest is done. A first call
   * that arrives later opens no account (`closed`).
   */
  readonly deadline: Millis;
  /** The batch that `spend` belongs to, and the last one that PostgreSQL has. */
  readonly batch: number;
  readonly booked: number;
  readonly changes: ReadonlyArray<CounterChange>;
  readonly requests: ReadonlyArray<ReservationRequest>;
  readonly rateChanges: ReadonlyArray<RateChange>;
  /** Earlier accounts of the same process, closed in PostgreSQL: charged and forgotten in the same step. */
  readonly previousAccounts: ReadonlyArray<string>;
  /**
   * The store forgets the account: PostgreSQL has booked all that it told, and closed its row, or it never held
   * anything.
   */
  readonly isLast: boolean;
}

/** A counter after a call. */
export interface CounterReply {
  readonly spent: Nano;
  /** Escrow of all accounts. */
  readonly reserved: Nano;
  /** Escrow of this account. */
  readonly escrow: Nano;
  /**
   * Another account's ask was refused here within the last second because of escrow: idle escrow goes back immediately.
   */
  readonly isWanted: boolean;
}

/** The answer to an ask. `rates` are present where rates were asked for. */
export type ReservationReply =
  /** Held, and part of the risk: `amount` is less than asked when clamped. */
  | { readonly outcome: 'reserved'; readonly amount: Nano; readonly rates?: RateReply | undefined }
  /**
   * Spend alone leaves too little in this counter (an index in the ask's `lines`). Takes precedence over `limited` and
   * `busy`.
   */
  | {
      readonly outcome: 'exceeded';
      readonly counter: number;
      readonly spent: Nano;
      readonly rates?: RateReply | undefined;
    }
  /** Spend leaves enough, a rate does not. Takes precedence over `busy`. */
  | ({ readonly outcome: 'limited'; readonly rates: RateReply } & RateRefusal)
  /** Spend leaves enough, escrow does not. */
  | { readonly outcome: 'busy'; readonly counter: number; readonly rates?: RateReply | undefined }
  /** The deadline has passed: nothing is held. */
  | { readonly outcome: 'late' };

interface StoreReply {
  /** The store's clock, the only one of leases, deadlines and windows. */
  readonly now: Millis;
  /**
   * Calls, markings and audits that this store has done in its epoch: a store that shows fewer than before has gone
   * back in time.
   */
  readonly calls: number;
}

export type AccountReply =
  | (StoreReply & {
      readonly outcome: 'done';
      /** Accounts whose lease has not ended, this one included. */
      readonly accounts: number;
      /** One per line, in order. */
      readonly counters: ReadonlyArray<CounterReply>;
      readonly replies: ReadonlyArray<ReservationReply>;
      /** Other accounts whose lease has ended, some of them: somebody should close them. */
      readonly ended: ReadonlyArray<string>;
    })
  /** These lines are not loaded and would be spent or asked in: nothing was done, and the number is used up. */
  | (StoreReply & { readonly outcome: 'absent'; readonly absent: ReadonlyArray<number> })
  /**
   * The window of a line that is asked in, not only by growth, is not current on the store's clock: nothing was done,
   * and the number is used up.
   */
  | (StoreReply & { readonly outcome: 'window' })
  /**
   * Nothing was done. `closed`: another has marked or forgotten the account, or the number is older than the last.
   * `behind`: the store has an earlier number than the call's predecessor, or none.
   */
  | (StoreReply & { readonly outcome: 'stale'; readonly why: 'closed' | 'behind' })
  | StaleStore;

/** The answer of a store in another epoch, or in none (0): nothing was done. */
export interface StaleStore {
  readonly outcome: 'epoch';
  readonly now: Millis;
  readonly epoch: number;
}

/** Figures of an account in one counter. */
export interface AccountFigures extends ScopeWindow {
  readonly escrow: Nano;
  readonly risk: Nano;
  /** Spend by batch, not known to be booked. */
  readonly unbooked: ReadonlyArray<{ readonly batch: number; readonly spend: Nano }>;
}

export type FreezeReply =
  /** Frozen: from now on its calls are stale. Repeated, the same figures again. */
  | (StoreReply & {
      readonly outcome: 'frozen';
      /** The number of its last call. */
      readonly number: number;
      readonly figures: ReadonlyArray<AccountFigures>;
    })
  /** The store has no such account; a late first call of it is refused from now on. */
  | (StoreReply & { readonly outcome: 'none' })
  /** Its lease has not ended: nothing was done. */
  | { readonly outcome: 'live'; readonly now: Millis }
  /** Counters that it has something in are not loaded: load them first. Nothing was done. */
  | { readonly outcome: 'absent'; readonly now: Millis; readonly counters: ReadonlyArray<ScopeWindow> }
  | StaleStore;

/** PostgreSQL's row of an account (`AccountBooks.rows`). */
export interface AccountRow {
  /** The last batch that was booked; 0: none. */
  readonly booked: number;
  /** The number of its last answered call when that was booked. */
  readonly number: number;
  readonly isClosed: boolean;
  /**
   * Closed by `AccountBooks.close` in an open epoch: what it had at risk and unbooked was charged in its name, possibly
   * nothing. What was charged before is in the sums that are loaded.
   */
  readonly isCharged: boolean;
}

export interface AuditReport extends StoreReply {
  readonly outcome: 'done';
  /** Counters that were repaired, and by how much. */
  readonly differences: ReadonlyArray<ScopeWindow & { readonly by: Nano }>;
  /**
   * Accounts of which a batch left the store after PostgreSQL was read, or that are not in `rows`, finished ones too:
   * nothing was repaired, read again with their rows.
   */
  readonly moved: ReadonlyArray<string>;
}

/**
 * Memory, Redis over TCP, Upstash over HTTPS: one promise suite (accounts.promises.ts). Throws when the store is away
 * or its answer is lost: then it is unknown whether the work was done, and all of it may be repeated. Every method is
 * one atomic step, and rejects within 2 s if no answer comes.
 *
 * A counter is { spent, reserved }; `reserved` is the sum of the accounts' escrow. An absent counter is not zero: it is
 * loaded before anything is told, asked or charged in it. It leaves the store when its window is over and no account
 * has anything in it.
 */
export interface CounterStore {
  call(call: AccountCall): Promise<AccountReply>;
  /**
   * Sets absent counters to PostgreSQL's sums and the escrow that accounts have in them; loaded ones stay. `epoch`: in
   * which PostgreSQL was read.
   */
  load(epoch: number, sums: ReadonlyArray<ScopeSpend>): Promise<void>;
  /** These counters now; undefined when not loaded. */
  read(
    counters: ReadonlyArray<ScopeWindow>,
  ): Promise<ReadonlyArray<{ readonly spent: Nano; readonly reserved: Nano } | undefined>>;
  /**
   * Freezes an account before it is closed: another's only when its lease has ended; one's own (`isOwn`) immediately.
   * Its escrow stays until it is forgotten, by `finish`, or by `ends` of the process's next account. All its counters
   * must be loaded, except before an epoch is open (`isRebuild`), while nobody reads sums.
   */
  freeze(
    epoch: number,
    account: string,
    how: { readonly isOwn: boolean; readonly isRebuild: boolean },
  ): Promise<FreezeReply>;
  /**
   * Forgets a marked account whose closing PostgreSQL has. Charged: its risk becomes spend; else its counters are
   * audited before. Its unbooked spend stays counted. Repeated: nothing.
   */
  forget(epoch: number, account: string, isCharged: boolean): Promise<void>;
  /**
   * Accounts, by the end of their lease, at most `max`; `isEnded`: only those whose lease has ended. `unbooked`: the
   * highest batch that is not known to be booked, 0: none.
   */
  accounts(
    isEnded: boolean,
    max: number,
  ): Promise<ReadonlyArray<{ readonly account: string; readonly number: number; readonly unbooked: number }>>;
  /** Loaded counters, a page of them, and the start of the next; counters loaded meanwhile may be missed. */
  loaded(
    from: string,
    max: number,
  ): Promise<{ readonly counters: ReadonlyArray<ScopeWindow>; readonly next?: string | undefined }>;
  /**
   * Sets loaded counters to `spent` plus what accounts have unbooked beyond their row; of a row that is closed and
   * charged its risk is subtracted, and of any closed row no unbooked is added. After the deadline (store's clock)
   * nothing is done.
   */
  audit(
    epoch: number,
    sums: ReadonlyArray<ScopeSpend>,
    rows: ReadonlyMap<string, AccountRow>,
    deadline: Millis,
  ): Promise<AuditReport | StaleStore>;
  /** Moves the store to this epoch: empty, unless it is there already. Returns the epoch: a higher one stays. */
  begin(epoch: number): Promise<number>;
  /** Deletes everything of the instance. */
  clear(): Promise<void>;
}
