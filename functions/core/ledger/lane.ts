// What if two pieces of work must not overlap? They go one after the other, in the order in which they came.

/** Answers what the work answers; a failure does not stop those behind it. */
export type Lane = <T>(work: () => Promise<T>) => Promise<T>;

export function createLane(): Lane {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work, work);
    last = done;
    return done;
  };
}
