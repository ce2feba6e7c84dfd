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
 * its instructions stay in the processor's cache (docs/bench.md). A single request waits for nothing. `thrown`:
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

/** Runs the work in a turn of the event loop that no other such work has. */
export type OwnedTurn = (of: TurnOwner, work: () => void) => void;

/** Works that wait, by namespace and key. The first of each is the next. */
type WorkQueues = Map<string, Map<string, Array<() => void>>>;

/**
 * For works that take long: between two of them everything else that has arrived is handled. Namespaces take turns, and
 * so do the keys of each; works of one key run in order.
 */
export function createOneATurn(): OwnedTurn {
  const waiting: WorkQueues = new Map();
  const run = () => {
    const work = takeNext(waiting);
    if (waiting.size > 0) setImmediate(run);
    work?.();
  };
  return ({ namespace, key }, work) => {
    if (waiting.size === 0) setImmediate(run);
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
