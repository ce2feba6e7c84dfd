// The minimum that a counter owes at an instant. The law of admission: it never exceeds a limit (LEDGER 1).
import { counterKey, type ScopeWindow } from '#core/ports/policy.ts';
import {
  costOf,
  type Execution,
  hasReservation,
  isWritten,
  type Request,
  sizeOf,
  streamedCostOf,
} from './execution.ts';

/**
 * A request is admitted: each of its counters must have room for everything that is reserved and spent, unless an old
 * snapshot was asked. `since`: all that were admitted between the request and its reply. These, and the process of the
 * request itself, may still have known a higher limit.
 */
export function verifyAdmission(
  execution: Execution,
  request: Request,
  since: ReadonlyArray<Pick<Request, 'limits'>>,
): void {
  if (execution.excused.has(request)) return;
  for (const charge of request.reservation?.scopeWindows ?? []) {
    const known = [request.gateway, ...since].map((one) => one?.limits.get(charge.scopeId) ?? 0n);
    const limit = known.reduce((high, one) => (one > high ? one : high)) + allowanceOf(execution, charge);
    const owed = execution.requests.reduce(
      (all, each) => (isIn(each, charge) ? all + owedOf(execution, each) : all),
      execution.shared.database.countedSpend.get(counterKey(charge)) ?? 0n,
    );
    if (owed > limit && sizeOf(request) > 0n)
      execution.wrong.push(`${request.name} was admitted in ${charge.scopeId}, where ${owed} are owed of ${limit}`);
  }
}

/** The excess that is allowed in a counter. */
export const allowanceOf = ({ requests, excused }: Execution, of: ScopeWindow): bigint =>
  requests.reduce((all, request) => {
    const overrun = costOf(request) - sizeOf(request);
    if (!isIn(request, of)) return all;
    return all + (excused.has(request) ? sizeOf(request) : 0n) + (overrun > 0n ? overrun : 0n);
  }, 0n);

const isIn = ({ reservation }: Request, { scopeId, window }: ScopeWindow): boolean =>
  reservation?.scopeWindows.some((charge) => charge.scopeId === scopeId && charge.window.start === window.start) ===
  true;

function owedOf({ vanished, faultCounts }: Execution, request: Request): bigint {
  const { state, gateway, end } = request;
  const [size, cost, known] = [sizeOf(request), costOf(request), streamedCostOf(request)];
  if (gateway !== undefined && vanished.has(gateway)) {
    const isSafe =
      state === 'settled' && !request.isUnguaranteed && !faultCounts.has('wipe') && !faultCounts.has('restore');
    return isSafe ? minOf(known ?? cost, cost) : 0n;
  }
  const isDead = gateway?.isDead === true;
  if (isDead && state !== 'settled' && !isWritten(request)) return 0n;
  if (hasReservation(request)) return isDead ? minOf(known ?? size, size) : size;
  if (state === 'settled') return cost;
  if (state !== 'ending' || end === 'release') return 0n;
  return isDead ? minOf(known ?? size, cost) : cost;
}

export const minOf = (one: bigint, other: bigint): bigint => (one < other ? one : other);
