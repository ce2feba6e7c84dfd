// Turns of the event loop: what arrives in one is handled together, behind the reading of all sockets.

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
    for (const work of works) {
      try {
        work();
      } catch (error) {
        thrown(error);
      }
    }
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

/**
 * Runs one work in a turn of the event loop, in order: for works that take long. Between two of them everything else
 * that has arrived is handled.
 */
export function createOneATurn(): Turn {
  const waiting: Array<() => void> = [];
  const run = () => {
    const work = waiting.shift();
    if (waiting.length > 0) setImmediate(run);
    work?.();
  };
  return (work) => {
    if (waiting.push(work) === 1) setImmediate(run);
  };
}
