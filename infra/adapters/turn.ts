// Turns of the event loop: what arrives in one is handled together, behind the reading of all sockets.

/** Runs the work behind the present reading of sockets, in order. The work must not throw. */
export type Turn = (work: () => void) => void;

/**
 * One for each kind of work. The same step of many requests in a row costs far less than each request's steps in a row: its
 * instructions stay in the processor's cache (docs/bench.md). A single request waits for nothing.
 */
export function createTurn(): Turn {
  let waiting: Array<() => void> = [];
  const run = () => {
    const works = waiting;
    waiting = [];
    for (const work of works) work();
  };
  return (work) => {
    if (waiting.push(work) === 1) setImmediate(run);
  };
}
