// One generous time limit for promises of seconds, on real servers. Unit tests hold the milliseconds, on manual time.

/** The limit. A missed one waits for a system's own timeout, which takes minutes. */
const BOUND = 5_000;

/** The outcome of the work; fails when there is none within the limit. */
export async function inTime<T>(work: Promise<T>, bound = BOUND): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${bound} ms`)), bound);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
