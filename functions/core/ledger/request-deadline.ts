// Request deadlines: how long store and database may take while a client waits. Less than a second from its arrival, however many are asked in turn (decision 0027).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Membership } from './membership.ts';
import type { StoreLiveness } from './store-liveness.ts';
import { TIMER_SKEW, TimeoutError } from './timeout.ts';

/** From a request's arrival until it is refused because store or database do not answer. */
export const REQUEST_DEADLINE: Millis = 900;
/** The same where the store is rebuilt meanwhile, or where all that is asked does answer, slowly. */
const MAX_REQUEST_DEADLINE: Millis = 1800;
/** A question after other answers has at least so long: a store far away is not unresponsive. */
const ANSWER: Millis = 500;
/** A request that waits for live holds and asks again has the answer by then, unless the store answers nothing at all. */
export const ASKED_AGAIN: Millis = 250;
/** The request does not wait for the store. */
export const NOTHING_ASKED: Millis = Number.NEGATIVE_INFINITY;
/** A thousand deadlines, each due a millisecond after the other, are checked together. */
const APART: Millis = 10;

/** The deadline of one request: every answer extends it. */
export interface RequestDeadline {
  /** On our clock. What is done later than this is not waited for. */
  until: Millis;
  readonly latest: Millis;
  /** The epoch that was open when the request arrived. */
  readonly epoch: number;
  /** When the store was asked what the request waits for. */
  askedAt: Millis;
  /** The request waits for live holds: all such requests of this process judge together whether the store is unresponsive. */
  isShared: boolean;
  /** When it is checked next. */
  nextCheckAt: Millis;
  /** Should nothing have come by then, the deadline has passed. */
  isFinalCheck: boolean;
}

export interface RequestDeadlineDependencies {
  readonly clock: Clock;
  readonly membership: Membership;
}

/** `waited`: for so long the request has waited for other answers already. */
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

/** What is left for the next question of a request that has waited so long. */
export const leftOf = (waited: Millis): Millis => Math.max(REQUEST_DEADLINE - waited, ANSWER);

/** Until when on our clock an operation may be done. While other requests are answered, one that waits for live holds has longer than a silent store would give it. */
export function deadlineOf({ isShared, until, latest }: RequestDeadline, now: Millis): Millis {
  return Math.max(until, now, isShared ? Math.min(now + ANSWER, latest) : until);
}

/** An answer came, and the next question, asked at this time, has so long. */
export function extend(requestDeadline: RequestDeadline, at: Millis, millis: Millis = ANSWER): void {
  requestDeadline.until = Math.max(requestDeadline.until, Math.min(at + millis, requestDeadline.latest));
}

/** Watches all deadlines with one timer: nearly all requests have their answer before it is due. */
export interface Watch {
  /** To be called as soon as the deadline is opened. `onTimeout` is called once, when it has passed. */
  begin(requestDeadline: RequestDeadline, onTimeout: (silence: TimeoutError) => void): void;
  end(requestDeadline: RequestDeadline): void;
}

export interface WatchDependencies extends RequestDeadlineDependencies {
  readonly timer: Timer;
  readonly liveness: StoreLiveness;
}

export function createWatch({ clock, timer, membership, liveness }: WatchDependencies): Watch {
  const watched = new Map<RequestDeadline, (silence: TimeoutError) => void>();
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
      // Nothing is asked of a store that is being rebuilt, and what was asked before was asked of another.
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
          onTimeout(new TimeoutError('store or database kept silent'));
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

/** The work's outcome, or a `TimeoutError` when the deadline has passed. The work itself goes on. */
export function withDeadline<T>(watch: Watch, requestDeadline: RequestDeadline, work: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    watch.begin(requestDeadline, reject);
    work.then(resolve, reject).finally(() => watch.end(requestDeadline));
  });
}
