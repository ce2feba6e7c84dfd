// The execution of a schedule: its requests, its faults, and their observed outcomes for the verification at the end.
import type { Reservation } from '#core/ports/ledger.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';
import type { Gateway, SharedParts } from './gateway.ts';

export interface PlannedRequest {
  /** The process that gets the request; another one if it is dead. */
  readonly by: number;
  /** Milliseconds from the start of the gateways to the request; absent: 0. */
  readonly after?: Millis;
  readonly scopes: ReadonlyArray<number>;
  readonly amount: bigint;
  /** The smallest useful amount; absent: all of it. */
  readonly minAmount?: bigint;
  readonly cost: bigint;
  /** `both`: settled, then released as well. `never`: left in flight until its process dies. */
  readonly end: 'settle' | 'release' | 'both' | 'never';
  /** The streamed cost, if progress reports it. */
  readonly streamedCost?: bigint;
  /**
   * The charge of a first attempt that broke: the reservation and the cost of the request grow by it, unless
   * the growth is refused.
   */
  readonly grow?: bigint;
}

/**
 * `lose`: a call or an answer is lost. `die`: kill -9, the disk survives. `vanish`: kill -9, and the disk is lost too.
 * `stop`: a clean stop; an empty journal is thrown away. `freeze` and `sleep`: a process is paused, for longer than a
 * rebuild waits and than a lease. `hang`: the store or PostgreSQL does not answer, and runs its calls late. `clock`:
 * the clock of a process or of the store is set. `lower`: the first limit falls.
 * `audit`: a process closes ended accounts and audits all counters. `full`: a disk refuses writes, and soon its process
 * is killed. `error`: our own error stops the application of an answer half way.
 */
export type Fault =
  | 'lose'
  | 'wipe'
  | 'restore'
  | 'die'
  | 'vanish'
  | 'stop'
  | 'freeze'
  | 'sleep'
  | 'hang'
  | 'clock'
  | 'lower'
  | 'audit'
  | 'full'
  | 'error';

export interface Scenario {
  readonly limits: ReadonlyArray<bigint>;
  /**
   * The last scope joins the previous scope: later requests that are charged to the previous scope are charged to it too,
   * and it counts what that one has spent before. Absent: it is like the others.
   */
  readonly joinsAfter?: Millis | undefined;
  readonly plannedRequests: ReadonlyArray<PlannedRequest>;
  readonly gateways: number;
  /** When the window of the first scope ends, after the gateways have started; absent: not in this schedule. */
  readonly edge?: Millis | undefined;
  /** The number of times each fault may happen. */
  readonly faults: Partial<Record<Fault, number>>;
}

export interface Request extends PlannedRequest {
  readonly name: string;
  scopes: ReadonlyArray<number>;
  state: 'new' | 'asked' | 'reserved' | 'growing' | 'refused' | 'unavailable' | 'ending' | 'settled' | 'released';
  gateway: Gateway | undefined;
  reservation: Reservation | undefined;
  /** The size of the reservation as its client knows it, and the growth in it; undefined: no growth was requested yet. */
  size: bigint;
  grown: bigint | undefined;
  /** The limits when the reservation was requested, by scope; another process may know of a later edit. */
  limits: ReadonlyMap<string, bigint>;
  /** When its settlement began. */
  settledAt: Millis;
  /** Its reply ended although the store was silent: the charge may be lost with process and disk. */
  isUnguaranteed: boolean;
}

export interface Execution {
  readonly scenario: Scenario;
  readonly shared: SharedParts;
  /** The current policies. */
  scopes: ReadonlyArray<ScopePolicy>;
  readonly requests: ReadonlyArray<Request>;
  /** What PostgreSQL had of the scope that the last one joins, when the first request was charged to both. */
  spentBeforeJoin: bigint | undefined;
  /** All processes, dead ones included. */
  readonly gateways: Gateway[];
  readonly faultCounts: Map<Fault, number>;
  /** Whether an old snapshot is in use and not detected. */
  isStale: boolean;
  /**
   * Requests that may exceed a limit: of processes that were away when the store lost its data or their lease ended,
   * and those asked of an old snapshot.
   */
  readonly excused: Set<Request>;
  readonly vanished: Set<Gateway>;
  /** When the gateways had started. */
  startedAt: Millis;
  /** Violations that showed before the end. */
  readonly wrong: string[];
  /** The time of the last step of a client. */
  lastStepAt: Millis;
  /** Ends every remaining reservation. */
  isLast: boolean;
}

/** A process and its successors on the same disk have the same root. */
export const rootOf = ({ name }: Gateway): string => name.replaceAll("'", '');

/** The size of its reservation: less than requested if spend left less, more if it has grown. */
export const sizeOf = ({ size }: Request): bigint => size;
/** A client that was clamped gets no more than that. */
export const costOf = ({ size, grown = 0n, amount, cost }: Request): bigint => {
  const first = size - grown;
  return grown + (first < amount && cost > first ? first : cost);
};
/** The streamed cost; undefined: no progress reports it. */
export const streamedCostOf = ({ streamedCost, grown = 0n }: Request): bigint | undefined =>
  streamedCost === undefined ? undefined : streamedCost + grown;
/** Whether a client has the reservation. */
export const hasReservation = ({ state }: Request): boolean => state === 'reserved' || state === 'growing';

/** Whether its reservation is on the disk of its process. */
export const isWritten = ({ gateway, reservation }: Request): boolean =>
  gateway?.folder.records.some((record) => record.type === 'reserve' && record.id === reservation?.id) === true;

/** Requests of this disk that may have a reservation or a charge are excused: their processes were away. */
export function excuse(execution: Execution, root: string): void {
  const rows = execution.shared.database.ledgerRows();
  for (const request of execution.requests) {
    const { gateway, state, name } = request;
    if (gateway === undefined || rootOf(gateway) !== root || /^(new|refused|unavailable|released)$/.test(state))
      continue;
    if (!rows.some(({ model }) => model === name)) execution.excused.add(request);
  }
}
