// The share of a part: what its databases and stores may answer, and the time that they and its actions may take.
import type { Millis } from '#core/ports/money.ts';
import type { ObserveContext } from './context.ts';
import type { Part } from './parts.ts';

/** Milliseconds after which a part begins no more steps, and no more reports; the next run begins with the rest. */
const [MAX_STEPS, MAX_REPORTS]: [Millis, Millis] = [50_000, 90_000];
/** Milliseconds in which its servers have to answer what there is, and everything that steps ask. */
const [MAX_OBSERVE, MAX_SHARE]: [Millis, Millis] = [40_000, MAX_REPORTS];

/** The time of a part: its owner decides how long its database takes to answer, and how much there is to do. */
export interface PartTime {
  /** Its servers have answered what there is: reads of the API server, and steps, may take longer. */
  observed(): void;
  /** No more steps may begin. */
  isLate(): boolean;
  /** Nothing may begin. */
  isOver(): boolean;
}

/** A part holds what it is answered, and everything that it asked ends with it, or with its time. */
export async function withShare<T>(
  context: ObserveContext,
  { world: { keys, users, teams } }: Pick<Part, 'world'>,
  run: (context: ObserveContext, time: PartTime) => Promise<T>,
): Promise<T> {
  const { deps } = context;
  const { clock, timer } = deps;
  const { backends, end } = deps.backends.begin(keys.size + users.size + teams.size);
  const endAfter = (millis: Millis) =>
    timer(millis, () => end(`has not answered everything within ${millis / 1000} s: the next resync asks again`));
  const began = clock.now();
  const cancelLast = endAfter(MAX_SHARE);
  const cancelFirst = endAfter(MAX_OBSERVE);
  const isAfter = (millis: Millis): boolean => clock.now() - began > millis;
  const time: PartTime = {
    observed: cancelFirst,
    isLate: () => isAfter(MAX_STEPS),
    isOver: () => isAfter(MAX_REPORTS),
  };
  try {
    return await run({ ...context, deps: { ...deps, backends } }, time);
  } finally {
    cancelFirst();
    cancelLast();
    end();
  }
}
