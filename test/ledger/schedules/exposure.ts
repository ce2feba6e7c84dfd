// What a counter really owes at an instant, at least: the law of admission is that no limit is exceeded by it (LEDGER
// 1).
import type { ScopeWindow } from '#core/ports/policy.ts';
import { type Course, costOf, hasReservation, isWritten, type Request, sizeOf, streamedCostOf } from './course.ts';

/**
 * A request is admitted: each of its counters must have room for everything that is held and spent, unless it was asked
 * of an old snapshot. `since`: all that were admitted since it asked, for it learns of its reservation late; those may
 * still have known a higher limit, and so may its own process, where it learns of its reservation or growth only when
 * that is on disk.
 */
export function verifyAdmission(course: Course, request: Request, since: ReadonlyArray<Pick<Request, 'limits'>>): void {
  if (course.excused.has(request)) return;
  for (const charge of request.reservation?.scopeWindows ?? []) {
    const known = [request.gateway, ...since].map((one) => one?.limits.get(charge.scopeId) ?? 0n);
    const limit = known.reduce((high, one) => (one > high ? one : high)) + allowanceOf(course, charge);
    const owed = course.requests.reduce((all, each) => (isIn(each, charge) ? all + owedOf(course, each) : all), 0n);
    if (owed > limit && sizeOf(request) > 0n)
      course.wrong.push(`${request.name} was admitted in ${charge.scopeId}, where ${owed} are owed of ${limit}`);
  }
}

/** The excess that is allowed in a counter. */
export const allowanceOf = ({ requests, excused }: Course, of: ScopeWindow): bigint =>
  requests.reduce((all, request) => {
    const overrun = costOf(request) - sizeOf(request);
    if (!isIn(request, of)) return all;
    return all + (excused.has(request) ? sizeOf(request) : 0n) + (overrun > 0n ? overrun : 0n);
  }, 0n);

const isIn = ({ reservation }: Request, { scopeId, window }: ScopeWindow): boolean =>
  reservation?.scopeWindows.some((charge) => charge.scopeId === scopeId && charge.window.start === window.start) ===
  true;

function owedOf({ vanished, faultCounts }: Course, request: Request): bigint {
  const { stage, gateway, end } = request;
  const [size, cost, known] = [sizeOf(request), costOf(request), streamedCostOf(request)];
  if (gateway !== undefined && vanished.has(gateway)) {
    const isSafe =
      stage === 'settled' && !request.isUnguaranteed && !faultCounts.has('wipe') && !faultCounts.has('restore');
    return isSafe ? minOf(known ?? cost, cost) : 0n;
  }
  const isDead = gateway?.isDead === true;
  if (isDead && stage !== 'settled' && !isWritten(request)) return 0n;
  if (hasReservation(request)) return isDead ? minOf(known ?? size, size) : size;
  if (stage === 'settled') return cost;
  if (stage !== 'ending' || end === 'release') return 0n;
  return isDead ? minOf(known ?? size, cost) : cost;
}

export const minOf = (one: bigint, other: bigint): bigint => (one < other ? one : other);
