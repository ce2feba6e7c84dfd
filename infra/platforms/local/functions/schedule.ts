// The local schedule: a resync every few seconds, as PingSource does on Knative and a CronJob on Kubernetes.
import type { StartContext } from '../start.ts';

/** Milliseconds that a resync may take. */
const MAX_RESYNC = 60_000;

/** Resyncs do not overlap, even if one takes longer than the interval. `stop` also ends a running resync. */
export function startSchedule({ options, log }: Pick<StartContext, 'options' | 'log'>, reconcile: string) {
  const stopping = new AbortController();
  /** Throws if the reconciler does not reply with 200. */
  const resync = async () => {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(MAX_RESYNC)]);
    const answer = await fetch(reconcile, { method: 'POST', signal });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`reconcile answered ${answer.status}: ${text}`);
  };
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= resync()
      .catch((error: unknown) => log.warn('resync failed', { error: String(error) }))
      .finally(() => {
        running = undefined;
      });
  }, options.schedule * 1000);
  return {
    resync,
    stop: async () => {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}
