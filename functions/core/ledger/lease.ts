// Leases of live holds: progress goes to the outbox every second, leases are renewed every 15 s.
import type { Millis } from '../ports/money.ts';
import type { Batch } from './batch.ts';
import type { LedgerDependencies } from './deps.ts';
import { LEASE, type LiveHold, type LiveHolds } from './live-holds.ts';

export interface LeaseDependencies extends Pick<LedgerDependencies, 'outbox' | 'clock' | 'timer' | 'log'> {
  readonly liveHolds: LiveHolds;
  readonly batch: Batch;
  readonly onBeat: () => void;
}

const BEAT: Millis = 1000;
const RENEW: Millis = 15_000;
/** The longest request (upstream.ts enforces this): a hold that is never ended does not keep headroom for longer. */
export const MAX_REQUEST: Millis = 3_600_000;

/** Starts the heartbeat of leases. Returns a function that stops it. */
export function keepLeases(deps: LeaseDependencies): () => void {
  let renewed = deps.clock.now();
  let cancel = (): void => undefined;

  const beat = (): void => {
    const now = deps.clock.now();
    const open = [...deps.liveHolds.values()].filter(
      (live) => live.ending === undefined && now - live.since < MAX_REQUEST,
    );
    for (const live of open) writeProgress(deps, live);
    if (now - renewed >= RENEW || now < renewed) {
      renewed = now;
      // A renewal restarts the lease and records the cost known so far.
      for (const { id, known } of open) {
        deps.batch.renew(known === undefined ? { id, lease: LEASE } : { id, known: known(), lease: LEASE });
      }
    }
    deps.onBeat();
    cancel = deps.timer(BEAT, beat);
  };

  cancel = deps.timer(BEAT, beat);
  return () => cancel();
}

/** Stops spending from holds taken before `since`: their leases may have ended, and other requests may hold the money. */
export function reportLost(liveHolds: LiveHolds, since: Millis): void {
  for (const live of [...liveHolds.values()]) {
    const { lost } = live;
    if (lost === undefined || live.since > since) continue;
    live.lost = undefined;
    lost();
  }
}

function writeProgress({ outbox, log }: LeaseDependencies, live: LiveHold): void {
  const { id, written } = live;
  const known = live.known?.();
  if (known === undefined || known === written) return;
  live.written = known;
  outbox
    .append({ type: 'progress', id, known })
    .catch((error) => log.warn('the outbox misses progress', { id, error: String(error) }));
}
