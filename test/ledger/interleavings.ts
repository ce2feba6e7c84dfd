// Which orders can things happen in? A model of two processes, one store and PostgreSQL, small enough to try every one of them (LEDGER 1, 5).

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
    doubts: boolean;
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

const emptyStore = (epoch: number): State['store'] => ({
  ...{ epoch, loaded: false, spent: [0, 0], held: [0, 0] },
  records: REQUESTS.map(() => null),
});

export function initial(left: Adversity): State {
  const process = {
    ...{ epoch: 1, out: false, joined: 1, unbooked: [], unforgotten: [], doubts: false, slept: false },
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

const scopesOf = (of: number): readonly number[] => REQUESTS[of]?.scopes ?? [];
const amountOf = (of: number): number => REQUESTS[of]?.amount ?? 0;
const costOf = (of: number): number => REQUESTS[of]?.cost ?? 0;
const at = <T>(list: readonly T[], index: number): T => list[index] as T;
const name = (of: number, kind: Kind): string => `${of} ${kind}`;

export function partsOf(of: number, record: Record_ | null): { of: number; kind: Kind; cost: number }[] {
  if (record?.state === 'settled') return [{ of, kind: 'settled', cost: record.cost }];
  if (record?.state !== 'expired') return [];
  const parts: { of: number; kind: Kind; cost: number }[] = [];
  if (!record.known) parts.push({ of, kind: 'expired', cost: record.amount });
  if (record.late !== '' && !record.corrected)
    parts.push({ of, kind: 'correction', cost: record.cost - record.amount });
  return parts;
}

/** A settlement may have become the correction of a lease's end. */
const isBooked = ({ books }: State, of: number, kind: Kind): boolean =>
  at(books.entries, of)[kind] !== undefined || (kind === 'settled' && at(books.entries, of).correction !== undefined);

export function sumsOf({ books }: State): number[] {
  return LIMITS.map((_, scope) =>
    books.entries.reduce(
      (all, kinds, of) =>
        scopesOf(of).includes(scope) ? all + Object.values(kinds).reduce((sum, cost) => sum + cost, 0) : all,
      0,
    ),
  );
}

/** What a counter must show, beside the holds. */
function exact(state: State, sums: readonly number[], booked: (of: number, kind: Kind) => boolean): number[] {
  return sums.map((sum, scope) =>
    state.store.records.reduce(
      (all, record, of) =>
        scopesOf(of).includes(scope)
          ? all + partsOf(of, record).reduce((more, part) => (booked(of, part.kind) ? more : more + part.cost), 0)
          : all,
      sum,
    ),
  );
}

const heldIn = (state: State): number[] =>
  LIMITS.map((_, scope) =>
    state.store.records.reduce(
      (all, record, of) => (record?.state === 'held' && scopesOf(of).includes(scope) ? all + record.amount : all),
      0,
    ),
  );

/** The most that a scope can owe, whatever becomes of what is under way: a refusal needs that much. */
function most(state: State, scope: number): number {
  return state.requests.reduce((all, { stage, taken, lost }, of) => {
    if (!scopesOf(of).includes(scope)) return all;
    const kinds = Object.values(at(state.books.entries, of));
    if (lost) return all + amountOf(of);
    if (stage === 'settled')
      return all + Math.max(costOf(of), at(state.store.records, of)?.state === 'expired' ? 0 : costOf(of));
    if (kinds.length > 0 || stage === 'held' || stage === 'settling') return all + amountOf(of);
    return stage === 'releasing' || taken ? all + amountOf(of) : all;
  }, 0);
}

function charge(store: State['store'], of: number, cost: number): void {
  if (store.loaded) for (const scope of scopesOf(of)) store.spent[scope] = at(store.spent, scope) + cost;
}
function vacate(store: State['store'], of: number): void {
  const amount = at(store.records, of)?.amount ?? 0;
  if (store.loaded) for (const scope of scopesOf(of)) store.held[scope] = at(store.held, scope) - amount;
}
const fresh = (state: Record_['state'], amount = 0, cost = 0): Record_ => ({
  ...{ state, amount, cost, known: false, late: '', corrected: false },
});

/** Each changes the store as the script does, and answers what it answers. */
function holdIn(state: State, of: number): string {
  const { store } = state;
  const record = at(store.records, of);
  if (record?.state === 'held' || record?.state === 'settled') return 'held';
  if (record !== null) return 'late';
  if (!store.loaded) return 'absent';
  for (const scope of scopesOf(of)) if (at(LIMITS, scope) - at(store.spent, scope) < amountOf(of)) return 'exceeded';
  for (const scope of scopesOf(of))
    if (at(LIMITS, scope) - at(store.spent, scope) - at(store.held, scope) < amountOf(of)) return 'busy';
  store.records[of] = fresh('held', amountOf(of));
  for (const scope of scopesOf(of)) store.held[scope] = at(store.held, scope) + amountOf(of);
  return 'held';
}

function settleIn(state: State, of: number, counted: boolean): string {
  const { store } = state;
  const record = at(store.records, of);
  if (record === null) {
    if (!counted) return 'unknown';
    if (!store.loaded) return 'absent';
    store.records[of] = fresh('settled', 0, costOf(of));
    charge(store, of, costOf(of));
    return 'settled';
  }
  if (record.state === 'expired') {
    if (record.late === 'released') return 'released';
    if (record.late === '') {
      Object.assign(record, { late: 'settled', cost: costOf(of) });
      charge(store, of, costOf(of) - record.amount);
    }
    return 'expired';
  }
  if (record.state !== 'held') return record.state;
  vacate(store, of);
  charge(store, of, costOf(of));
  store.records[of] = fresh('settled', 0, costOf(of));
  return 'settled';
}

function releaseIn(state: State, of: number): string {
  const { store } = state;
  const record = at(store.records, of);
  if (record?.state === 'settled') return 'settled';
  if (record?.state === 'expired') {
    if (record.late === 'settled') return 'settled';
    if (record.late === '') {
      Object.assign(record, { late: 'released', cost: 0 });
      charge(store, of, -record.amount);
    }
    return 'expired';
  }
  if (record?.state === 'held') vacate(store, of);
  store.records[of] = fresh('released');
  return 'released';
}

function forgetIn(state: State, names: readonly string[]): void {
  for (const each of names) {
    const [number, kind] = each.split(' ');
    const of = Number(number);
    const record = at(state.store.records, of);
    if (record?.state === 'settled') state.store.records[of] = kind === 'settled' ? null : record;
    else if (record?.state === 'expired' && kind === 'correction') record.corrected = record.late !== '';
    else if (record?.state === 'expired') record.known = true;
  }
}

/** Whoever corrects it books it too: the store may forget it before it tells. */
function tellEnd(unbooked: Entry[], of: number, cost: number, epoch: number): void {
  if (unbooked.some((entry) => entry.of === of && entry.kind === 'expired')) return;
  unbooked.push({ of, kind: 'expired', cost, epoch });
}

const copyStore = ({ records, spent, held, ...store }: State['store']): State['store'] => ({
  ...{ ...store, spent: [...spent], held: [...held] },
  records: records.map((record) => (record === null ? null : { ...record })),
});

/** What is never changed in place is shared. */
const copyOf = ({ store, books, processes, requests, left, ...rest }: State): State => ({
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
const valuesOf = (of: object | null): unknown => (of === null ? 0 : Object.values(of));

/** Everything that may happen next. */
export function next(state: State): Edge[] {
  const edges: Edge[] = [];
  const go = (
    label: string,
    change: (to: State) => readonly StoreStep[] | string | { steps: readonly StoreStep[]; wrong: string },
  ): void => {
    const to = copyOf(state);
    const done = change(to);
    if (typeof done === 'string') edges.push({ name: label, to, steps: [], wrong: done });
    else if ('wrong' in done) edges.push({ name: label, to, steps: done.steps, wrong: done.wrong });
    else edges.push({ name: label, to, steps: done });
  };
  for (const of of state.requests.keys()) ofRequest(state, of, go);
  for (const who of state.processes.keys()) ofProcess(state, who, go);
  ofWorld(state, go);
  return edges;
}

type Go = (
  label: string,
  change: (to: State) => readonly StoreStep[] | { steps: readonly StoreStep[]; wrong: string },
) => void;

function ofRequest(state: State, of: number, go: Go): void {
  const request = at(state.requests, of);
  const who = REQUESTS[of]?.by ?? 0;
  const process = at(state.processes, who);
  const { epoch } = process;
  const isHeard = isHeardBy(state, who);
  const canSpeak = !process.out && !process.dead;
  const { lost } = state.left;
  const leave = (to: State): [] => {
    at(to.processes, who).out = true;
    return [];
  };

  if (request.stage === 'new' && canSpeak) {
    if (!isHeard) go(`${of} is told that the epoch is over`, leave);
    else if (state.store.loaded) {
      go(`${of} asks to hold`, (to) => {
        const answer = holdIn(to, of);
        const one = at(to.requests, of);
        one.stage = answer === 'held' ? 'held' : 'refused';
        one.taken = answer === 'held';
        one.heard = one.taken;
        answered(to, who);
        if (one.taken && to.stale !== null) to.excused = true;
        const steps = [{ call: 'hold', of, epoch, answer } as const];
        const isTrue = scopesOf(of).some(
          (scope) =>
            most(state, scope) + amountOf(of) > at(LIMITS, scope) || isDoubled(state, scope) || state.stale !== null,
        );
        return answer === 'held' || isTrue ? steps : { steps, wrong: `${of} was refused (${answer}) for nothing` };
      });
      if (lost > 0) {
        go(`${of} asks to hold, and never hears`, (to) => {
          const answer = holdIn(to, of);
          Object.assign(at(to.requests, of), { stage: 'releasing', taken: answer === 'held' });
          to.left.lost -= 1;
          if (answer === 'held' && to.stale !== null) to.excused = true;
          return [{ call: 'hold', of, epoch, answer }];
        });
        go(`${of} asks to hold, late`, (to) => {
          Object.assign(at(to.requests, of), { stage: 'releasing', lateHold: epoch, taken: true });
          to.left.lost -= 1;
          return [];
        });
      }
    }
  }
  if (request.stage === 'held' && !process.dead) {
    go(`${of} begins to settle`, (to) => {
      at(to.requests, of).stage = 'settling';
      return [];
    });
    if (of === 1)
      go(`${of} begins to release`, (to) => {
        Object.assign(at(to.requests, of), { stage: 'releasing' });
        return [];
      });
  }
  if (request.stage === 'settling' && canSpeak) {
    if (!isHeard) go(`${of}’s settlement is told that the epoch is over`, leave);
    else {
      const settle = (to: State, isLost: boolean): StoreStep[] => {
        const steps: StoreStep[] = [];
        let answer = settleIn(to, of, false);
        steps.push({ call: 'settle', of, epoch, counted: false, answer });
        if (answer === 'unknown') {
          answer = settleIn(to, of, true);
          steps.push({ call: 'settle', of, epoch, counted: true, answer });
        }
        if (!isLost) answered(to, who);
        if (isLost || answer === 'absent') return steps;
        at(to.requests, of).stage = 'settled';
        const charged = answer === 'expired';
        const kind = charged ? 'correction' : 'settled';
        const ended = at(to.store.records, of)?.amount ?? 0;
        const cost = charged ? costOf(of) - ended : costOf(of);
        const { unbooked } = at(to.processes, who);
        if (charged) tellEnd(unbooked, of, ended, epoch);
        unbooked.push({ of, kind, cost, epoch });
        return steps;
      };
      go(`${of} settles`, (to) => settle(to, false));
      if (lost > 0) {
        go(`${of} settles, and never hears`, (to) => {
          to.left.lost -= 1;
          return settle(to, true);
        });
        go(`${of} settles, late`, (to) => {
          to.left.lost -= 1;
          at(to.requests, of).lateSettle = epoch;
          return [];
        });
      }
    }
  }
  if (request.stage === 'releasing' && canSpeak) {
    if (!isHeard) go(`${of}’s release is told that the epoch is over`, leave);
    else
      go(`${of} releases`, (to) => {
        const answer = releaseIn(to, of);
        answered(to, who);
        at(to.requests, of).stage = 'released';
        const { unbooked } = at(to.processes, who);
        // Somebody may have booked the end of its lease before the store forgot it.
        if (answer === 'released' && at(to.requests, of).moved)
          unbooked.push({ of, kind: 'correction', cost: 0, epoch, isRefund: true });
        if (answer === 'expired') {
          const ended = at(to.store.records, of)?.amount ?? 0;
          tellEnd(unbooked, of, ended, epoch);
          unbooked.push({ of, kind: 'correction', cost: -ended, epoch });
        }
        return [{ call: 'release', of, epoch, answer }];
      });
  }
  if (request.lateHold > 0)
    go(`${of}’s late hold arrives`, (to) => {
      at(to.requests, of).lateHold = 0;
      if (to.store.epoch !== request.lateHold) return [];
      return [{ call: 'hold', of, epoch: request.lateHold, answer: holdIn(to, of) }];
    });
  if (request.lateSettle > 0)
    go(`${of}’s late settlement arrives`, (to) => {
      at(to.requests, of).lateSettle = 0;
      if (to.store.epoch !== request.lateSettle) return [];
      return [{ call: 'settle', of, epoch: request.lateSettle, counted: false, answer: settleIn(to, of, false) }];
    });
  const isNobodys = process.dead;
  if ((state.left.expired > 0 || isNobodys) && at(state.store.records, of)?.state === 'held')
    go(`${of}’s lease ends`, (to) => {
      if (!isNobodys) to.left.expired -= 1;
      const amount = at(to.store.records, of)?.amount ?? 0;
      vacate(to.store, of);
      charge(to.store, of, amount);
      to.store.records[of] = fresh('expired', amount);
      return [{ call: 'expire', of }];
    });
}

/** The store does what it is asked, and does not see that it is older than whoever asks. */
const isHeardBy = ({ store, stale, processes }: State, who: number): boolean =>
  store.epoch === at(processes, who).epoch && stale?.behind[who] !== true;

/** By its own calls, or by what PostgreSQL knows of those of others. */
const isBehind = ({ stale }: State, who: number): boolean =>
  stale !== null && (stale.behind[who] === true || stale.marked);

function answered(to: State, who: number): void {
  if (to.saved !== null) at(to.processes, who).since = true;
}

function ofProcess(state: State, who: number, go: Go): void {
  const process = at(state.processes, who);
  if (process.dead) return;
  const { store, books } = state;
  const isHeard = isHeardBy(state, who);
  const wants = state.requests.some(
    ({ stage }, of) => REQUESTS[of]?.by === who && (stage === 'new' || stage === 'settling'),
  );
  if (!process.out && isHeard) {
    if (!store.loaded && wants && books.lock < 0)
      go(`${who} reads the sums`, (to) => {
        const booked = store.records.flatMap((record, of) =>
          partsOf(of, record).flatMap(({ kind }) => (isBooked(state, of, kind) ? [name(of, kind)] : [])),
        );
        Object.assign(to.books, { lock: who, read: { sums: sumsOf(state), booked } });
        return [];
      });
    // Only ends of leases are told to everybody.
    store.records.forEach((record, of) => {
      if (record?.state !== 'expired' || record.known) return;
      if (process.unbooked.some((entry) => entry.of === of && entry.kind === 'expired')) return;
      go(`${who} is told of the end of ${of}’s lease`, (to) => {
        answered(to, who);
        at(to.processes, who).unbooked.push({ of, kind: 'expired', cost: record.amount, epoch: process.epoch });
        return [];
      });
    });
  }
  // An audit says no count of calls.
  if (!process.out && store.epoch === process.epoch) {
    if (process.doubts && store.loaded && books.lock < 0)
      go(`${who} audits`, (to) => {
        const spent = exact(to, sumsOf(to), (of, kind) => isBooked(to, of, kind));
        const by = spent.map((wanted, scope) => wanted - at(to.store.spent, scope));
        to.store.spent = spent;
        at(to.processes, who).doubts = false;
        return [{ call: 'adjust', epoch: process.epoch, by }];
      });
    for (const [of, { moved, heard, stage }] of state.requests.entries()) {
      const ended = at(books.entries, of).expired;
      const isLive = moved && heard && /^(held|settling|releasing)$/.test(stage) && REQUESTS[of]?.by === who;
      if (!isLive || ended === undefined || at(store.records, of)?.state !== 'held' || books.lock >= 0) continue;
      go(`${who} tells that ${of}’s lease had ended`, (to) => {
        const spent = exact(to, sumsOf(to), (each, kind) => isBooked(to, each, kind));
        const by = spent.map((wanted, scope) => wanted - at(to.store.spent, scope));
        if (to.store.loaded) to.store.spent = spent;
        vacate(to.store, of);
        to.store.records[of] = { ...fresh('expired', ended), known: true };
        const { epoch } = process;
        const adjust = { call: 'adjust', epoch, by } as const;
        const register = { call: 'register', epoch, of: [of], amounts: [amountOf(of)], charged: [ended] } as const;
        return to.store.loaded ? [adjust, register] : [register];
      });
    }
    if (process.doubts && !store.loaded)
      go(`${who} has nothing to audit`, (to) => {
        at(to.processes, who).doubts = false;
        return [];
      });
  }
  if (books.lock === who)
    go(`${who} loads`, (to) => {
      const { sums, booked } = books.read ?? { sums: [], booked: [] };
      Object.assign(to.books, { lock: -1, read: null });
      if (!isHeard || process.out) {
        at(to.processes, who).out = true;
        return [];
      }
      answered(to, who);
      if (to.store.loaded) return [];
      to.store.spent = exact(to, sums, (of, kind) => booked.includes(name(of, kind)));
      to.store.held = heldIn(to);
      to.store.loaded = true;
      return [{ call: 'load', epoch: process.epoch, sums, booked }];
    });
  if (process.unbooked.length > 0 && books.lock < 0)
    go(`${who} books`, (to) => {
      const one = at(to.processes, who);
      for (const entry of one.unbooked) {
        const kinds = at(to.books.entries, entry.of);
        const isMoved = at(to.requests, entry.of).moved;
        const ended = kinds.expired ?? 0;
        if (entry.isRefund === true) {
          if (ended === 0) continue;
          kinds.correction ??= -ended;
          one.unforgotten.push(name(entry.of, entry.kind));
          one.doubts = true;
          continue;
        }
        // A hold that went through a rebuild may have ended with its lease, and somebody booked that meanwhile.
        const wasEnded = entry.kind === 'settled' && isMoved && ended > 0;
        const kind = wasEnded ? 'correction' : entry.kind;
        if (kind !== 'expired' || kinds.settled === undefined)
          kinds[kind] ??= wasEnded ? entry.cost - (kinds.expired ?? 0) : entry.cost;
        one.unforgotten.push(name(entry.of, entry.kind));
        // PostgreSQL says in the same transaction whether the epoch it was counted under is over.
        if (entry.epoch !== to.books.epoch || wasEnded) one.doubts = true;
      }
      one.unbooked = [];
      one.unforgotten = [...new Set(one.unforgotten)].sort();
      one.marked ||= one.since;
      if (to.stale?.behind[who] === true) to.stale = { ...to.stale, marked: true };
      return [];
    });
  drains(state, who, go);
  if (process.unforgotten.length > 0)
    go(`${who} lets the store forget`, (to) => {
      const { unforgotten } = process;
      at(to.processes, who).unforgotten = [];
      forgetIn(to, unforgotten);
      return [{ call: 'forget', names: unforgotten }];
    });
  if (!process.out && (books.epoch !== process.epoch || !isHeard || isBehind(state, who)))
    go(`${who} notices`, (to) => {
      at(to.processes, who).out = true;
      return [];
    });
  if (process.out) rejoin(state, who, go);
}

/** What a dead process left in the store; and, as a sweep does, what is in PostgreSQL already and came back with a snapshot. */
function drains(state: State, who: number, go: Go): void {
  const { store, books, processes } = state;
  const process = at(processes, who);
  const found = store.records.flatMap((record, of) => {
    const isDead = at(processes, REQUESTS[of]?.by ?? 0).dead;
    return partsOf(of, record).filter(({ kind }) => isDead || (state.returned && isBooked(state, of, kind)));
  });
  const isThere = !process.out && isHeardBy(state, who);
  if (isThere && process.drained.length === 0 && found.length > 0)
    go(`${who} reads what is left in the store`, (to) => {
      const one = at(to.processes, who);
      one.drained = found.map(({ of, kind, cost }) => ({ of, kind, cost, epoch: store.epoch }));
      if (to.saved !== null) one.seen = processes.map(({ since }) => since);
      return [];
    });
  if (process.drained.length > 0 && books.lock < 0)
    go(`${who} books what was left`, (to) => {
      const one = at(to.processes, who);
      for (const { of, kind, cost, epoch } of one.drained) {
        const kinds = at(to.books.entries, of);
        // What ended twice, under two epochs, is charged once.
        if (kind === 'settled' && kinds.expired !== undefined) kinds.correction ??= cost - kinds.expired;
        else if (kind !== 'expired' || kinds.settled === undefined) kinds[kind] ??= cost;
        if (epoch !== to.books.epoch) one.doubts = true;
        one.unforgotten.push(name(of, kind));
      }
      one.drained = [];
      if (to.saved !== null)
        for (const [index, other] of to.processes.entries()) other.marked ||= one.seen[index] === true;
      else if (to.returned && one.seen.includes(true))
        to.stale = { behind: to.stale?.behind ?? [false, false], marked: true };
      one.seen = [];
      one.unforgotten = [...new Set(one.unforgotten)].sort();
      return [];
    });
}

function rejoin(state: State, who: number, go: Go): void {
  const process = at(state.processes, who);
  const { store, books } = state;
  if (books.open && (store.epoch !== books.epoch || isBehind(state, who)))
    go(`${who} raises the epoch`, (to) => {
      Object.assign(to.books, { epoch: books.epoch + 1, open: false });
      return [];
    });
  if (!books.open && store.epoch < books.epoch)
    go(`${who} lets the store begin`, (to) => {
      to.store = emptyStore(books.epoch);
      to.stale = null;
      for (const one of to.processes) one.seen = [];
      loseOfDead(to);
      return [{ call: 'begin', epoch: books.epoch }];
    });
  const isThere = store.epoch === books.epoch;
  if (isThere && process.joined !== books.epoch && process.unbooked.length === 0 && books.lock !== who)
    go(`${who} enters`, (to) => {
      const of = state.requests.flatMap(({ stage, heard }, index) => {
        // What is released holds nothing any more, unless its lease ended before.
        const isLive =
          heard &&
          (/^(held|settling)$/.test(stage) ||
            (stage === 'releasing' && at(state.books.entries, index).expired !== undefined));
        return REQUESTS[index]?.by === who && isLive ? [index] : [];
      });
      const amounts = of.map((index) =>
        at(state.requests, index).stage === 'settling' ? costOf(index) : amountOf(index),
      );
      const charged = of.map((index) => at(state.books.entries, index).expired);
      of.forEach((index, place) => {
        if (at(to.store.records, index) !== null) return;
        const ended = charged[place] !== undefined;
        const amount = amounts[place] ?? 0;
        to.store.records[index] = ended ? { ...fresh('expired', charged[place]), known: true } : fresh('held', amount);
        if (!ended && to.store.loaded)
          for (const scope of scopesOf(index)) to.store.held[scope] = at(to.store.held, scope) + amount;
      });
      to.requests.forEach((one, index) => {
        if (REQUESTS[index]?.by === who && one.heard) one.moved = true;
      });
      at(to.processes, who).joined = books.epoch;
      answered(to, who);
      return [{ call: 'register', epoch: books.epoch, of, amounts, charged }];
    });
  const missing = state.processes.filter(({ joined, dead }) => !dead && joined !== books.epoch).length;
  if (isThere && !books.open && process.joined === books.epoch && (missing === 0 || state.left.slept > 0))
    go(`${who} opens`, (to) => {
      to.books.open = true;
      for (const one of to.processes) if (one.joined !== books.epoch) one.slept = true;
      if (missing > 0) to.left.slept -= 1;
      return [];
    });
  if (isThere && books.open && process.joined === books.epoch && !isBehind(state, who))
    go(`${who} goes on`, (to) => {
      Object.assign(at(to.processes, who), { epoch: books.epoch, out: false });
      answered(to, who);
      return [];
    });
}

function ofWorld(state: State, go: Go): void {
  if (state.left.wiped > 0)
    go('the store is wiped', (to) => {
      to.left.wiped -= 1;
      to.store = emptyStore(0);
      to.stale = null;
      loseOfDead(to);
      return [{ call: 'wipe' }];
    });
  if (state.left.restored > 0 && state.saved === null)
    go('the store is saved', (to) => {
      to.saved = copyStore(to.store);
      for (const one of to.processes) Object.assign(one, { since: false, marked: false, seen: [] });
      return [{ call: 'save' }];
    });
  if (state.left.restored > 0 && state.saved !== null)
    go('the store comes back as it was saved', (to) => {
      to.left.restored -= 1;
      to.store = copyStore(to.saved ?? to.store);
      to.saved = null;
      to.returned = true;
      const behind = to.processes.map(({ since, dead }) => since && !dead);
      const marked = to.processes.some((one) => one.marked);
      to.stale = behind.includes(true) || marked ? { behind, marked } : null;
      // Connections broke: what was on its way is gone.
      for (const one of to.requests) Object.assign(one, { lateHold: 0, lateSettle: 0 });
      for (const one of to.processes) Object.assign(one, { since: false, marked: false });
      loseOfDead(to);
      return [{ call: 'restore' }];
    });
  for (const [who, { dead }] of state.processes.entries())
    if (state.left.died > 0 && !dead)
      go(`${who} is gone for good, and its disk`, (to) => {
        to.left.died -= 1;
        die(to, who);
        return [];
      });
}

function die(to: State, who: number): void {
  Object.assign(at(to.processes, who), {
    ...{ dead: true, out: false, epoch: 0, joined: 0, unbooked: [], unforgotten: [], doubts: false, drained: [] },
  });
  if (to.books.lock === who) Object.assign(to.books, { lock: -1, read: null });
  for (const [of, one] of to.requests.entries()) {
    if (REQUESTS[of]?.by !== who) continue;
    if (one.stage === 'new') one.stage = 'refused';
    if (/^(held|settling|releasing)$/.test(one.stage)) one.stage = `gone ${one.stage}`;
    const record = at(to.store.records, of);
    const isKept = record?.state === 'settled' || (record?.state === 'expired' && record.late !== '');
    const isTold = one.stage === 'settled' || (one.stage === 'released' && one.moved);
    if (isTold && !isKept && !isSettledInBooks(to, of)) one.lost = true;
  }
  loseOfDead(to, to.stale !== null);
}

const isSettledInBooks = ({ books }: State, of: number): boolean => {
  const { settled, correction } = at(books.entries, of);
  return settled !== undefined || correction !== undefined;
};

/** What is neither in PostgreSQL nor in the store any more, nor on a disk. */
function loseOfDead(to: State, all = true): void {
  for (const [of, one] of to.requests.entries()) {
    const isDead = at(to.processes, REQUESTS[of]?.by ?? 0).dead;
    if (isDead && (all || at(to.store.records, of) === null) && !isSettledInBooks(to, of)) one.lost = true;
  }
}

/** What is wrong with this state, if anything. */
export function judge(state: State): string | undefined {
  const { store, books, processes } = state;
  const isFree = state.excused || state.stale !== null || processes.some(({ slept }) => slept);
  if (store.loaded && !isFree)
    for (const [scope, limit] of LIMITS.entries())
      if (at(store.spent, scope) + at(store.held, scope) > limit && !isDoubled(state, scope))
        return `scope ${scope} is above its limit`;
  for (const [of, kinds] of books.entries.entries()) {
    if (kinds.settled !== undefined && kinds.expired !== undefined) return `${of} was charged twice`;
    if (kinds.correction !== undefined && kinds.expired === undefined) {
      const told = processes.some(({ unbooked }) =>
        unbooked.some((entry) => entry.of === of && entry.kind === 'expired'),
      );
      const kept = at(store.records, of)?.state === 'expired';
      if (!told && !kept) return `${of} was corrected, and never charged`;
    }
  }
  return isQuiet(state) ? judgeEnd(state) : undefined;
}

/**
 * Somebody heard of the end of a lease, the store was wiped, and the hold was registered before that end was booked: until
 * the store is told, or its settlement is a correction and the counter was audited, it counts twice. Nobody spends more for it.
 */
function isDoubled({ store, books, processes, requests }: State, scope: number): boolean {
  return requests.some(({ moved }, of) => {
    if (!moved || !scopesOf(of).includes(scope)) return false;
    const told = processes.some(({ unbooked }) =>
      unbooked.some((entry) => entry.of === of && entry.kind === 'expired'),
    );
    if (!told && at(books.entries, of).expired === undefined) return false;
    const isKnown = at(store.records, of)?.state === 'expired';
    return !isKnown || processes.some(({ doubts, unbooked }) => doubts || unbooked.length > 0);
  });
}

/**
 * The same, and its process is gone for good: nobody settles it, its lease ends again under the new epoch, and the counter shows
 * both until the next sweep audits it. It is charged once.
 */
const isTwiceOfDead = ({ books, processes, requests }: State, scope: number): boolean =>
  requests.some(({ moved }, of) => {
    const isDead = at(processes, REQUESTS[of]?.by ?? 0).dead;
    return moved && isDead && scopesOf(of).includes(scope) && at(books.entries, of).expired !== undefined;
  });

/** Nothing is on its way any more. */
export function isQuiet(state: State): boolean {
  const { store, books, processes, requests } = state;
  return (
    requests.every(
      ({ stage, lateHold, lateSettle }) =>
        /^(settled|released|refused|gone .*)$/.test(stage) && lateHold + lateSettle === 0,
    ) &&
    processes.every(
      (one, who) =>
        one.dead ||
        (!one.out &&
          one.epoch === store.epoch &&
          one.unbooked.length + one.unforgotten.length + one.drained.length === 0 &&
          !one.doubts &&
          !isBehind(state, who)),
    ) &&
    store.epoch === books.epoch &&
    books.lock < 0 &&
    store.records.every(
      (record, of) =>
        record === null ||
        record.state === 'released' ||
        (partsOf(of, record).length === 0 && !(record.state === 'held' && at(processes, REQUESTS[of]?.by ?? 0).dead)),
    )
  );
}

function judgeEnd(state: State): string | undefined {
  const { store, books, requests } = state;
  for (const [of, { stage, lost }] of requests.entries()) {
    const charged = Object.values(at(books.entries, of)).reduce((all, cost) => all + cost, 0);
    const wanted: Record<string, number[]> = {
      settled: [costOf(of)],
      'gone held': [amountOf(of)],
      'gone settling': [costOf(of), amountOf(of)],
      'gone releasing': [0, amountOf(of)],
    };
    const isRight = lost ? charged >= 0 && charged <= amountOf(of) : (wanted[stage] ?? [0]).includes(charged);
    if (!isRight) return `${of} is ${stage}, and was charged ${charged}`;
  }
  if (!store.loaded) return undefined;
  const sums = sumsOf(state);
  for (const scope of LIMITS.keys()) {
    if (at(store.held, scope) !== heldIn(state)[scope]) return `scope ${scope} holds what nobody has`;
    if (store.records.some((record) => record?.state === 'held')) return 'something is held for ever';
    if (at(store.spent, scope) !== sums[scope] && !isTwiceOfDead(state, scope))
      return `scope ${scope} shows ${store.spent[scope]}, its entries ${sums[scope]}`;
  }
  return undefined;
}
