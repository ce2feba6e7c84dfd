// The requests of an account: each is in one state, from its reservation to its ledger row (LEDGER 3, 8).

import type { Reservation } from '../ports/ledger.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import type { ScopePolicy } from '../ports/policy.ts';
import type { CounterState } from './counters.ts';

/** Each state, and those that may follow. README.md has the same table, and a test compares them. */
export const NEXT_STATES = {
  reserved: ['unreported', 'released'],
  released: [],
  unreported: ['inFlight', 'booked'],
  inFlight: ['openBatch', 'unreported'],
  openBatch: ['sealedBatch', 'unreported'],
  sealedBatch: ['booked', 'unreported'],
  booked: [],
} as const satisfies Readonly<Record<string, ReadonlyArray<string>>>;

export type RequestState = keyof typeof NEXT_STATES;

/** States of a request that has ended and that PostgreSQL is not known to have, the oldest requests first. */
export const UNBOOKED_STATES = ['sealedBatch', 'openBatch', 'inFlight', 'unreported'] as const;

export type UnbookedState = (typeof UNBOOKED_STATES)[number];

export interface RequestRecord {
  state: RequestState;
  readonly counters: ReadonlyArray<CounterState>;
}

/** A request that has ended: its ledger row is on its way to the counter store and to PostgreSQL. */
export interface EndedRequest extends RequestRecord {
  readonly row: LedgerRow;
  /** The charge that the store must be able to make for the request while it has not been told of it. */
  readonly guaranteed: Nano;
  readonly endedAt: Millis;
}

/** A request in flight; its caller has the same object. */
export interface LiveReservation extends Reservation, RequestRecord {
  /** Grows with `grow`. */
  amount: Nano;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  readonly model: string;
  readonly identifier: string;
  readonly reservedAt: Millis;
  /** The cost of the reply so far, of a stream. */
  costSoFar: (() => Nano) | undefined;
  /** Called when others may have reserved its money: another process has closed the account. */
  onAccountClosed: (() => void) | undefined;
  /** The last cost so far in the journal; undefined: none, so that a restart charges `amount`. */
  writtenCost: Nano | undefined;
  /** The charge if this process dies now: `amount`; of a stream that was reported, its cost so far. */
  atRisk: Nano;
  isStream: boolean;
  /** The rates in which the request counts; undefined without any. */
  readonly rateUse: RateUse | undefined;
  /** Set when the reservation is settled or released: resolves when that is durable. */
  ending: Promise<void> | undefined;
  /** Its index among the reserved requests. */
  index: number;
}

export interface RateUse {
  readonly limits: ReadonlyArray<LimitUse>;
  entry: LimitUse | undefined;
  /** Tokens that were asked for. */
  readonly tokens: number;
}

/** The part of one limit that a request has taken. Absent members are not limited, and so not counted. */
export interface LimitUse {
  readonly id: string;
  readonly requests: number | undefined;
  /** At most the limit. */
  readonly tokens: number | undefined;
  readonly parallel: number;
  /** The minute and the epoch in which it was taken: a later epoch has no record of it. */
  readonly minute: number;
  readonly epoch: number;
}

export type Requests = ReturnType<typeof createRequests>;

/** Lists of the requests by state. A request is in the list of its state and in no other. */
export function createRequests() {
  /**
   * In no order. Not a `Set`: a table that has grown old keeps what its successors refer to, so that whole requests
   * outlive young garbage collections.
   */
  const reserved: LiveReservation[] = [];
  const ended: Record<UnbookedState, EndedRequest[]> = {
    unreported: [],
    inFlight: [],
    openBatch: [],
    sealedBatch: [],
  };
  return {
    reserved: reserved as ReadonlyArray<LiveReservation>,
    in: (state: UnbookedState): ReadonlyArray<EndedRequest> => ended[state],
    /** Requests that PostgreSQL is not known to have, the oldest first. */
    unbooked: (): ReadonlyArray<EndedRequest> => UNBOOKED_STATES.flatMap((state) => ended[state]),
    unbookedCount: (): number => UNBOOKED_STATES.reduce((sum, state) => sum + ended[state].length, 0),
    oldest: (): EndedRequest | undefined => UNBOOKED_STATES.map((state) => ended[state][0]).find(Boolean),
    /** Nothing waits to be reported to the store. */
    isReported: (): boolean => ended.unreported.length + ended.inFlight.length === 0,
    reserve(live: LiveReservation): void {
      live.index = reserved.push(live) - 1;
    },
    /** False: the reservation has ended before. */
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
    report(request: EndedRequest): void {
      ended.unreported.push(request);
    },
    /** Moves the requests that `isMoved` names; the others keep their state and order. */
    move(from: UnbookedState, to: UnbookedState | 'booked', isMoved = (_: EndedRequest): boolean => true): void {
      const kept: EndedRequest[] = [];
      const moved: EndedRequest[] = [];
      for (const request of ended[from]) (isMoved(request) ? moved : kept).push(request);
      ended[from] = kept;
      for (const request of moved) changeState(request, to);
      // Requests that go back are older than those that wait there.
      if (to === 'unreported') ended[to] = [...moved, ...ended[to]];
      else if (to !== 'booked') ended[to].push(...moved);
    },
    /** Takes out all that is unbooked, the oldest first. */
    takeUnbooked(): ReadonlyArray<EndedRequest> {
      const all = UNBOOKED_STATES.flatMap((state) => ended[state]);
      for (const state of UNBOOKED_STATES) ended[state] = [];
      return all;
    },
  };
}

function changeState(request: RequestRecord, to: RequestState): void {
  const next: ReadonlyArray<RequestState> = NEXT_STATES[request.state];
  if (!next.includes(to)) throw new Error(`a request that is ${request.state} cannot become ${to} (our error)`);
  request.state = to;
}

/** All limits in which a request counts. */
export function limitsOf(use: RateUse | undefined): ReadonlyArray<LimitUse> {
  if (use === undefined) return [];
  return use.entry === undefined ? use.limits : [...use.limits, use.entry];
}

/** The ledger's own object behind a reservation, whose caller has only the type of the port. */
export const liveOf = (reservation: Reservation): LiveReservation | undefined =>
  'counters' in reservation ? (reservation as LiveReservation) : undefined;
