// Watch inside a measured process, loaded by `node --import`: stalls of its event loop, pauses for garbage, memory.
import { openSync, readSync } from 'node:fs';
import { createHistogram, PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';

/** Order: a new period begins, or the current one is told. */
export type WatchOrder = 'begin' | 'tell';

/** All in milliseconds. */
export interface Stall {
  /** Since the period began. */
  readonly at: number;
  readonly millis: number;
  /** CPU of the process, all threads. */
  readonly cpu: number;
  /** Pauses for garbage. */
  readonly garbage: number;
  /** The main thread was ready to run, and the core was taken by another process. */
  readonly waited: number;
}

export interface WatchedLoop {
  readonly rss: number;
  /** The least heap in use after a pause for garbage, in bytes. */
  readonly heap: number;
  /** Milliseconds by which the event loop was late at the 99.9th percentile and at worst. */
  readonly p999: number;
  readonly max: number;
  /** The longest without the time in which another process had the core. */
  readonly maxOwn: number;
  readonly maxGarbage: number;
  /** All above STALL. */
  readonly stalls: ReadonlyArray<Stall>;
}

/** Milliseconds. */
const [EVERY, STALL] = [5, 20];
const schedule = openSchedule();
let [began, lowestHeap, maxGarbage, maxOwn] = [0, 0, 0, 0];
let stalls: Stall[] = [];
let pauses: { readonly from: number; readonly until: number }[] = [];
const late = createHistogram();
let last = read();

setInterval(() => {
  const now = read();
  const millis = now.time - last.time - EVERY;
  late.record(Math.max(1, Math.round(millis * 1000)));
  const stall = toStall(millis, last, now);
  maxOwn = Math.max(maxOwn, millis - stall.waited);
  if (millis > STALL) stalls.push(stall);
  last = now;
}, EVERY).unref();

new PerformanceObserver((list) => {
  for (const { startTime: from, duration } of list.getEntries()) {
    maxGarbage = Math.max(maxGarbage, duration);
    pauses.push({ from, until: from + duration });
  }
  lowestHeap = Math.min(lowestHeap, getHeapStatistics().used_heap_size);
  if (stalls.length === 0) pauses = pauses.slice(-100);
}).observe({ entryTypes: ['gc'] });

process.on('message', (order: WatchOrder) => {
  if (order === 'begin') begin();
  process.send?.(order === 'begin' ? {} : tell());
});
// The channel alone keeps no process alive.
process.channel?.unref();
begin();

function begin(): void {
  late.reset();
  [stalls, pauses, maxGarbage, maxOwn, lowestHeap] = [[], [], 0, 0, Number.POSITIVE_INFINITY];
  last = read();
  began = performance.now();
}

function tell(): WatchedLoop {
  const lateBy = (micros: number) => micros / 1000;
  const garbageIn = ({ at, millis }: Stall) =>
    pauses.reduce((sum, { from, until }) => {
      const [start, end] = [began + at, began + at + millis + EVERY];
      return sum + Math.max(0, Math.min(until, end) - Math.max(from, start));
    }, 0);
  return {
    rss: process.memoryUsage.rss(),
    heap: Number.isFinite(lowestHeap) ? lowestHeap : getHeapStatistics().used_heap_size,
    p999: lateBy(late.percentile(99.9)),
    max: lateBy(late.max),
    maxOwn,
    maxGarbage,
    stalls: stalls.map((stall) => ({ ...stall, garbage: garbageIn(stall) })),
  };
}

interface LoopReading {
  readonly time: number;
  /** Milliseconds of CPU: of all threads, of the main thread. */
  readonly cpu: number;
  readonly main: number;
  /** Milliseconds in which the main thread was ready and did not run. */
  readonly waited: number;
}

function read(): LoopReading {
  const [all, main] = [process.cpuUsage(), process.threadCpuUsage()];
  return {
    time: performance.now(),
    waited: schedule(),
    cpu: (all.user + all.system) / 1000,
    main: (main.user + main.system) / 1000,
  };
}

/**
 * The main thread waits for threads of its own process too, which share its core: that wait is not another process's.
 */
function toStall(millis: number, from: LoopReading, until: LoopReading): Stall {
  const cpu = until.cpu - from.cpu;
  const ofHelpers = cpu - (until.main - from.main);
  return {
    at: from.time - began,
    millis,
    cpu,
    garbage: 0,
    waited: Math.max(0, until.waited - from.waited - ofHelpers),
  };
}

/** Milliseconds that the main thread has waited for a core (Linux: the second number of schedstat); 0 elsewhere. */
function openSchedule(): () => number {
  try {
    const file = openSync('/proc/self/schedstat', 'r');
    const buffer = Buffer.alloc(64);
    return () => Number(buffer.toString('latin1', 0, readSync(file, buffer, 0, 64, 0)).split(' ')[1]) / 1e6;
  } catch {
    return () => 0;
  }
}
