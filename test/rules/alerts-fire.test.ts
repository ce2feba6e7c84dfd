// Alerts that fire: one bad scene raises each, in Prometheus' own rule tests, on series as the functions expose them.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '#adapters/metrics.ts';
import { beginCounters } from '#core/ledger/alerted.ts';
import type { Metrics } from '#core/ports/clock.ts';
import { beginCertificateCounters } from '../../functions/reconcile/certificates/keep.ts';
import { testUnless } from '../skip-unless.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { ROOT } from './imports.ts';

const AGE = 'gateway_operator_ledger_unbooked_age_seconds';
const EXPIRY = 'gateway_operator_certificate_expiry_timestamp_seconds';
const DAY = 86_400;

/** Metrics of a function that has just started, and of one where all is well. Prometheus' rule tests begin at 1970. */
function createFresh(): Metrics {
  const metrics = createMetrics();
  beginCounters(metrics);
  beginCertificateCounters(metrics);
  metrics.set(AGE, 0, { instance: 'u' });
  metrics.set(EXPIRY, 365 * DAY);
  return metrics;
}

/** The bad scene of each alert, as the function counts it. */
const SCENES: Readonly<Record<string, (metrics: Metrics) => void>> = {
  GatewayLedgerBehind: (metrics) => metrics.set(AGE, 11, { instance: 'u' }),
  GatewayLedgerEntryRejected: (metrics) => metrics.add('gateway_operator_ledger_rejected_total', {}, 1),
  GatewayLedgerAuditDifference: (metrics) => metrics.add('gateway_operator_ledger_audit_differences_total'),
  GatewayStoreRebuilt: (metrics) => metrics.add('gateway_operator_ledger_rebuilds_total', {}, 2),
  GatewayChargedBeyondHolds: (metrics) => metrics.add('gateway_operator_ledger_overruns_total'),
  GatewayAdmissionCertificateEnds: (metrics) => metrics.set(EXPIRY, 20 * DAY),
  GatewayAdmissionCertificateFails: (metrics) =>
    metrics.add('gateway_operator_certificate_actions_total', { action: 'Keep', outcome: 'failed' }, 5),
};

interface Rules {
  readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<{ readonly alert: string; readonly expr: string }> }>;
}
const { spec } = parse(readFileSync(join(ROOT, 'infra/kubernetes/alerts.yaml'), 'utf8')) as { readonly spec: Rules };
const rules = spec.groups.flatMap((group) => group.rules);

const linesOf = (metrics: Metrics) =>
  metrics
    .render()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line): [string, string] => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]);

test('each alert has its scene, whose series a function that has just started already exposes', () => {
  expect(Object.keys(SCENES)).toEqual(rules.map(({ alert }) => alert));
  const first = linesOf(createFresh()).map(([series]) => series);
  for (const [alert, play] of Object.entries(SCENES)) {
    const metrics = createFresh();
    play(metrics);
    // A counter that appears with its first count has never increased.
    expect(
      linesOf(metrics).map(([series]) => series),
      alert,
    ).toEqual(first);
  }
});

/** Minutes in which all is well, and after which it is not. */
const GOOD = 20;

/** A rule test: all is well, then the scene happens, and five minutes later the alert fires. It did not before. */
function toRuleTest(alert: string): object {
  const metrics = createFresh();
  SCENES[alert]?.(metrics);
  const after = new Map(linesOf(metrics));
  const firing = { expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})` };
  return {
    interval: '1m',
    input_series: linesOf(createFresh()).map(([series, value]) => ({
      series,
      values: `${value}x${GOOD} ${after.get(series)}x${GOOD}`,
    })),
    promql_expr_test: [
      { ...firing, eval_time: `${GOOD}m`, exp_samples: [] },
      { ...firing, eval_time: `${GOOD + 6}m`, exp_samples: [{ labels: '{}', value: 1 }] },
    ],
  };
}

const whyNoPromtool = process.env.PROMTOOL
  ? undefined
  : 'PROMTOOL names no promtool (it is in Debian’s package prometheus)';

testUnless(whyNoPromtool, 'one bad scene raises each alert, and nothing raises it before', () => {
  const folder = temporaryFolder();
  const write = (name: string, content: object) => writeFileSync(join(folder, name), JSON.stringify(content));
  write('rules.json', spec);
  write('tests.json', {
    rule_files: ['rules.json'],
    evaluation_interval: '1m',
    tests: rules.map(({ alert }) => toRuleTest(alert)),
  });
  const run = () => execFileSync(process.env.PROMTOOL ?? '', ['test', 'rules', join(folder, 'tests.json')]);
  expect(run).not.toThrow();
});
