// The record of a finished review: one log line, metrics, and the trigger of the reconciler. Never the object.
import type { Log, Metrics } from '#core/ports/telemetry.ts';
import type { ReviewRecord, Trigger } from '../../../functions/admission/app.ts';

export interface RecordDependencies {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Sends a trigger to the reconciler. After a lost trigger, the next resync does the work. */
  readonly trigger?: ((trigger: Trigger) => Promise<void>) | undefined;
}

/**
 * The log line, metrics and trigger of each review. The promise is the trigger's: the response does not wait for it.
 */
export function createReviewRecord({ log, metrics, trigger: sendTrigger }: RecordDependencies) {
  return async ({ verb, millis, result, request, decision, error, trigger }: ReviewRecord): Promise<void> => {
    const kind = decision === undefined ? (result === 'malformed' ? '' : 'other') : (request?.kind.kind ?? '');
    metrics.add('gateway_operator_admission_reviews_total', { verb, kind, result });
    if (request !== undefined) metrics.observe('gateway_operator_admission_seconds', millis / 1000, { verb });
    const rules = [...new Set((decision?.refused ?? []).map(({ rule }) => rule))];
    for (const rule of rules) metrics.add('gateway_operator_admission_refusals_total', { rule });
    const { uid, namespace, name, operation, userInfo, dryRun = false } = request ?? {};
    const line = { verb, uid, kind: request?.kind.kind, namespace, name, operation, user: userInfo?.username, dryRun };
    if (result === 'failed') log.error('admission failed', { ...line, millis, error });
    else if (request !== undefined) log.info('admission', { ...line, millis, allowed: result === 'allowed', rules });
    if (trigger !== undefined)
      await sendTrigger?.(trigger).catch((cause: unknown) =>
        log.warn('cannot send a trigger; the next resync finds the change', { error: String(cause) }),
      );
  };
}
