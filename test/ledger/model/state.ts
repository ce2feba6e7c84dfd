// State of the model: two processes, one store and PostgreSQL, small enough to try every order (LEDGER 1, 6).
/** Requests: their process, scopes, hold and cost. The limits admit any two of them, not all three. */
export const REQUESTS = [
  { by: 0, scopes: [0], amount: 2, cost: 1 },
  { by: 1, scopes: [0, 1], amount: 2, cost: 2 },
  { by: 1, scopes: [1], amount: 1, cost: 1 },
] as const;

export const LIMITS = [3, 2] as const;

/**
 * The faults that may happen: lost answers, late calls, expired leases, stores that are wiped or set back to a snapshot of any
 * earlier step, processes that sleep through a rebuild, processes that die with their disk.
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
  /** The amount held, or charged when the lease ended. */
  amount: number;
  /** For an expired hold: whether PostgreSQL has the expiry, and what came later. */
  known: boolean;
  late: '' | 'settled' | 'released';
  corrected: boolean;
}

export interface Entry {
  readonly of: number;
  readonly kind: Kind;
  readonly cost: number;
  readonly epoch: number;
  /** The booked charge of its expiry, if any. */
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
    /** Whether it was read from the records of a dead process. */
    drained: Entry[];
    /** The processes whose calls since the snapshot the store showed then. */
    seen: boolean[];
    /** Whether the store has answered it since the snapshot, and PostgreSQL knows. */
    since: boolean;
    marked: boolean;
  }[];
  /** The saved store, which may come back. */
  saved: State['store'] | null;
  /** Set when the saved store came back: the processes whose calls it has lost. */
  stale: { behind: boolean[]; marked: boolean } | null;
  /** An old store admitted a hold before the loss was detected. */
  excused: boolean;
  /** Sweeps follow: bookings, audits and forgets since then may be undone, and no count of calls shows it. */
  returned: boolean;
  /** `taken`: money may be held for it; `heard`: its process knows. */
  requests: {
    stage: string;
    moved: boolean;
    taken: boolean;
    heard: boolean;
    lateHold: number;
    lateSettle: number;
    /** Whether the store and the disk of its process were lost together. */
    lost: boolean;
  }[];
  left: { lost: number; expired: number; wiped: number; slept: number; restored: number; died: number };
}

/** A call to the real store, and the answer it must give. */
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
  /** The violated law, if any. */
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

/** A copy that shares the parts that are never changed in place. */
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

/** A short key, the same for the same state. */
export function keyOf({ store, books, processes, requests, saved, stale, left, excused, returned }: State): string {
  const records = (of: State['store']): unknown => [of.epoch, of.loaded, of.spent, of.held, of.records.map(valuesOf)];
  return JSON.stringify([
    ...[records(store), books.epoch, books.open, books.entries, books.lock, books.read, stale, excused, returned],
    ...[processes.map(valuesOf), requests.map(valuesOf), saved === null ? 0 : records(saved), valuesOf(left)],
  ]);
}

export const valuesOf = (of: object | null): unknown => (of === null ? 0 : Object.values(of));
