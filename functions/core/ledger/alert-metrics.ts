// Prometheus counters of the ledger that alerts use. They begin with 0.
import type { Metrics } from '../ports/telemetry.ts';

const COUNTERS: ReadonlyArray<string> = [
  'gateway_operator_ledger_rejected_total',
  'gateway_operator_ledger_audit_differences_total',
  'gateway_operator_ledger_rebuilds_total',
  'gateway_operator_ledger_overruns_total',
];

/**
 * Begins the counters with 0. A series that appears with its first count has never increased for Prometheus, so its
 * alert would miss that count.
 */
export function beginAlertMetrics(metrics: Pick<Metrics, 'add'>): void {
  for (const name of COUNTERS) metrics.add(name, {}, 0);
}
