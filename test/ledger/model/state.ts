// State of the model: two processes, one store and PostgreSQL, small enough to try every order (LEDGER 1, 6).
/** Requests: whose, out of which scopes, how much is held, what it costs. The limits let any two of them in, not all three. */
export const REQUESTS = [
  { by: 0, scopes: [0], amount: 2, cost: 1 },
  { by: 1, scopes: [0, 1], amount: 2, cost: 2 },
  { by: 1, scopes: [1], amount: 1, cost: 1 },
] as const;

export const LIMITS = [3, 2] as const;

/**
 * How much may go wrong on the way: answers lost, calls that arrive late, leases that end, stores that are wiped or set back to a
 * snapshot of any step before, rebuilds slept through, processes that are gone for good with their disk.
 */
export interface Adversity {
  readonly lost: number;
  readonly expired: number;
  readonly wiped: number;
  readonly slept: number;
  readonly restored: number;
  readonly died: number;
}

export type Kind = 'settled' | 'expired' | 'correction';

export interface Record_ {
  state: 'held' | 'settled' | 'released' | 'expired';
  cost: number;
  /** What is set aside, or was charged when its lease ended. */
  amount: number;
  /** Of an expired one: whether PostgreSQL has its end, and what came later. */
  known: boolean;
  late: '' | 'settled' | 'released';
  corrected: boolean;
}

export interface Entry {
  readonly of: number;
  readonly kind: Kind;
  readonly cost: number;
  readonly epoch: number;
  /** Of whatever the end of its lease was charged, if that was booked. */
  readonly isRefund?: boolean;
}

export interface State {
  store: { epoch: number; loaded: boolean; spent: number[]; held: number[]; records: (Record_ | null)[] };
  books: {
    epoch: number;
    open: boolean;
    entries: Partial<Record<Kind, number>>[];
    lock: number;
    read: { sums: number[]; booked: string[] } | null;
  };
  processes: {
    epoch: number;
    out: boolean;
    joined: number;
    unbooked: Entry[];
    unforgotten: string[];
    suspectCounters: boolean;
    slept: boolean;
    dead: boolean;
    /** Read from what a dead process left in the store. */
    drained: Entry[];
    /** Whose calls since the snapshot the store showed then. */
    seen: boolean[];
    /** The store has answered it since the snapshot was made, and PostgreSQL was told so. */
    since: boolean;
    marked: boolean;
  }[];
  /** What the store was when it was saved; it may come back so. */
  saved: State['store'] | null;
  /** It came back so, and each process whose calls it does not remember. */
  stale: { behind: boolean[]; marked: boolean } | null;
  /** Something was let in by an old store that nobody had noticed. */
  excused: boolean;
  /** Sweeps follow: what was booked, audited or forgotten since may be undone, and no count of calls shows it. */
  returned: boolean;
  /** `taken`: something may be held for it; `heard`: its process knows so. */
  requests: {
    stage: string;
    moved: boolean;
    taken: boolean;
    heard: boolean;
    lateHold: number;
    lateSettle: number;
    /** The store and the disk of its process were lost together. */
    lost: boolean;
  }[];
  left: { lost: number; expired: number; wiped: number; slept: number; restored: number; died: number };
}

/** What the real store is asked, and what it must answer. */
export type StoreStep =
  | { readonly call: 'hold'; readonly of: number; readonly epoch: number; readonly answer: string }
  | {
      readonly call: 'settle';
      readonly of: number;
      readonly epoch: number;
      readonly counted: boolean;
      readonly answer: string;
    }
  | { readonly call: 'release'; readonly of: number; readonly epoch: number; readonly answer: string }
  | {
      readonly call: 'load';
      readonly epoch: number;
      readonly sums: readonly number[];
      readonly booked: readonly string[];
    }
  | {
      readonly call: 'register';
      readonly epoch: number;
      readonly amounts: readonly number[];
      readonly of: readonly number[];
      readonly charged: readonly (number | undefined)[];
    }
  | { readonly call: 'adjust'; readonly epoch: number; readonly by: readonly number[] }
  | { readonly call: 'forget'; readonly names: readonly string[] }
  | { readonly call: 'begin'; readonly epoch: number }
  | { readonly call: 'expire'; readonly of: number }
  | { readonly call: 'wipe' }
  | { readonly call: 'save' }
  | { readonly call: 'restore' };

export interface Edge {
  readonly name: string;
  readonly to: State;
  readonly steps: readonly StoreStep[];
  /** What must not be, if anything is. */
  readonly wrong?: string;
}

export type Go = (
  label: string,
  change: (to: State) => readonly StoreStep[] | { steps: readonly StoreStep[]; wrong: string },
) => void;

export const emptyStore = (epoch: number): State['store'] => ({
  ...{ epoch, loaded: false, spent: [0, 0], held: [0, 0] },
  records: REQUESTS.map(() => null),
});

export function initial(left: Adversity): State {
  const process = {
    ...{ epoch: 1, out: false, joined: 1, unbooked: [], unforgotten: [], suspectCounters: false, slept: false },
    ...{ dead: false, drained: [], seen: [], since: false, marked: false },
  };
  const request = { stage: 'new', moved: false, taken: false, heard: false, lateHold: 0, lateSettle: 0, lost: false };
  return {
    store: emptyStore(1),
    books: { epoch: 1, open: true, entries: REQUESTS.map(() => ({})), lock: -1, read: null },
    processes: [structuredClone(process), structuredClone(process)],
    requests: REQUESTS.map(() => ({ ...request })),
    ...{ saved: null, stale: null, excused: false, returned: false },
    left: { ...left },
  };
}

export const copyStore = ({ records, spent, held, ...store }: State['store']): State['store'] => ({
  ...{ ...store, spent: [...spent], held: [...held] },
  records: records.map((record) => (record === null ? null : { ...record })),
});

/** What is never changed in place is shared. */
export const copyOf = ({ store, books, processes, requests, left, ...rest }: State): State => ({
  ...rest,
  store: copyStore(store),
  books: { ...books, entries: books.entries.map((kinds) => ({ ...kinds })) },
  processes: processes.map(({ unbooked, unforgotten, drained, ...one }) => ({
    ...{ ...one, unbooked: [...unbooked], unforgotten: [...unforgotten], drained: [...drained] },
  })),
  requests: requests.map((one) => ({ ...one })),
  left: { ...left },
});

/** Short, and the same for the same state. */
export function keyOf({ store, books, processes, requests, saved, stale, left, excused, returned }: State): string {
  const records = (of: State['store']): unknown => [of.epoch, of.loaded, of.spent, of.held, of.records.map(valuesOf)];
  return JSON.stringify([
    ...[records(store), books.epoch, books.open, books.entries, books.lock, books.read, stale, excused, returned],
    ...[processes.map(valuesOf), requests.map(valuesOf), saved === null ? 0 : records(saved), valuesOf(left)],
  ]);
}

export const valuesOf = (of: object | null): unknown => (of === null ? 0 : Object.values(of));
