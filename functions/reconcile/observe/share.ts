// The share of a part: the bytes that its databases and counter stores may answer, and the time that they and the
// part's actions may take.
import type { Millis } from '#core/ports/money.ts';
import type { ObserveContext } from './context.ts';
import type { Part } from './parts.ts';

/**
 * Milliseconds after which a part begins no more steps, and after which it begins no more reports. The next run begins
 * with the rest.
 */
const [STEP_TIME, REPORT_TIME]: [Millis, Millis] = [50_000, 90_000];
/**
 * Milliseconds in which a part's database and counter store must answer what is observed, and all that its steps send.
 */
const [OBSERVE_TIME, SHARE_TIME]: [Millis, Millis] = [40_000, REPORT_TIME];

/**
 * The time limits of a part: an instance's owner decides how long its database takes to answer, and how much there is
 * to do.
 */
export interface PartTimeLimits {
  /** Ends the time limit of observing, when database and counter store have answered. */
  endObserving(): void;
  /** Whether the time in which steps may begin is over. */
  isLate(): boolean;
  /** Whether the time in which anything may begin is over. */
  isOver(): boolean;
}

/** Runs a part. Its calls to database and counter store are aborted at its end, or when its time is over. */
export async function withShare<T>(
  context: ObserveContext,
  { world: { keys, users, teams } }: Pick<Part, 'world'>,
  run: (context: ObserveContext, timeLimits: PartTimeLimits) => Promise<T>,
): Promise<T> {
  const { deps } = context;
  const { clock, timer } = deps;
  const { backends, end } = deps.backends.begin(keys.size + users.size + teams.size);
  const endAfter = (millis: Millis) =>
    timer(millis, () => end(`has not answered everything within ${millis / 1000} s: the next resync asks again`));
  const began = clock.now();
  const cancelLast = endAfter(SHARE_TIME);
  const cancelFirst = endAfter(OBSERVE_TIME);
  const isAfter = (millis: Millis): boolean => clock.now() - began > millis;
  const timeLimits: PartTimeLimits = {
    endObserving: cancelFirst,
    isLate: () => isAfter(STEP_TIME),
    isOver: () => isAfter(REPORT_TIME),
  };
  try {
    return await run({ ...context, deps: { ...deps, backends } }, timeLimits);
  } finally {
    cancelFirst();
    cancelLast();
    end();
  }
}
