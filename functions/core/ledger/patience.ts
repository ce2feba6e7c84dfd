// How long may somebody keep silent while a client waits? Less than a second from its arrival, however many are asked one after the other (decision 0027).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Membership } from './membership.ts';
import type { Signs } from './signs.ts';
import { LOOK, Silence } from './within.ts';

/** From a request's arrival until it is told that somebody is silent. */
export const PATIENCE: Millis = 900;
/** The same where the store is rebuilt meanwhile, or where everybody who is asked does answer, slowly. */
const LONGEST: Millis = 1800;
/** Whoever is asked after others have answered has at least so long: a store far away is not silent. */
const ANSWER: Millis = 500;
/** Whoever waits for live holds and asks again has the answer by then, unless the store answers nobody: it has waited long enough. */
export const ASKED_AGAIN: Millis = 250;
/** It does not wait for the store. */
export const NOTHING_ASKED: Millis = Number.NEGATIVE_INFINITY;
/** Looking at a thousand who wait, each due a millisecond after the other, is one look. */
const APART: Millis = 10;

/** One request's: it moves on with every answer. */
export interface Patience {
  /** On our clock. What is done later than this is done for nobody. */
  until: Millis;
  readonly latest: Millis;
  /** That was open when it began. */
  readonly epoch: number;
  /** When the store was asked what it waits for. */
  askedAt: Millis;
  /** It waits for live holds: all of this process who do judge together whether the store is silent. */
  isShared: boolean;
  /** When it is looked at next. */
  lookAt: Millis;
  /** Should nothing have come by then, it has ended. */
  isLastLook: boolean;
}

export interface PatienceDependencies {
  readonly clock: Clock;
  readonly membership: Membership;
}

/** `waited`: for so long others have been asked for this request already. */
export function openPatience({ clock, membership }: PatienceDependencies, waited: Millis = 0): Patience {
  const now = clock.now();
  const latest = now + LONGEST - waited;
  const until = now + leftOf(waited);
  const asked = { askedAt: NOTHING_ASKED, isShared: false };
  return { until, latest, epoch: membership.epoch(), ...asked, lookAt: now, isLastLook: false };
}

/** What is left of it for whoever is asked next. */
export const leftOf = (waited: Millis): Millis => Math.max(PATIENCE - waited, ANSWER);

/** Until when on our clock it may be done. As long as others are answered, who waits for live holds has longer than it would have of a silent store. */
export function deadlineOf({ isShared, until, latest }: Patience, now: Millis): Millis {
  return Math.max(until, now, isShared ? Math.min(now + ANSWER, latest) : until);
}

/** Somebody has answered, and somebody is asked at this time, who has so long. */
export function goOn(patience: Patience, at: Millis, millis: Millis = ANSWER): void {
  patience.until = Math.max(patience.until, Math.min(at + millis, patience.latest));
}

/** Watches over all who wait, with one timer for them together: nearly all have their answer before it is due. */
export interface Watch {
  /** To be called as soon as patience is opened. `onSilence` is called once, when it has ended. */
  begin(patience: Patience, onSilence: (silence: Silence) => void): void;
  end(patience: Patience): void;
}

export interface WatchDependencies extends PatienceDependencies {
  readonly timer: Timer;
  readonly signs: Signs;
}

export function createWatch({ clock, timer, membership, signs }: WatchDependencies): Watch {
  const watched = new Map<Patience, (silence: Silence) => void>();
  let due: Millis = Number.POSITIVE_INFINITY;
  let cancel = (): void => undefined;

  const lifeOf = ({ isShared, askedAt }: Patience, now: Millis): Millis =>
    isShared ? (signs.silentSince() ?? now) : signs.nearerAt(askedAt);

  const plan = (patience: Patience, now: Millis): void => {
    const left = patience.until - now;
    if (left <= LOOK && patience.until < patience.latest && !membership.isIn(patience.epoch)) {
      // Nothing is asked of a store that is being rebuilt, and what was asked before was asked of another.
      patience.until = patience.latest;
      plan(patience, now);
      return;
    }
    patience.isLastLook = left <= LOOK;
    patience.lookAt = patience.isLastLook ? now + LOOK : patience.until - LOOK;
  };

  const lookNoLaterThan = (at: Millis, now: Millis): void => {
    if (at >= due) return;
    cancel();
    due = at;
    // The clock may have been set back.
    cancel = timer(Math.min(at - now, LONGEST), lookAtAll);
  };

  const lookAtAll = (): void => {
    const now = clock.now();
    due = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const [patience, onSilence] of watched) {
      if (patience.lookAt <= now) {
        goOn(patience, lifeOf(patience, now), ASKED_AGAIN);
        if (patience.isLastLook && patience.until <= now) {
          watched.delete(patience);
          onSilence(new Silence('store or database kept silent'));
          continue;
        }
        plan(patience, now);
      }
      next = Math.min(next, patience.lookAt);
    }
    if (watched.size > 0) lookNoLaterThan(Math.max(next, now + APART), now);
  };

  return {
    begin(patience, onSilence) {
      // It has just been opened.
      const now = patience.lookAt;
      plan(patience, now);
      watched.set(patience, onSilence);
      lookNoLaterThan(patience.lookAt, now);
    },
    end(patience) {
      if (!watched.delete(patience) || watched.size > 0) return;
      cancel();
      due = Number.POSITIVE_INFINITY;
    },
  };
}

/** The work's outcome, or a `Silence` when patience has ended. The work itself goes on. */
export function patiently<T>(watch: Watch, patience: Patience, work: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    watch.begin(patience, reject);
    work.then(resolve, reject).finally(() => watch.end(patience));
  });
}
