// What do logs and metrics say of a run?
import type { Millis } from '#core/ports/money.ts';
import { kinds } from '#crds/kinds.ts';
import type { ReconcileDeps } from './deps.ts';
import type { PartOutcome, Report } from './report.ts';

/** One line for a run that did something, in the domain's words; metrics always. */
export function logRun({ log, metrics }: ReconcileDeps, report: Report, millis: Millis): void {
  metrics.observe('gateway_operator_reconcile_duration_seconds', millis / 1000);
  for (const [kind, count] of Object.entries(report.observed))
    metrics.set('gateway_operator_reconcile_observed', count, { kind });
  for (const guarded of report.guarded ?? []) {
    log.warn('deletions are guarded: a run would remove more than is plausible', { ...guarded });
    metrics.add('gateway_operator_reconcile_guarded_deletions_total', { action: guarded.action });
  }
  const quiet = Object.keys(report.actions).length + Object.keys(report.failed).length === 0;
  if (!quiet) log.info('reconciled', { ...report, millis });
}

/** Which objects are not as they should be, by kind, and how many keys were not looked at yet. None is 0: an alert needs a number that comes back. */
export function measureBehind({ metrics }: ReconcileDeps, parts: ReadonlyArray<PartOutcome>): void {
  for (const { kind } of kinds) {
    const oldest = parts.reduce((most, { unconverged }) => Math.max(most, unconverged[kind]), 0);
    metrics.set('gateway_operator_reconcile_oldest_unconverged_seconds', oldest / 1000, { kind });
  }
  const later = parts.reduce((sum, part) => sum + part.later, 0);
  metrics.set('gateway_operator_reconcile_later', later, { kind: 'VirtualKey' });
}
