// The counter store: accounts of gateway processes (not of customers) with their escrow, risk and unbooked spend per
// counter (LEDGER 3 to 6). Risk is charged if the process dies; escrow is only set aside, and never charged.
import type { Millis, Nano } from './money.ts';
import type { ScopeSpend, ScopeWindow } from './policy.ts';
import type { RateKind, RateRefusal, RateReply, RateRequest } from './rates.ts';

/** The figures of one counter in a call. Unchanged counters are left out, unless a request of the call names them. */
export interface CounterChange extends ScopeWindow {
  /** The limit of its scope. Absent: the scope spends without a limit, and no escrow is ever needed. */
  readonly limit?: Nano | undefined;
  /**
   * Spend since the last call; it belongs to the call's batch. Negative if corrections are larger. As much escrow, if
   * there is any, turns into spend.
   */
  readonly spend: Nano;
  /**
   * Spend that belongs to later batches, in their order. A new account reports in its first calls everything that its
   * process has not booked, which may need several batches.
   */
  readonly laterSpend?: ReadonlyArray<{ readonly batch: number; readonly spend: Nano }>;
  /**
   * The charge if another process closes the account: amounts of live reservations (for streams, the cost so far), and
   * costs of ended requests that this call does not report as `spend`. It replaces the previous figure in the step that
   * adds `spend`, so a cost is never in both, and never in neither.
   */
  readonly risk: Nano;
  /** Escrow that is returned, at most what the account has in addition to `spend`. */
  readonly returned: Nano;
  /**
   * Escrow that the account takes over from a previous account, whatever the limit is: for live reservations, and for
   * spend that is not reported before the epoch is open. In the first calls of an account, also in an absent counter.
   */
  readonly carriedOver: Nano;
  /**
   * Escrow that is requested ahead of requests. Granted whole or not at all: if no request of the call was refused in
   * this counter, no other account is waiting for escrow in it (`isWantedByOthers`), and 16 × live accounts × `ahead`
   * fits into what spend and escrow leave of the limit.
   */
  readonly ahead: Nano;
  /**
   * PostgreSQL's sum, read in this epoch some seconds ago at most. As `load`, before anything else is done: also if the
   * rest of the call cannot be done, but not after its deadline.
   */
  readonly sum?: Nano | undefined;
}

/** One request that needs the store: its whole amount from all its counters, or nothing. */
export interface ReservationRequest {
  /** Indexes of the counters in `changes`. */
  readonly counters: ReadonlyArray<number>;
  /** The size of the reservation. 0n: a free model, refused only by spend that has reached a limit. */
  readonly amount: Nano;
  /** The smallest useful amount: spend that leaves less refuses, spend that leaves more clamps. */
  readonly minAmount: Nano;
  /** Rates, taken together with the money or not at all; absent: nothing is limited. */
  readonly rates?: RateRequest | undefined;
  /** More money for a reservation of this account, whose window may be over. */
  readonly isGrowth?: true;
}

/**
 * The change of rates by a request that has ended: a number for each kind. Kinds that count in windows: negative for
 * use that was counted and did not happen, positive for use in addition to that. `parallel`: -1 if the request is no
 * longer in flight, 1 if it is in flight in this account after a previous account has ended; an account returns at most
 * what it has in flight, and all of that when it ends. Use of these kinds counts in the minute of the store's clock;
 * the previous minute counts for the share of it that the last 60 s still cover, rounded down. So requests that come
 * evenly, less often than the limit, are never refused; no minute of the clock admits more than the limit, and no 60 s
 * more than twice as much (all of it at the end of one minute and at the end of the next). A refusal never names a wait
 * above a minute.
 */
export interface RateChange extends Readonly<Record<RateKind, number>> {
  readonly id: string;
  /**
   * The minute in which the use that is returned was counted; a minute that no longer counts does not change. Absent:
   * the present minute.
   */
  readonly minute?: number | undefined;
}

/** The maximum numbers of changes and requests in one call (LEDGER 3). */
export const MAX_COUNTERS = 256;
export const MAX_REQUESTS = 64;

/**
 * The usual number of counters in one step of a closing, and in one load: no step depends on the number of counters
 * that an account or an instance has. A page of figures may be a little larger.
 */
export const FIGURES_PAGE = 500;

/** One numbered call. Numbers of an account begin with 1; a call is repeated unchanged until its outcome is known. */
export interface AccountCall {
  readonly epoch: number;
  /** A UUID, drawn by its process. */
  readonly account: string;
  readonly callNumber: number;
  /** How long the account lives without a call. */
  readonly lease: Millis;
  /**
   * The deadline on the store's clock: a call that arrives later grants nothing (its requests get `late`), the rest is
   * done. A first call that arrives later opens no account (`accountClosed`).
   */
  readonly deadline: Millis;
  /** The number of the batch that `spend` belongs to, and of the last batch that PostgreSQL has. */
  readonly batch: number;
  readonly bookedBatch: number;
  readonly changes: ReadonlyArray<CounterChange>;
  readonly requests: ReadonlyArray<ReservationRequest>;
  readonly rateChanges: ReadonlyArray<RateChange>;
  /**
   * Previous accounts of the same process that are frozen in the store and charged in PostgreSQL: this call forgets
   * their figures in its counters, as `forget` does.
   */
  readonly accountsToForget: ReadonlyArray<string>;
  /**
   * Whether the store finishes the account after this call, and forgets its figures: PostgreSQL has booked all that the
   * account reported and closed its row, or the account never reserved anything. An account with more figures than a
   * page, or with requests in flight in thousands of rates, is frozen instead.
   */
  readonly finishesAccount: boolean;
}

/** A counter after a call. */
export interface CounterReply {
  /** Undefined: the counter is absent. */
  readonly spent: Nano | undefined;
  /** Escrow of all accounts. */
  readonly escrowOfAll: Nano;
  /** Escrow of this account. */
  readonly escrow: Nano;
  /**
   * Whether another account's request was refused here within the last second because of escrow: idle escrow is
   * returned immediately.
   */
  readonly isWantedByOthers: boolean;
}

/** The reply to a request. `rates` are present if rates were requested. */
export type ReservationReply =
  /** Reserved, and part of the risk: `amount` is less than requested if spend left less. */
  | { readonly outcome: 'reserved'; readonly amount: Nano; readonly rates?: RateReply | undefined }
  /**
   * Spend alone leaves too little in this counter (an index in the request's `counters`). Takes precedence over
   * `limited` and `held`.
   */
  | {
      readonly outcome: 'exceeded';
      readonly counter: number;
      readonly spent: Nano;
      readonly rates?: RateReply | undefined;
    }
  /** Spend leaves enough, a rate does not. Takes precedence over `held`. */
  | ({ readonly outcome: 'limited'; readonly rates: RateReply } & RateRefusal)
  /** Spend leaves enough, escrow does not. */
  | { readonly outcome: 'held'; readonly counter: number; readonly rates?: RateReply | undefined }
  /** One of its counters is absent: nothing is decided. */
  | { readonly outcome: 'absent' }
  /** The deadline has passed: nothing is reserved. */
  | { readonly outcome: 'late' };

interface StoreReply {
  /** The store's clock, the only one of leases, deadlines and windows. */
  readonly now: Millis;
  /**
   * The number of calls, freezes and audits of all accounts that this store has done in its epoch: a store that shows
   * fewer than before has gone back in time.
   */
  readonly storeCalls: number;
}

export type AccountReply =
  | (StoreReply & {
      readonly outcome: 'done';
      /** Accounts whose lease has not ended, this one included. */
      readonly liveAccounts: number;
      /** Replies to the changes, in order. */
      readonly counters: ReadonlyArray<CounterReply>;
      readonly replies: ReadonlyArray<ReservationReply>;
      /** Some of the other accounts whose lease has ended: a process should close them. */
      readonly endedAccounts: ReadonlyArray<string>;
    })
  /**
   * These counters are not loaded, but a change spends or requests escrow ahead in them: nothing was done, and the
   * number is used up.
   */
  | (StoreReply & { readonly outcome: 'absent'; readonly absent: ReadonlyArray<number> })
  /**
   * The window of a requested counter is not current on the store's clock (growth alone does not need that): nothing
   * was done, and the number is used up.
   */
  | (StoreReply & { readonly outcome: 'window' })
  /**
   * Nothing was done. `accountClosed`: the account is frozen or finished, its first call came after the deadline, or
   * the number is older than the last. `wentBack`: the store has gone back in time, to an earlier call of the account
   * than the previous one, or to none.
   */
  | (StoreReply & { readonly outcome: 'stale'; readonly why: 'accountClosed' | 'wentBack' })
  | StaleStore;

/** The reply of a store in another epoch, or in none (0): nothing was done. */
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
  readonly unbookedSpend: ReadonlyArray<{ readonly batch: number; readonly spend: Nano }>;
}

export type FreezeReply =
  /** The account is frozen: from now on its calls are stale, and its figures only change by `forget`. */
  | (StoreReply & {
      readonly outcome: 'frozen';
      /** The number of its last call. */
      readonly callNumber: number;
    })
  /** The store has no such account; a late first call of it is refused from now on. */
  | (StoreReply & { readonly outcome: 'none' })
  /** The lease of the account has not ended: nothing was done. */
  | { readonly outcome: 'live'; readonly now: Millis }
  | StaleStore;

export type FiguresReply =
  | {
      readonly outcome: 'page';
      /** `isAbsent`: the counter is not loaded; it is loaded before the figures are charged. */
      readonly figures: ReadonlyArray<AccountFigures & { readonly isAbsent: boolean }>;
      /** The number of all figures that the account has. */
      readonly total: number;
      /** The cursor of the next page; absent: this is the last page. */
      readonly next?: string | undefined;
    }
  /** The account is not frozen, or it is finished. */
  | { readonly outcome: 'none' }
  | StaleStore;

/** PostgreSQL's row of an account (`LedgerDatabase.accountRows`). */
export interface AccountRow {
  /** The last batch that was booked; 0: none. */
  readonly bookedBatch: number;
  /** The number of its last answered call when that was booked. */
  readonly callNumber: number;
  readonly isClosed: boolean;
  /**
   * Whether `LedgerDatabase.close` closed the account in an open epoch, and has charged all its figures: its risk and
   * unbooked spend, possibly nothing. What was charged before is in the sums that are loaded.
   */
  readonly isCharged: boolean;
  /** Whether some of the figures are charged: a closing in the open epoch has begun and not ended. */
  readonly isClosing: boolean;
}

/** How the counters of an audit are compared. */
export interface AuditTerms {
  /**
   * The store's `storeCalls` before PostgreSQL was read; 0: unknown. The sums have the spend of accounts that ended, or
   * whose last batch the store knew as booked, before that: their rows are not needed. So the work of an audit depends
   * on the accounts that have unbooked spend or have booked meanwhile, not on the number of all accounts.
   */
  readonly storeCallsBefore: number;
  /** On the store's clock. After it nothing is done. */
  readonly deadline: Millis;
  /**
   * Whether no account is reported as changed. Then counters of changed accounts are checked by bounds: spend is raised
   * to the least that it can be, which is the sum and what is certainly not in it; it is lowered only by what the sum
   * lacks of its `minSum`. For example, an audit finds a spend of 100 of which 30 may not be booked: PostgreSQL has at
   * least 70 (`minSum`). If it then has only 65, the spend is lowered by 5, however much is booked meanwhile.
   */
  readonly acceptsChangedAccounts?: boolean;
}

/** A sum of PostgreSQL, with the least that it could be according to an audit before it was read. */
export type AuditSum = ScopeSpend & { readonly minSum?: Nano | undefined };

export interface AuditReply extends StoreReply {
  readonly outcome: 'done';
  /** Counters that were repaired, and by how much. */
  readonly differences: ReadonlyArray<ScopeWindow & { readonly by: Nano }>;
  /**
   * Accounts (finished ones too) that have booked a batch since PostgreSQL was read, that are not in `rows`, or of
   * which PostgreSQL has charged some figures and not all. If there are any, nothing was repaired: read again with
   * their rows. One account if more accounts have unbooked spend than one step reads: nothing was compared.
   */
  readonly changedAccounts: ReadonlyArray<string>;
  /** Counters of `changedAccounts`, without the spend that PostgreSQL may not have yet. */
  readonly minSums: ReadonlyArray<ScopeSpend>;
}

/**
 * The counter store: memory, Redis over TCP, or Upstash over HTTPS, with one promise suite (counter-store.promises.ts).
 * Throws if the store is unreachable or its reply is lost: then it is unknown whether the work was done, and all of it
 * may be repeated. Every method is one atomic step, and rejects within 2 s if no reply comes. A counter is { spent,
 * escrowOfAll }; `escrowOfAll` is the sum of the accounts' escrow. An absent counter is not zero: it is loaded before
 * anything is reported, requested or charged in it. It is dropped when its window is over and no account has figures in
 * it.
 */
export interface CounterStore {
  call(call: AccountCall): Promise<AccountReply>;
  /**
   * Sets absent counters to PostgreSQL's sums and the escrow that accounts have in them; loaded counters do not change.
   * `epoch`: the epoch in which PostgreSQL was read.
   */
  load(epoch: number, sums: ReadonlyArray<ScopeSpend>): Promise<void>;
  /** Reads counters; undefined for a counter that is not loaded. */
  read(
    counters: ReadonlyArray<ScopeWindow>,
  ): Promise<ReadonlyArray<{ readonly spent: Nano; readonly escrowOfAll: Nano } | undefined>>;
  /**
   * Freezes an account before it is closed: an account of another process only if its lease has ended; the own account
   * of the process (`isOwn`) immediately. Its escrow stays until `forget`, or until the next account of the process
   * names it in `accountsToForget`.
   */
  freeze(epoch: number, account: string, isOwn: boolean): Promise<FreezeReply>;
  /**
   * Reads a page of the figures of a frozen account, from the cursor on; no cursor: the first page. Figures that are
   * not forgotten meanwhile are in at least one page, unless another server has taken over: then the pages have fewer
   * figures than `total`.
   */
  figures(epoch: number, account: string, cursor?: string): Promise<FiguresReply>;
  /**
   * Forgets the figures of a frozen account in these counters, which PostgreSQL has closed, and finishes the account if
   * it has no others; its requests in flight end then. Charged: its risk becomes spend; else its counters are audited
   * before. Its unbooked spend stays counted. A repetition changes nothing, but a step ends the requests in flight of
   * only some thousand rates: an account with more stays frozen, and is closed again for the next ones.
   */
  forget(epoch: number, account: string, isCharged: boolean, counters: ReadonlyArray<ScopeWindow>): Promise<void>;
  /**
   * Lists accounts by the end of their lease, at most `max`; `isEnded`: only those whose lease has ended.
   * `unbookedBatch`: the last batch that is not known to be booked; 0: all are.
   */
  accounts(
    isEnded: boolean,
    max: number,
  ): Promise<ReadonlyArray<{ readonly account: string; readonly callNumber: number; readonly unbookedBatch: number }>>;
  /** Lists at most `max` loaded counters, and the number of all. May miss counters that are loaded meanwhile. */
  loaded(from: number, max: number): Promise<{ readonly counters: ReadonlyArray<ScopeWindow>; readonly total: number }>;
  /**
   * Sets each loaded counter to its sum plus the spend of accounts that their rows do not have yet. An account whose
   * row is closed adds nothing; if it is charged, its risk is subtracted, since `forget` adds it later.
   */
  audit(
    epoch: number,
    sums: ReadonlyArray<AuditSum>,
    rows: ReadonlyMap<string, AccountRow>,
    terms: AuditTerms,
  ): Promise<AuditReply | StaleStore>;
  /**
   * Returns the store's epoch. `isNew`: this process has raised the epoch, so a store with a lower epoch is emptied and
   * begins it; a store that has the epoch or a later one changes nothing, but throws if it takes no writes. The others
   * find it there, unless their connection leads to another server.
   */
  begin(epoch: number, isNew: boolean): Promise<number>;
  /** Ends the connection, if there is one: the next call connects again, to where the address leads then. */
  reconnect(): void;
  /** Deletes everything of the instance. */
  clear(): Promise<void>;
}
