// Growth of work with its input: one large input against many small ones that amount to the same.
import { setTimeout } from 'node:timers/promises';
import { memory } from './memory.ts';

/**
 * How much larger the large input is. Linear work takes as long for it as for so many small ones, quadratic work so
 * many times as long.
 */
const TIMES = 16;
/** Small inputs that are measured together, for all of them. */
const MEASURED = 8;
/** What the large one may take more: caches and garbage make it a little slower. */
export const MAX_GROWTH = 3;
/**
 * A busy machine disturbs measurements for seconds, and garbage of earlier cases those of large inputs. So the best of
 * several counts, with longer and longer pauses between them, and without that garbage. Nearly all cases need one.
 */
const PAUSES = [0, 1, 10, 50, 100, 200, 400, 800, 1600, 3200, 6400];

/** Work on an input of this size. The input is made beforehand. */
export type Prepare = (size: number) => () => Promise<void>;

/** The time for one large input, in times for the same amount in small ones: about 1 where work grows linearly. */
export async function growthOf(prepare: Prepare, size: number): Promise<number> {
  const [small, large] = [prepare(size), prepare(size * TIMES)];
  // The engine compiles what runs for the first time: that would make the small ones slow.
  for (let time = 0; time < MEASURED; time += 1) await small();
  const growthNow = async () => {
    const ofSmall = (await timeOf(small, MEASURED)) * (TIMES / MEASURED);
    return (await timeOf(large, 1)) / ofSmall;
  };
  return bestOf(growthNow, MAX_GROWTH);
}

/** The time of some work, in times of another's. */
export async function ratioOf(work: () => Promise<void>, other: () => Promise<void>, max: number): Promise<number> {
  // The engine compiles what runs for the first time.
  for (const once of [work, other]) await once();
  const ratioNow = async () => {
    const ofOther = await timeOf(other, MEASURED);
    return (await timeOf(work, MEASURED)) / ofOther;
  };
  return bestOf(ratioNow, max);
}

/**
 * The first ratio below `max`, else the smallest one. Each is of two times that were measured one after the other: the
 * kernel's account of a short time may be too small, and must not count against all later ones.
 */
async function bestOf(measure: () => Promise<number>, max: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (const pause of PAUSES) {
    await setTimeout(pause);
    if (pause > 0) await memory();
    best = Math.min(best, await measure());
    if (best < max) break;
  }
  return best;
}

/** Microseconds of this thread's processor time: other processes do not count, however busy the machine is. */
async function timeOf(work: () => Promise<void>, times: number): Promise<number> {
  const before = processorTime();
  for (let time = 0; time < times; time += 1) await work();
  return processorTime() - before;
}

const CELL = new Int32Array(new SharedArrayBuffer(4));

/**
 * The kernel brings its account of a running thread up to date every few milliseconds, and of one that waits
 * immediately.
 */
function processorTime(): number {
  Atomics.wait(CELL, 0, 0, 0.02);
  const { user, system } = process.threadCpuUsage();
  return user + system;
}
