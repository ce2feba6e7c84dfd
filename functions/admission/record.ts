// The record of a review: one log line at its end, and what the metrics count. Never the object.
import type { Log, Metrics } from '#core/ports/clock.ts';
import type { Handled } from './handle.ts';
import type { Verb } from './review.ts';

export interface RecordDeps {
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Called once for each review, when it is answered. */
export function createRecord({ log, metrics }: RecordDeps) {
  return (verb: Verb, { result, request, decision, error }: Handled, millis: number): void => {
    const kind = decision === undefined ? (result === 'malformed' ? '' : 'other') : (request?.kind.kind ?? '');
    metrics.add('gateway_operator_admission_reviews_total', { verb, kind, result });
    if (request === undefined) {
      if (result === 'failed') log.error(FAILED, { verb, error });
      return;
    }
    metrics.observe('gateway_operator_admission_seconds', millis / 1000, { verb });
    const rules = [...new Set((decision?.refused ?? []).map(({ rule }) => rule))];
    for (const rule of rules) metrics.add('gateway_operator_admission_refusals_total', { rule });
    const { uid, namespace, name, operation, userInfo, dryRun } = request;
    const line = { verb, uid, kind: request.kind.kind, namespace, name, operation, user: userInfo?.username };
    const fields = { ...line, dryRun: dryRun === true, millis };
    if (result === 'failed') log.error(FAILED, { ...fields, error });
    else log.info('admission', { ...fields, allowed: result === 'allowed', rules });
  };
}

const FAILED = 'admission failed';
