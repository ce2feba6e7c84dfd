// Turns of the event loop: work that arrives in one turn is done together, after all sockets are read.
import type { TurnOwner } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';

/**
 * The time for work in one turn; the rest is done in the next turn. A server accepts one new connection between two
 * turns, so turns are short, however many requests have arrived.
 */
const MAX_TURN: Millis = 5;

/** Runs the work after the current reading of sockets, in order. An error stops no other work. */
export type Turn = (work: () => void) => void;

/**
 * A batch for one kind of work. The same step of many requests one after the other costs far less than all steps of
 * each request: the instructions stay in the processor's cache (docs/internals/bench.md). A single request does not
 * wait. `thrown`: receives an error of the work, which is a bug.
 */
export function createTurn(thrown: (error: unknown) => void = throwAlone): Turn {
  let waiting: Array<() => void> = [];
  const run = () => {
    const works = waiting;
    waiting = [];
    const end = performance.now() + MAX_TURN;
    let done = 0;
    for (const work of works) {
      if (done > 0 && performance.now() > end) break;
      done += 1;
      try {
        work();
      } catch (error) {
        thrown(error);
      }
    }
    if (done === works.length) return;
    if (waiting.length === 0) setImmediate(run);
    waiting = [...works.slice(done), ...waiting];
  };
  return (work) => {
    if (waiting.push(work) === 1) setImmediate(run);
  };
}

/** Throws the error after the other work of the turn: it ends the process if nothing handles it. */
function throwAlone(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Runs work that blocks everything else, when it is its owner's turn. */
export type OwnedTurn = (of: TurnOwner, work: () => void) => void;

/** Waiting work by namespace and key. The first of each is the next. */
type WorkQueues = Map<string, Map<string, Array<() => void>>>;

/**
 * For work that takes long, alone or together: one long work or several short ones in a turn. Between two turns
 * everything else that has arrived is handled. Namespaces take turns, and so do the keys of each; work of one key runs
 * in order.
 */
export function createOwnedTurn(): OwnedTurn {
  const waiting: WorkQueues = new Map();
  let isDue = false;
  const begin = () => runUntil(performance.now() + MAX_TURN);
  const runUntil = (end: Millis): void => {
    const work = takeNext(waiting);
    isDue = work !== undefined;
    // Work may only resolve a promise: the code that awaits it has run before the next tick.
    if (isDue) queueMicrotask(() => process.nextTick(next, end));
    work?.();
  };
  const next = (end: Millis): void => {
    if (performance.now() < end) runUntil(end);
    else setImmediate(begin);
  };
  return ({ namespace, key }, work) => {
    if (!isDue) setImmediate(begin);
    isDue = true;
    const keys = waiting.get(namespace) ?? new Map<string, Array<() => void>>();
    const works = keys.get(key) ?? [];
    works.push(work);
    keys.set(key, works);
    waiting.set(namespace, keys);
  };
}

/** The next work. Its key and its namespace become the last ones. */
function takeNext(waiting: WorkQueues): (() => void) | undefined {
  for (const [namespace, keys] of waiting) {
    waiting.delete(namespace);
    for (const [key, [work, ...later]] of keys) {
      keys.delete(key);
      if (later.length > 0) keys.set(key, later);
      if (keys.size > 0) waiting.set(namespace, keys);
      return work;
    }
  }
  return undefined;
}
