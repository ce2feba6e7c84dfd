// State of the account model: processes, one store and PostgreSQL, small enough to try every order (LEDGER 3, 6, 8).
import type { Flaw } from './flaws.ts';

/** A request of a scene: its process, the counters that pay, its hold and its true cost. */
export interface Request {
  readonly by: number;
  readonly counters: ReadonlyArray<number>;
  readonly amount: number;
  readonly cost: number;
  /** A stream: what a call tells as its risk while it runs, less than its cost. What it produces after that is lost with process and disk. */
  readonly streamed?: number;
  /** The charge of a first attempt that broke: its hold may grow by it, and then it costs so much more. */
  readonly grows?: number;
}

/** What may go wrong, and how often. */
export interface Faults {
  /** A reply of the store or of PostgreSQL is lost, or a call arrives later than it was given up. */
  readonly lost: number;
  /** The lease of a living process ends: it sleeps while others go on. */
  readonly slept: number;
  /** A process dies and its disk stays: its successor reads the outbox. */
  readonly crashed: number;
  /** A process dies with its disk. */
  readonly died: number;
  /** A process stops cleanly, with the store or while it is away. */
  readonly stopped: number;
  readonly wiped: number;
  /** The store goes back to a snapshot. */
  readonly restored: number;
  /** A limit falls by one. */
  readonly lowered: number;
  /** The window of every counter ends; the next one begins. */
  readonly edges: number;
}

export interface Scene {
  readonly name: string;
  readonly processes: number;
  /** Of each scope, in each of its windows. */
  readonly limits: ReadonlyArray<number>;
  readonly requests: ReadonlyArray<Request>;
  readonly faults: Partial<Faults>;
  /** Processes that serve one request each and end with it: they ask for exactly its hold, and have no ticks, batches or disk. */
  readonly workers?: ReadonlyArray<number>;
  /** Steps that are taken before the search begins. */
  readonly begin?: ReadonlyArray<string>;
  /** Planted in the model: the search must find it. */
  readonly flaw?: Flaw;
}

/** Amounts, one per counter. */
export type Sums = number[];

export interface Batch {
  readonly number: number;
  sums: Sums;
}

/** An account as the store has it. */
export interface Account {
  /** Number and outcome of the last call. */
  no: number;
  outcome: 'done' | 'absent' | 'window';
  granted: boolean;
  escrow: Sums;
  risk: Sums;
  unbooked: Batch[];
  /** The lease has ended and a closer has marked it: its figures are frozen. */
  closing: boolean;
}

/** A call as it was sent: repeated unchanged until its answer is known. */
export interface Call {
  readonly account: number;
  readonly epoch: number;
  readonly no: number;
  readonly spend: Sums;
  readonly risk: Sums;
  readonly returned: Sums;
  /** Escrow wanted: for one request exactly (`request` ≥ 0), or ahead (-1). */
  readonly wanted: Sums;
  readonly request: number;
  /** The request is live, and its hold grows in its own window. */
  readonly isGrowth: boolean;
  /** Money of live holds that is registered whatever the limits say: the first call of a process that was away. */
  readonly registered: Sums;
  readonly limits: Sums;
  /** The window of what is wanted. */
  readonly window: number;
  /** The batch that `spend` belongs to, and the last one that PostgreSQL has. */
  readonly batch: number;
  readonly booked: number;
  /** Requests that `spend` and `risk` contain, and accounts whose `expired` it takes back: the store does not see them. */
  readonly told: ReadonlyArray<number>;
  readonly live: ReadonlyArray<number>;
  readonly corrected: ReadonlyArray<number>;
  /** Closed accounts of the same process, which end with this call. */
  readonly forgotten: ReadonlyArray<number>;
  /** The store forgets the account, of which PostgreSQL has everything. */
  readonly isLast: boolean;
}

export interface Process {
  gone: '' | 'died' | 'stopped';
  /** Out of its epoch or account: it must rejoin before it does anything else. */
  out: boolean;
  /** The store has lost what this process told it. */
  isForgotten: boolean;
  /** A clean stop: under way; PostgreSQL may have everything, so nothing is told any more; it has, and only the last call is missing. */
  ending: '' | 'begun' | 'tried' | 'closed';
  /** Silent for a lease: it admits nothing before the store has answered it. */
  asleep: boolean;
  epoch: number;
  joined: number;
  /** Its account, -1: none. All its accounts stand in the outbox. */
  account: number;
  accounts: number[];
  no: number;
  pending: Call | null;
  escrow: Sums;
  /** At risk in the store after the last answered call; nothing without an account. */
  risk: Sums;
  /** The limits that its escrow was got under, and those that it knows. */
  limits: Sums;
  known: Sums;
  window: number;
  /** The batch that collects; the one that is sealed (0: none); the last that PostgreSQL acknowledged. */
  batch: number;
  sealed: number;
  booked: number;
  /** Accounts whose correction this account has told, with its batch. */
  corrections: { account: number; batch: number }[];
  /** Sums read from PostgreSQL, to be loaded. */
  read: { sums: Sums; epoch: number } | null;
  /** The account that it is closing, with the frozen figures (null: the store has none), and whether PostgreSQL knows and its counters are audited. */
  closing: { account: number; figures: Account | null; closed: boolean; audited: boolean } | null;
}

export type Stage =
  | 'new'
  | 'live'
  /** Settled: in the outbox, the store not told. */
  | 'done'
  /** In a call whose answer is not known. */
  | 'sent'
  | 'told'
  | 'booked'
  | 'refused'
  | 'released'
  | 'gone live'
  | 'gone done';

export interface Progress {
  stage: Stage;
  /** The counters that it was admitted in. */
  window: number;
  /** Whether the last byte of its reply has gone out. A reply that ends uncovered after 2 s of silence counts as one that waits. */
  isEnded: boolean;
  /** A call has told its hold. */
  isFigured: boolean;
  /** Its hold has grown, or may have when its process died. */
  isGrown: boolean;
  /** Charged at its size: its process died before it was settled, and its outbox says no more. */
  atSize: boolean;
  batch: number;
}

export interface Counter {
  spent: number;
  held: number;
}

export interface Store {
  epoch: number;
  counters: (Counter | null)[];
  accounts: Record<number, Account>;
  /** Accounts that were closed: a late first call does not open them again. */
  finished: number[];
}

/** PostgreSQL's row of an account: its last batch, and the number of its last answered call when that was booked. */
export interface Row {
  last: number;
  no: number;
  closed: boolean;
  /** Charged before the epoch was open: in all sums that are read in it. */
  early?: boolean;
}

export interface State {
  store: Store;
  /** The window that is current on the store's clock. */
  window: number;
  limits: Sums;
  books: {
    epoch: number;
    open: boolean;
    /** Requests with a `settled` entry. */
    settled: number[];
    /** `expired` entries by account, and accounts with a `correction`. */
    expired: Record<number, Sums>;
    corrected: number[];
    rows: Record<number, Row>;
  };
  processes: Process[];
  requests: Progress[];
  /** Calls that were given up and may still arrive. */
  late: Call[];
  saved: Store | null;
  /** Processes, and PostgreSQL (-1), that know of a later call than the snapshot does: by the count of all calls in each answer. */
  ahead: number[];
  /** An old snapshot is in use: somebody who is ahead will notice. */
  stale: boolean;
  /** A limit may be exceeded from here on: the store forgot a process that was away, or a limit fell. */
  excused: boolean;
  /** A stop has booked in another epoch than it told in: the next sweep finds the difference. */
  unaudited: boolean;
  /** Processes whose disk was lost while the store had lost their account. */
  lost: number[];
  left: Record<keyof Faults, number>;
}

export interface Edge {
  readonly name: string;
  readonly to: State;
  /** The violated law, if any. */
  readonly wrong?: string | undefined;
}

/** Adds an edge; what `change` returns is the violated law. */
export type Go = (name: string, change: (to: State) => string | undefined) => void;

export const copyAccount = (one: Account): Account => ({
  ...one,
  escrow: [...one.escrow],
  risk: [...one.risk],
  unbooked: one.unbooked.map(({ number, sums }) => ({ number, sums: [...sums] })),
});

export const copyStore = (store: Store): Store => ({
  epoch: store.epoch,
  counters: store.counters.map((counter) => counter && { ...counter }),
  accounts: Object.fromEntries(Object.entries(store.accounts).map(([id, one]) => [id, copyAccount(one)])),
  finished: [...store.finished],
});

/** A copy that shares only what is never changed in place: calls, figures, sums that are replaced as a whole. */
export const copyOf = (state: State): State => ({
  ...state,
  store: copyStore(state.store),
  limits: [...state.limits],
  books: {
    ...state.books,
    settled: [...state.books.settled],
    expired: { ...state.books.expired },
    corrected: [...state.books.corrected],
    rows: Object.fromEntries(Object.entries(state.books.rows).map(([id, row]) => [id, { ...row }])),
  },
  processes: state.processes.map((one) => ({
    ...one,
    accounts: [...one.accounts],
    escrow: [...one.escrow],
    corrections: [...one.corrections],
    closing: one.closing && { ...one.closing },
  })),
  requests: state.requests.map((one) => ({ ...one })),
  late: [...state.late],
  ahead: [...state.ahead],
  lost: [...state.lost],
  left: { ...state.left },
});

/** Calls as text, without their numbers: they never change, and many states share them. */
const CALLS = new WeakMap<Call, string>();
function textOf(call: Call): string {
  const known = CALLS.get(call);
  if (known !== undefined) return known;
  const text = Object.values({ ...call, no: 0 }).join(';');
  CALLS.set(call, text);
  return text;
}

/** The same for states that only differ in how many calls there were: numbers count from the store's last one of the account. */
export function keyOf({ store, saved, processes, late, books, ...state }: State): string {
  const from = (account: number, no: number): number => {
    const last = store.accounts[account]?.no;
    return last === undefined ? Math.min(no, 3) + 100 : Math.max(-2, Math.min(2, no - last));
  };
  const callOf = (call: Call | null): unknown => call && [textOf(call), from(call.account, call.no)];
  const isAskable = (id: number): boolean =>
    [...late, ...processes.map(({ pending }) => pending)].some((one) => one?.account === id);
  // A store that went back is behind PostgreSQL's row.
  const isBehind = (id: number, no: number | undefined): boolean => no !== undefined && no < (books.rows[id]?.no ?? 0);
  const figuresOf = (id: number, { no, escrow, risk, unbooked }: Account): unknown => [
    ...[isBehind(id, no), escrow, risk, unbooked],
  ];
  const storeOf = (of: Store): unknown => [
    of.counters.map((counter) => counter && [counter.spent, counter.held]),
    Object.entries(of.accounts).map(([id, { no, outcome, granted, ...one }]) => [
      ...[id, Object.values(one), from(Number(id), no)],
      ...(isAskable(Number(id)) || of !== store ? [outcome, granted] : []),
    ]),
    [of.epoch, of.finished],
  ];
  return JSON.stringify([
    ...[storeOf(store), saved && storeOf(saved), Object.values(state), late.map(callOf)],
    [books.epoch, books.open, books.settled, books.expired, books.corrected],
    Object.entries(books.rows).map(([id, row]) => [
      ...[id, row.last, row.closed, row.early, isBehind(Number(id), store.accounts[Number(id)]?.no)],
      isBehind(Number(id), saved?.accounts[Number(id)]?.no),
    ]),
    processes.map(({ no, pending, closing, ...one }) => [
      ...[Object.values(one), from(one.account, no), callOf(pending)],
      closing && [
        closing.account,
        closing.closed,
        closing.audited,
        closing.figures && figuresOf(closing.account, closing.figures),
      ],
    ]),
  ]);
}
