// The resync of a reconciler that has just started: after an installation, an upgrade and a rollback nothing waits for
// the schedule.

import { reasonOf } from '#core/failure/error-text.ts';
import type { Log } from '#core/ports/telemetry.ts';
import { type ResyncDependencies, resyncUntilDone } from './resync.ts';
import { readReport } from './trigger.ts';

export interface StartDependencies extends Pick<ResyncDependencies, 'now' | 'pause'> {
  /** The reconciler of this process. */
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly log: Log;
}

/**
 * Runs resyncs until nothing is under way and the admission webhook is reachable, for 50 s; then the schedule
 * continues. Never rejects.
 */
export async function resyncAtStart({ fetch, log, now, pause }: StartDependencies): Promise<void> {
  const ask = async () => {
    const reply = await fetch(new Request('http://reconcile/', { method: 'POST' }));
    const text = await reply.text();
    if (!reply.ok) throw new Error(text);
    return text;
  };
  // An installer may create the webhook configurations after the Pod of the reconciler.
  const isDone = (report: string) => !readReport(report).underWay && isReachable(report);
  await resyncUntilDone({ ask, now, pause, isDone }).catch((error) =>
    log.warn('the resync at the start failed; the schedule repeats it', { why: reasonOf(error) }),
  );
}

interface Report {
  readonly certificate?: { readonly failed?: string; readonly missing?: ReadonlyArray<string> };
}

function isReachable(report: string): boolean {
  // Of this process.
  const { certificate: { failed, missing } = {} } = JSON.parse(report) as Report;
  return failed === undefined && missing === undefined;
}
