// Maintenance of a store in the gateway's own memory: no sweep of reconcile reaches it.
import type { Log } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';
import { reasonAndCausesOf } from '#core/reason.ts';

/** As often as reconcile sweeps. */
const EVERY: Millis = 60_000;

/** Maintains once a minute until stopped; what failed is tried again in the next minute. */
export function keepMaintained(maintain: () => Promise<void>, { timer, log }: { timer: Timer; log: Log }): () => void {
  let cancel = () => {};
  let isOver = false;
  const next = () => {
    if (!isOver) cancel = timer(EVERY, run);
  };
  const run = () => {
    maintain()
      .catch((error) => log.warn('the store could not be audited', { why: reasonAndCausesOf(error) }))
      .finally(next);
  };
  next();
  return () => {
    isOver = true;
    cancel();
  };
}
