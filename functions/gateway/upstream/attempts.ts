// Attempts of a request so far: the choice of the next model entry, the charge of attempts that broke, and the
// reservation for another attempt (LEDGER 10).
import type { Failure } from '#core/failure/failure.ts';
import type { ReservationRefusal, Settlement } from '#core/ports/ledger.ts';
import type { Nano } from '#core/ports/money.ts';
import { RATE_KINDS } from '#core/ports/rates.ts';
import type { GatewayDependencies } from '../deps.ts';
import type { Deadline } from '../request/deadline.ts';
import type { RequestLog } from '../request/request-log.ts';
import { settlementOfFailed } from '../spend/charge.ts';
import type { ReservedGrant } from '../spend/reserve.ts';
import type { Cooldowns } from '../targets/cooldown.ts';
import type { Target } from '../targets/targets.ts';
import type { AttemptFailure } from './attempt-failure.ts';

export interface Attempts {
  readonly reserved: ReservedGrant;
  /** Targets that may still be called, in order. */
  targets: ReadonlyArray<Target>;
  /** Failures of each target. */
  readonly failures: Map<Target, number>;
  /** The failure of the latest attempt. */
  lastFailure: Failure | undefined;
  /** The refusal of the full model entry that has room soonest. */
  fullRefusal: ReservationRefusal | undefined;
  /** The part of `failedCharge` by which the reservation has not grown yet. */
  unreserved: Nano;
  /** A provider was called. */
  isCalled: boolean;
  /** The charge of attempts that providers took and that failed. */
  failedCharge: Settlement | undefined;
  /** Ends the count of the latest attempt at its model entry, unless that count has ended. */
  leaveModelEntry(): void;
}

export const createAttempts = (reserved: ReservedGrant): Attempts => ({
  reserved,
  targets: [],
  failures: new Map(),
  lastFailure: undefined,
  fullRefusal: undefined,
  unreserved: 0n,
  isCalled: false,
  failedCharge: undefined,
  leaveModelEntry: () => {},
});

/** A failed attempt. */
interface FailedAttempt {
  /** The target, with the output limit of the call. */
  readonly target: Target;
  readonly deadline: Deadline;
  readonly failed: AttemptFailure;
}

export function createNextAttempt({ ledger }: Pick<GatewayDependencies, 'ledger'>, cooldowns: Cooldowns) {
  return { chooseNext, recordFailure, growReservation };

  /** The target with the fewest failures, of those without a cooldown; else the one whose cooldown ends first. */
  function chooseNext({ targets, failures, reserved }: Attempts): Target | undefined {
    const { key } = reserved.grant.caller;
    const ready = targets.filter(({ endpoint }) => cooldowns.endOfCooldown(endpoint, key) === undefined);
    if (ready.length === 0) return cooldowns.soonestAvailable(targets, key);
    const tried = (target: Target) => failures.get(target) ?? 0;
    return ready.reduce((best, target) => (tried(target) < tried(best) ? target : best));
  }

  /** Records a failed attempt. `next`: its member of `attempts.targets`. */
  function recordFailure(attempts: Attempts, next: Target, { target, deadline, failed }: FailedAttempt): void {
    const { failure, outputBytes, usage, retry, retryAfter, fault } = failed;
    const { reserved, failedCharge } = attempts;
    const { routing, caller } = reserved.grant;
    const failures = attempts.failures.get(next) ?? 0;
    attempts.lastFailure = failure;
    attempts.failures.set(next, failures + 1);
    const billed = usage ?? outputBytes;
    // A model entry is not called again after a charged attempt.
    if (retry === 'elsewhere' || billed !== undefined)
      attempts.targets = attempts.targets.filter((other) => other !== next);
    // An attempt has not failed if its client left before the answer.
    if (fault !== 'none' && deadline.ended !== 'client_left') {
      const isRateLimited = failure.code === 'upstream_rate_limited';
      const causingKey = fault === 'entry' ? undefined : caller.key;
      cooldowns.recordFailure(target.endpoint, routing.cooldown, {
        isFirst: failures === 0,
        causingKey,
        retryAfter,
        isRateLimited,
      });
    }
    if (billed === undefined) return;
    attempts.failedCharge = settlementOfFailed({ reserved, target, failedCharge }, billed);
    attempts.unreserved += attempts.failedCharge.cost - (failedCharge?.cost ?? 0n);
  }

  /**
   * Grows the reservation by the charge of failed attempts, so that it covers an attempt at `next`. If a budget does
   * not allow that, only those targets stay that the rest of the reservation covers. Returns whether `next` stays.
   */
  async function growReservation(attempts: Attempts, next: Target): Promise<boolean> {
    const { unreserved, failedCharge } = attempts;
    const { reservation } = attempts.reserved;
    attempts.unreserved = 0n;
    if (failedCharge === undefined || (await ledger.grow(reservation, unreserved)).ok) return true;
    attempts.targets = attempts.targets.filter(({ maxCost }) => failedCharge.cost + maxCost <= reservation.amount);
    return attempts.targets.includes(next);
  }
}

/** Removes a full model entry from the targets. This does not count as an attempt. */
export function skipModelEntry(attempts: Attempts, target: Target, full: ReservationRefusal, log: RequestLog): void {
  const known = attempts.fullRefusal;
  const isLater = known?.reason === 'limited' && !(full.reason === 'limited' && full.retryIn < known.retryIn);
  if (!isLater) attempts.fullRefusal = full;
  const why =
    full.reason === 'limited'
      ? `full: its ${RATE_KINDS[full.rate].units[1]} are used up`
      : 'its rate limit cannot be checked: the counter store failed';
  log.addSkipped(target.entry.identifier, why);
  attempts.targets = attempts.targets.filter((other) => other !== target);
}

/** The failure of a request that no provider answered. If no provider was called, all model entries were full. */
export function failureOfRequest({ lastFailure: last, fullRefusal }: Attempts, model: string): Failure {
  if (last !== undefined) return last;
  if (fullRefusal?.reason === 'unavailable') return { code: 'ledger_unavailable', why: fullRefusal.why };
  if (fullRefusal?.reason !== 'limited') return { code: 'upstream_timeout' };
  const { rate, limit, retryIn } = fullRefusal;
  return { code: 'rate_limit_exceeded', model, rate, limit, retryIn };
}
