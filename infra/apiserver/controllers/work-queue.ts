// Work queue of a controller: each item once for many reasons, and again when it failed.
import type { Log } from '../log.ts';

export type WorkQueue<Item> = {
  /** Adds now, or after so many milliseconds. */
  add(item: Item, delay?: number): void;
  stop(): Promise<void>;
};

export type Working<Item> = {
  readonly name: string;
  readonly log: Log;
  keyOf(item: Item): string;
  /** Resolves when nothing is left to do for now; throws to be called again a little later. */
  work(item: Item): Promise<void>;
};

const [firstDelay, maxDelay] = [200, 30_000];

/** One item at a time, in order; an item added again while it waits is done once. */
export function createWorkQueue<Item>({ name, log, keyOf, work }: Working<Item>): WorkQueue<Item> {
  const waiting = new Map<string, Item>();
  const failures = new Map<string, number>();
  const timers = new Set<NodeJS.Timeout>();
  let running = Promise.resolve();
  let active = false;
  let stopped = false;

  async function run(): Promise<void> {
    for (let next = take(); next !== undefined && !stopped; next = take()) await attempt(next);
    active = false; // in the same turn as the last look: an add after it starts the next run
  }

  function take(): Item | undefined {
    const [first] = waiting;
    if (first === undefined) return undefined;
    waiting.delete(first[0]);
    return first[1];
  }

  async function attempt(item: Item): Promise<void> {
    const key = keyOf(item);
    try {
      await work(item);
      failures.delete(key);
    } catch (error) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      const delay = Math.min(firstDelay * 2 ** (count - 1), maxDelay);
      if (count > 3) log.warn(`API server: ${name} is stuck`, { item: key, error, retryInMilliseconds: delay });
      add(item, delay);
    }
  }

  function add(item: Item, delay = 0): void {
    if (stopped) return;
    if (delay > 0) {
      const timer = setTimeout(() => {
        timers.delete(timer);
        add(item);
      }, delay);
      timers.add(timer);
      return;
    }
    waiting.set(keyOf(item), item);
    if (active) return;
    active = true;
    running = Promise.resolve().then(run);
  }

  return {
    add,
    async stop() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      await running;
    },
  };
}
