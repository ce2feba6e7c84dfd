// What keeps a hold alive while its request is? A beat every second: what was streamed goes to the outbox, leases are renewed every 15 s.
import type { Clock, Log } from '../ports/clock.ts';
import type { Millis } from '../ports/money.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Timer } from '../ports/platform.ts';
import type { Batch } from './batch.ts';
import type { Live, Lives } from './lives.ts';
import { LEASE } from './take.ts';

export interface LeaseDependencies {
  readonly lives: Lives;
  readonly batch: Batch;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Log;
  readonly onBeat: () => void;
}

const BEAT: Millis = 1000;
const RENEW: Millis = 15_000;
/** No request lives longer (upstream.ts sees to it): whoever forgot to end its hold does not keep the headroom. */
export const LONGEST: Millis = 3_600_000;

/** Beats from now on. Answers how to stop. */
export function keepLeases(deps: LeaseDependencies): () => void {
  let renewed = deps.clock.now();
  let cancel = (): void => undefined;

  const beat = (): void => {
    const now = deps.clock.now();
    const open = [...deps.lives.values()].filter((live) => live.ending === undefined && now - live.since < LONGEST);
    for (const live of open) writeProgress(deps, live);
    if (now - renewed >= RENEW || now < renewed) {
      renewed = now;
      // One record in the store per hold: the lease starts anew, with what is known now.
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

/** Whoever spends from a hold of before then may not go on: its lease may have ended, and others have what it left. */
export function tellLost(lives: Lives, since: Millis): void {
  for (const live of [...lives.values()]) {
    const { lost } = live;
    if (lost === undefined || live.since > since) continue;
    live.lost = undefined;
    lost();
  }
}

function writeProgress({ outbox, log }: LeaseDependencies, live: Live): void {
  const { id, written } = live;
  const known = live.known?.();
  if (known === undefined || known === written) return;
  live.written = known;
  outbox
    .append({ type: 'progress', id, known })
    .catch((error) => log.warn('the outbox misses progress', { id, error: String(error) }));
}
