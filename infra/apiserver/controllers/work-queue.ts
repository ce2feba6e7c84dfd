// Work of a controller: the objects that the store's events concern, one after the other, and again after a failure.
import type { Deps } from '../deps.ts';
import type { Log } from '../log.ts';
import type { Key, StoredEvent } from '../store/database.ts';

export type Controller = { start(): void; stop(): Promise<void> };

/** Adds an object now, or after so many milliseconds. */
export type Add = (key: Key, delay?: number) => void;

type WorkQueueOptions = {
  readonly name: string;
  /** Resolves when nothing is left to do for now; throws to be called again a little later. */
  work(key: Key, add: Add): Promise<void>;
};

/**
 * Follows the store: `concerned` names the objects that an event concerns. At the start every object that is there
 * counts as added.
 */
export function createController(
  { store, log }: Pick<Deps, 'store' | 'log'>,
  { concerned, ...working }: WorkQueueOptions & { concerned(event: StoredEvent): readonly Key[] },
): Controller {
  const queue = createWorkQueue(log, working);
  const follow = (event: StoredEvent) => {
    for (const key of concerned(event)) queue.add(key);
  };
  return {
    start() {
      store.subscribe(follow);
      for (const resource of store.resources()) {
        for (const object of store.list(resource)) {
          const { namespace = '', name = '' } = object.metadata;
          follow({ resource, namespace, name, type: 'ADDED', object, revision: 0 });
        }
      }
    },
    stop: queue.stop,
  };
}

type Item = { readonly key: Key; readonly failures: number };

const [firstDelay, maxDelay] = [200, 30_000];

/** One object at a time, in order; an object added again while it waits is worked on once. */
export function createWorkQueue(
  log: Log,
  { name, work }: WorkQueueOptions,
): { readonly add: Add; stop(): Promise<void> } {
  const waiting = new Map<string, Item>();
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

  async function attempt({ key, failures }: Item): Promise<void> {
    try {
      await work(key, add);
    } catch (error) {
      const delay = Math.min(firstDelay * 2 ** failures, maxDelay);
      if (failures > 2)
        log.warn(`API server: ${name} is stuck`, { item: pathOf(key), error, retryInMilliseconds: delay });
      later({ key, failures: failures + 1 }, delay);
    }
  }

  function add(key: Key, delay = 0): void {
    if (delay > 0) later({ key, failures: 0 }, delay);
    else enqueue({ key, failures: 0 });
  }

  function later(item: Item, delay: number): void {
    if (stopped) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      enqueue(item);
    }, delay);
    timers.add(timer);
  }

  function enqueue(item: Item): void {
    waiting.set(pathOf(item.key), item);
    if (active || stopped) return;
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

function pathOf({ resource, namespace, name }: Key): string {
  return `${resource} ${namespace}/${name}`;
}
