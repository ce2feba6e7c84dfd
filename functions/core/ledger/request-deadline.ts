// Request deadlines: how long store and database may take while a client waits, less than a second from its arrival (decision 0027).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Membership } from './membership.ts';
import type { StoreLiveness } from './store-liveness.ts';
import { TIMER_SKEW, TimeoutError } from './timeout.ts';

/** A request is refused this long after its arrival when store or database do not answer. */
export const REQUEST_DEADLINE: Millis = 900;
/** The deadline where the store is rebuilt meanwhile, or where all questions are answered, but slowly. */
const MAX_REQUEST_DEADLINE: Millis = 1800;
/** The time for a further question after an answer: a distant store is not unresponsive. */
const ANSWER: Millis = 500;
/** The time for a repeated question of a request that waits for live holds. A live store answers by then. */
export const ASKED_AGAIN: Millis = 250;
/** The value of `askedAt` while the request does not wait for the store. */
export const NOTHING_ASKED: Millis = Number.NEGATIVE_INFINITY;
/** The minimum time between checks, so that a thousand deadlines a millisecond apart are checked together. */
const APART: Millis = 10;

/** The deadline of one request: every answer extends it. */
export interface RequestDeadline {
  /** The deadline on our clock; every answer may extend it up to `latest`. */
  until: Millis;
  readonly latest: Millis;
  /** The epoch that was open when the request arrived. */
  readonly epoch: number;
  /** When the pending question was sent to the store. */
  askedAt: Millis;
  /** The request waits for live holds. All such requests of a process share one verdict on the store's liveness. */
  isShared: boolean;
  /** The time of the next check. */
  nextCheckAt: Millis;
  /** The deadline has passed if no answer came by the next check. */
  isFinalCheck: boolean;
}

export interface RequestDeadlineDependencies {
  readonly clock: Clock;
  readonly membership: Membership;
}

/** `waited`: the time that the request has already waited for other answers. */
export function openRequestDeadline(
  { clock, membership }: RequestDeadlineDependencies,
  waited: Millis = 0,
): RequestDeadline {
  const now = clock.now();
  const latest = now + MAX_REQUEST_DEADLINE - waited;
  const until = now + leftOf(waited);
  const asked = { askedAt: NOTHING_ASKED, isShared: false };
  return { until, latest, epoch: membership.epoch(), ...asked, nextCheckAt: now, isFinalCheck: false };
}

/** The time left for the next question of a request that has waited `waited`. */
export const leftOf = (waited: Millis): Millis => Math.max(REQUEST_DEADLINE - waited, ANSWER);

/** The latest instant on our clock for an operation. A request that waits for live holds has longer while the store answers others. */
export function deadlineOf({ isShared, until, latest }: RequestDeadline, now: Millis): Millis {
  return Math.max(until, now, isShared ? Math.min(now + ANSWER, latest) : until);
}

/** Extends the deadline after an answer: the next question, asked at `at`, has `millis`. */
export function extend(requestDeadline: RequestDeadline, at: Millis, millis: Millis = ANSWER): void {
  requestDeadline.until = Math.max(requestDeadline.until, Math.min(at + millis, requestDeadline.latest));
}

/** A watch over all deadlines with one timer: nearly all requests are answered before it is due. */
export interface Watch {
  /** Starts watching a deadline that was just opened. `onTimeout` is called once, when it has passed. */
  begin(requestDeadline: RequestDeadline, onTimeout: (timeout: TimeoutError) => void): void;
  end(requestDeadline: RequestDeadline): void;
}

export interface WatchDependencies extends RequestDeadlineDependencies {
  readonly timer: Timer;
  readonly liveness: StoreLiveness;
}

export function createWatch({ clock, timer, membership, liveness }: WatchDependencies): Watch {
  const watched = new Map<RequestDeadline, (timeout: TimeoutError) => void>();
  let due: Millis = Number.POSITIVE_INFINITY;
  let cancel = (): void => undefined;

  const lifeOf = ({ isShared, askedAt }: RequestDeadline, now: Millis): Millis =>
    isShared ? (liveness.unresponsiveSince() ?? now) : liveness.lastProgressAt(askedAt);

  const plan = (requestDeadline: RequestDeadline, now: Millis): void => {
    const left = requestDeadline.until - now;
    if (
      left <= TIMER_SKEW &&
      requestDeadline.until < requestDeadline.latest &&
      !membership.isIn(requestDeadline.epoch)
    ) {
      // During a rebuild the store is not asked, and earlier questions went to the store before it.
      requestDeadline.until = requestDeadline.latest;
      plan(requestDeadline, now);
      return;
    }
    requestDeadline.isFinalCheck = left <= TIMER_SKEW;
    requestDeadline.nextCheckAt = requestDeadline.isFinalCheck ? now + TIMER_SKEW : requestDeadline.until - TIMER_SKEW;
  };

  const checkNoLaterThan = (at: Millis, now: Millis): void => {
    if (at >= due) return;
    cancel();
    due = at;
    // The clock may have been set back.
    cancel = timer(Math.min(at - now, MAX_REQUEST_DEADLINE), checkAll);
  };

  const checkAll = (): void => {
    const now = clock.now();
    due = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const [requestDeadline, onTimeout] of watched) {
      if (requestDeadline.nextCheckAt <= now) {
        extend(requestDeadline, lifeOf(requestDeadline, now), ASKED_AGAIN);
        if (requestDeadline.isFinalCheck && requestDeadline.until <= now) {
          watched.delete(requestDeadline);
          onTimeout(new TimeoutError('store or database did not answer in time'));
          continue;
        }
        plan(requestDeadline, now);
      }
      next = Math.min(next, requestDeadline.nextCheckAt);
    }
    if (watched.size > 0) checkNoLaterThan(Math.max(next, now + APART), now);
  };

  return {
    begin(requestDeadline, onTimeout) {
      // The deadline has just been opened.
      const now = requestDeadline.nextCheckAt;
      plan(requestDeadline, now);
      watched.set(requestDeadline, onTimeout);
      checkNoLaterThan(requestDeadline.nextCheckAt, now);
    },
    end(requestDeadline) {
      if (!watched.delete(requestDeadline) || watched.size > 0) return;
      cancel();
      due = Number.POSITIVE_INFINITY;
    },
  };
}

/** The work's outcome, or a `TimeoutError` when the deadline has passed. The work itself continues. */
export function withDeadline<T>(watch: Watch, requestDeadline: RequestDeadline, work: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    watch.begin(requestDeadline, reject);
    work.then(resolve, reject).finally(() => watch.end(requestDeadline));
  });
}
