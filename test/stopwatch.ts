// How long did it take, but for the time in which a busy machine had no processor for it?
import { readFileSync } from 'node:fs';

/**
 * Milliseconds since it was started. A promise in milliseconds is about what is waited for and what is computed, not about who else
 * runs on the machine: what this process and those of `others` (that one asks the next) were ready to run and had to
 * wait is left out, also where it would have had to wait for something else meanwhile. Linux counts it, for their main threads; elsewhere
 * it is all the time that passed.
 */
export function startStopwatch(...others: ReadonlyArray<number>): () => number {
  const processes = [process.pid, ...others];
  const delayed = () => processes.reduce((sum, pid) => sum + delayOf(pid), 0);
  const [began, before] = [performance.now(), delayed()];
  return () => performance.now() - began - (delayed() - before);
}

function delayOf(pid: number): number {
  try {
    // Nanoseconds on a processor, nanoseconds in line for one, turns (kernel.org, scheduler/sched-stats).
    const [, inLine = '0'] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
    return Number(inLine) / 1e6;
  } catch {
    return 0;
  }
}
