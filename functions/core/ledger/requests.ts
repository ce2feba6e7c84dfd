// The requests of an account: each is in one state, from its reservation to its ledger row (LEDGER 3, 8).

import type { Reservation } from '../ports/ledger.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { ScopePolicy } from '../ports/policy.ts';
import type { RateEstimates, WindowedRate } from '../ports/rates.ts';
import type { CounterState } from './counters.ts';

/** Each state, and those that may follow. README.md has the same table, and a test compares them. */
export const NEXT_STATES = {
  reserved: ['unreported', 'released'],
  released: [],
  unreported: ['inCall', 'booked'],
  inCall: ['openBatch', 'unreported'],
  openBatch: ['sealedBatch', 'unreported'],
  sealedBatch: ['booked', 'unreported'],
  booked: [],
} as const satisfies Readonly<Record<string, ReadonlyArray<string>>>;

export type RequestState = keyof typeof NEXT_STATES;

/**
 * States of a request that has ended and that PostgreSQL is not known to have; the states with the oldest requests
 * first.
 */
const UNBOOKED_STATES = ['sealedBatch', 'openBatch', 'inCall', 'unreported'] as const;

export type UnbookedState = (typeof UNBOOKED_STATES)[number];

export interface RequestRecord {
  state: RequestState;
  readonly counters: ReadonlyArray<CounterState>;
}

/** A request that has ended: its ledger row is on its way to the counter store and to PostgreSQL. */
export interface EndedRequest extends RequestRecord {
  readonly row: LedgerRow;
  /** The part of the cost that the reported risk must cover before the reply may end (counters.ts). */
  readonly costToCover: Nano;
  readonly endedAt: Millis;
}

/** A request in flight; its caller has the same object. */
export interface LiveReservation extends Reservation, RequestRecord {
  readonly namespace: string;
  /** The amount that is reserved; `grow` increases it. */
  amount: Nano;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  readonly model: string;
  readonly identifier: string;
  readonly reservedAt: Millis;
  /** Returns the cost of the reply so far; undefined: the reply is not a stream. */
  costSoFar: (() => Nano) | undefined;
  /**
   * Called if other requests may have reserved the money of this request, because another process has closed the
   * account.
   */
  onAccountClosed: (() => void) | undefined;
  /** The last cost of the stream in the journal; undefined: none, so that a restart charges `amount`. */
  writtenCost: Nano | undefined;
  /** The charge if this process dies now: `amount`; for a stream with a reported cost, its cost so far. */
  atRisk: Nano;
  isStream: boolean;
  /** The rates in which the request counts; undefined without any. */
  readonly rateUse: RateUse | undefined;
  /** Set when the reservation is settled or released: resolves when its settlement or release is durable. */
  ending: Promise<void> | undefined;
  /** The index among the reserved requests. */
  index: number;
}

export interface RateUse {
  readonly limits: ReadonlyArray<LimitUse>;
  modelEntryUse: LimitUse | undefined;
  readonly estimates: RateEstimates;
}

/** The part of one rate limit that a request uses. */
export interface LimitUse {
  readonly id: string;
  /** The use of each kind that the store has counted. Undefined for a kind that is not limited. */
  readonly counted: Readonly<Record<WindowedRate, number | undefined>>;
  readonly parallel: number;
  /** The minute and the epoch of the use: a later epoch has no record of it. */
  readonly minute: number;
  readonly epoch: number;
}

/** The additions to sums after which a batch, which is one transaction, gets no further row. */
export const MAX_ADDITIONS = 20_000;

const additionsOf = ({ scopeWindows }: Pick<LedgerRow, 'scopeWindows'>): number => Math.max(1, scopeWindows.length);

/** The rows in portions of one transaction each. */
export function toTransactions(rows: ReadonlyArray<LedgerRow>): ReadonlyArray<ReadonlyArray<LedgerRow>> {
  let [portion, additions]: [LedgerRow[], number] = [[], 0];
  const portions = [portion];
  for (const row of rows) {
    if (additions >= MAX_ADDITIONS) {
      [portion, additions] = [[], 0];
      portions.push(portion);
    }
    portion.push(row);
    additions += additionsOf(row);
  }
  return portions;
}

export type Requests = ReturnType<typeof createRequests>;

/** Lists of the requests by state. A request is in the list of its state and in no other. */
export function createRequests() {
  /**
   * Reservations, in no order. Not a `Set`: an old table of a `Set` keeps its successors reachable, so that whole
   * requests outlive young garbage collections.
   */
  const reserved: LiveReservation[] = [];
  const ended: Record<UnbookedState, EndedRequest[]> = {
    unreported: [],
    inCall: [],
    openBatch: [],
    sealedBatch: [],
  };
  let openAdditions = 0;
  return {
    reserved: reserved as ReadonlyArray<LiveReservation>,
    in: (state: UnbookedState): ReadonlyArray<EndedRequest> => ended[state],
    /** Requests that PostgreSQL is not known to have, the oldest first. */
    unbooked: (): ReadonlyArray<EndedRequest> => UNBOOKED_STATES.flatMap((state) => ended[state]),
    // Each request asks for these two.
    unbookedCount(): number {
      let count = 0;
      for (const state of UNBOOKED_STATES) count += ended[state].length;
      return count;
    },
    oldest(): EndedRequest | undefined {
      for (const state of UNBOOKED_STATES) if (ended[state].length > 0) return ended[state][0];
      return undefined;
    },
    /** Whether all requests that have ended are reported to the store. */
    isReported: (): boolean => ended.unreported.length + ended.inCall.length === 0,
    /** The number of additions that the open batch may still get. */
    room: (): number => MAX_ADDITIONS - openAdditions,
    reserve(live: LiveReservation): void {
      live.index = reserved.push(live) - 1;
    },
    /** Ends a reservation; false: it has ended before. */
    end(live: LiveReservation, to: 'unreported' | 'released'): boolean {
      if (reserved[live.index] !== live) return false;
      changeState(live, to);
      const last = reserved.pop();
      if (last !== undefined && last !== live) {
        reserved[live.index] = last;
        last.index = live.index;
      }
      return true;
    },
    addUnreported(request: EndedRequest): void {
      ended.unreported.push(request);
    },
    /** Moves the requests that `isMoved` names; the others keep their state and order. */
    move(from: UnbookedState, to: UnbookedState | 'booked', isMoved = (_: EndedRequest): boolean => true): void {
      const staying: EndedRequest[] = [];
      const moving: EndedRequest[] = [];
      for (const request of ended[from]) (isMoved(request) ? moving : staying).push(request);
      ended[from] = staying;
      for (const request of moving) {
        if (from === 'openBatch') openAdditions -= additionsOf(request.row);
        if (to === 'openBatch') openAdditions += additionsOf(request.row);
        changeState(request, to);
      }
      // Requests that become unreported again are older than the other unreported requests.
      if (to === 'unreported') ended[to] = [...moving, ...ended[to]];
      else if (to !== 'booked') for (const request of moving) ended[to].push(request);
    },
    /** Removes all unbooked requests; returns them, the oldest first. */
    takeUnbooked(): ReadonlyArray<EndedRequest> {
      const all = UNBOOKED_STATES.flatMap((state) => ended[state]);
      for (const state of UNBOOKED_STATES) ended[state] = [];
      openAdditions = 0;
      return all;
    },
  };
}

function changeState(request: RequestRecord, to: RequestState): void {
  const next: ReadonlyArray<RequestState> = NEXT_STATES[request.state];
  if (!next.includes(to))
    throw new Error(`a request in the state ${request.state} cannot get the state ${to} (our error)`);
  request.state = to;
}

/** All limits in which a request counts. */
export function limitsOf(use: RateUse | undefined): ReadonlyArray<LimitUse> {
  if (use === undefined) return [];
  return use.modelEntryUse === undefined ? use.limits : [...use.limits, use.modelEntryUse];
}

/** The ledger's own object behind a reservation, whose caller has only the type of the port. */
export const liveOf = (reservation: Reservation): LiveReservation | undefined =>
  'counters' in reservation ? (reservation as LiveReservation) : undefined;
