// One generous bound for a promise of seconds, on real servers. How long it takes to the millisecond is held on manual time, beside the code.

/** What is not in time is waiting for a system's own time-out, which comes after minutes. */
const BOUND = 5_000;

/** The work's own outcome; fails where there is none within the bound. */
export async function inTime<T>(work: Promise<T>, bound = BOUND): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${bound} ms`)), bound);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
