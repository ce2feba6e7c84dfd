// Maintenance of a counter store in the memory of a gateway, which no resync of the reconciler reaches.
import { type FailureContext, logFailure } from '#core/ledger/failures.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

/** The same interval as between resyncs of the reconciler. */
const EVERY: Millis = 60_000;

/**
 * Maintains the store once a minute until it is stopped. A failure is repeated in the next minute, and no two runs
 * overlap.
 */
export function keepMaintained(
  maintain: () => Promise<void>,
  parts: FailureContext & { readonly timer: Timer },
): () => void {
  let isRunning = false;
  const run = async () => {
    cancel = parts.timer(EVERY, run);
    if (isRunning) return;
    isRunning = true;
    await maintain().catch((error) => logFailure(parts, 'maintenance', error));
    isRunning = false;
  };
  let cancel = parts.timer(EVERY, run);
  return () => cancel();
}
