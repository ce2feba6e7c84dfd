// How long may something take at most? Its answer, or an error when the time is over; what it does then nobody waits for.
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export async function within<T>(timer: Timer, limit: Millis, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const cancel = timer(limit, () => reject(new Error(`no answer within ${limit / 1000} s`)));
  work.catch(() => undefined);
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}
