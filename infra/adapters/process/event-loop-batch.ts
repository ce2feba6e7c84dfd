// Turns of the event loop: what arrives in one is handled together, behind the reading of all sockets.
import type { TurnOwner } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';

/**
 * The time of the works in one turn; the rest follows in the next. A server takes one new connection between two turns, so
 * turns are short however many requests have arrived.
 */
const MAX_TURN: Millis = 5;

/** Runs the work behind the present reading of sockets, in order. An error of one keeps no other from running. */
export type Turn = (work: () => void) => void;

/**
 * One for each kind of work. The same step of many requests in a row costs far less than each request's steps in a row:
 * its instructions stay in the processor's cache (docs/internals/bench.md). A single request waits for nothing. `thrown`:
 * receives the error of a work, a bug.
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

/** An error that nobody handles ends the process, unless it says otherwise: the other works of the turn come first. */
function throwAlone(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

/** Runs work that blocks everything else, in the turn of its owner. */
export type OwnedTurn = (of: TurnOwner, work: () => void) => void;

/** Works that wait, by namespace and key. The first of each is the next. */
type WorkQueues = Map<string, Map<string, Array<() => void>>>;

/**
 * For works that take long, and for those that take long together: one at a time, several short ones in one turn, and
 * between two turns everything else that has arrived is handled. Namespaces take turns, and so do the keys of each;
 * works of one key run in order.
 */
export function createOwnedTurn(): OwnedTurn {
  const waiting: WorkQueues = new Map();
  let isDue = false;
  const begin = () => runUntil(performance.now() + MAX_TURN);
  const runUntil = (end: Millis): void => {
    const work = takeNext(waiting);
    isDue = work !== undefined;
    // A work may only resolve a promise: what waits for that has run before the next tick.
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

/** The next work. Its key and its namespace go behind all others. */
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
