// Maintenance of a store in the gateway's own memory: no resync of reconcile reaches it.
import { type FailureContext, logFailure } from '#core/ledger/failures.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

/** As often as reconcile resyncs. */
const EVERY: Millis = 60_000;

/**
 * Maintains once a minute until stopped; what failed is tried again in the next minute, and one that lasts longer is
 * not overtaken.
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
