// The timeouts that adapters of the ledger's ports have, for doubles whose answers may never come.
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';
import { withTimeout } from '../../functions/core/concurrency/timeout.ts';

const TIMEOUT: Millis = 2000;
const BOOKING_TIMEOUT: Millis = 5000;

/** The double, whose methods reject after the timeout, and when they throw. */
export function withTimeouts<Part extends object>(timer: Timer, whom: string, part: Part): Part {
  return new Proxy(part, {
    get(_, name) {
      const method: unknown = Reflect.get(part, name);
      if (typeof method !== 'function') return method;
      const millis = name === 'bookBatch' ? BOOKING_TIMEOUT : TIMEOUT;
      const answer = async (args: unknown[]): Promise<unknown> => Reflect.apply(method, part, args);
      return (...args: unknown[]) => withTimeout(timer, millis, whom, answer(args));
    },
  });
}
