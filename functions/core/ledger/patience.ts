// How long may somebody keep silent while a client waits? Less than a second from its arrival, however many are asked one after the other (decision 0027).
import type { Clock } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Timer } from '../ports/platform.ts';
import type { Membership } from './membership.ts';
import { LOOK, Silence } from './within.ts';

/** From a request's arrival until it is told that somebody is silent. */
export const PATIENCE: Millis = 900;
/** The same where the store is rebuilt meanwhile, or where everybody who is asked does answer, slowly. */
const LONGEST: Millis = 1800;
/** Whoever is asked after others have answered has at least so long: a store far away is not silent. */
const ANSWER: Millis = 500;

/** One request's: it moves on with every answer. */
export interface Patience {
  /** On our clock. What is done later than this is done for nobody. */
  until: Millis;
  readonly latest: Millis;
  /** That was open when it began. */
  readonly epoch: number;
}

export interface PatienceDependencies {
  readonly clock: Clock;
  readonly timer: Timer;
  readonly membership: Membership;
}

/** `waited`: for so long others have been asked for this request already. */
export function openPatience({ clock, membership }: PatienceDependencies, waited: Millis = 0): Patience {
  const now = clock.now();
  return { until: now + leftOf(waited), latest: now + LONGEST - waited, epoch: membership.epoch() };
}

/** What is left of it for whoever is asked next. */
export const leftOf = (waited: Millis): Millis => Math.max(PATIENCE - waited, ANSWER);

/** Somebody has answered, and somebody is asked at this time, who has so long. */
export function goOn(patience: Patience, at: Millis, millis: Millis = ANSWER): void {
  patience.until = Math.max(patience.until, Math.min(at + millis, patience.latest));
}

/** The work's outcome, or a `Silence` when patience has ended. The work itself goes on. */
export function patiently<T>(
  { clock, timer, membership }: PatienceDependencies,
  patience: Patience,
  work: Promise<T>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let cancel = (): void => undefined;
    const watch = (): void => {
      // The clock may have been set back.
      const left = Math.min(patience.until - clock.now(), LONGEST);
      if (left > LOOK) cancel = timer(left - LOOK, watch);
      else if (patience.until < patience.latest && isRebuilt(membership, patience)) {
        patience.until = patience.latest;
        watch();
      } else cancel = timer(LOOK, end);
    };
    const end = (): void => {
      if (patience.until - clock.now() > 0) watch();
      else reject(new Silence('store or database kept silent'));
    };
    watch();
    work.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error) => {
        cancel();
        reject(error);
      },
    );
  });
}

/** Nothing is asked of a store that is being rebuilt, and what was asked before was asked of another. */
const isRebuilt = (membership: Membership, { epoch }: Patience): boolean => !membership.isIn(epoch);
