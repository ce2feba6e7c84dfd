// Alerts that fire: one bad scenario raises each, in Prometheus' own rule tests, on series as the functions expose them,
// and names what it is about.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { beginAlertMetrics } from '#core/ledger/alert-metrics.ts';
import type { Metrics } from '#core/ports/telemetry.ts';
import { beginCertificateCounters } from '../../functions/reconcile/certificates/renewal.ts';
import { metricsOf } from '../../infra/runtime/node/metrics.ts';
import { ROOT } from '../../infra/tools/imports.ts';
import { testUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const AGE = 'gateway_operator_ledger_unbooked_age_seconds';
const EXPIRY = 'gateway_operator_certificate_expiry_timestamp_seconds';
const RESYNC = 'gateway_operator_reconcile_last_resync_timestamp_seconds';
const SPEND = 'gateway_operator_team_spend_dollars';
const REQUESTS = 'gateway_operator_requests_total';
const DAY = 86_400;

/** Metrics of a function that has just started, and of one where all is well. Prometheus' rule tests begin at 1970. */
function createFresh() {
  const metrics = createMetrics();
  const ledger = metricsOf(metrics, { namespace: 'team-a', name: 'llm' });
  beginAlertMetrics(ledger);
  beginCertificateCounters(metrics);
  ledger.set(AGE, 0);
  metrics.set(EXPIRY, 365 * DAY);
  metrics.set(RESYNC, 1800);
  return { metrics, ledger };
}

type Pages = ReturnType<typeof createMetrics>;

type Play = (parts: { readonly metrics: Metrics; readonly ledger: Metrics }) => void;

interface Scenario {
  /** What has happened while all was well. Absent: nothing; the series exist from the start. */
  readonly earlier?: Play;
  readonly play: Play;
  /** What a person has to look at. */
  readonly object: string;
  /** As the text has it. */
  readonly value?: string;
}
const INSTANCE = 'GatewayInstance team-a/llm';
const CERTIFICATE = 'Secret of-the-pod/admission-tls';
const MODEL = { route: '/chat/completions', model: 'gpt' };
const TEAM = { team_namespace: 'team-a', team: 'research' };

const served = (code: string, count: number): Play => {
  const status = code === 'complete' ? '200' : '503';
  return ({ ledger }) => ledger.add(REQUESTS, { ...MODEL, status, code }, count);
};
const begun = (seconds: number): Play => {
  return ({ ledger }) => ledger.observe('gateway_operator_first_byte_seconds', seconds, MODEL);
};

/** As the API server counts what it could not ask. */
const REJECTIONS = 'apiserver_admission_webhook_rejection_count';
const REJECTION = {
  ...{ name: 'validate.gateway-operator.dev', type: 'validating', operation: 'CREATE' },
  ...{ error_type: 'calling_webhook_error', rejection_code: '0' },
};

/** The bad scenario of each alert, as the function counts it. */
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  GatewayLedgerBehind: { play: ({ ledger }) => ledger.set(AGE, 11), object: INSTANCE, value: '11s' },
  GatewayLedgerEntryRejected: {
    play: ({ ledger }) => ledger.add('gateway_operator_ledger_rejected_total', {}, 1),
    object: INSTANCE,
  },
  GatewayLedgerAuditDifference: {
    play: ({ ledger }) => ledger.add('gateway_operator_ledger_audit_differences_total'),
    object: INSTANCE,
  },
  GatewayStoreRebuilt: {
    play: ({ ledger }) => ledger.add('gateway_operator_ledger_rebuilds_total', {}, 2),
    object: INSTANCE,
  },
  GatewayChargedBeyondReservations: {
    play: ({ ledger }) => ledger.add('gateway_operator_ledger_overruns_total'),
    object: INSTANCE,
  },
  GatewayAdmissionCertificateEnds: {
    play: ({ metrics }) => metrics.set(EXPIRY, 20 * DAY),
    object: CERTIFICATE,
    value: '19d 23h 34m 0s',
  },
  GatewayAdmissionCertificateFails: {
    play: ({ metrics }) =>
      metrics.add('gateway_operator_certificate_actions_total', { action: 'Keep', outcome: 'failed' }, 5),
    object: CERTIFICATE,
  },
  GatewayErrors: {
    earlier: (parts) => [served('complete', 100), served('upstream_error', 1)].map((play) => play(parts)),
    play: served('upstream_error', 10),
    object: `${INSTANCE}: more than 5% of the requests for model gpt`,
  },
  GatewaySlowFirstByte: { earlier: begun(1), play: begun(50), object: `${INSTANCE}: streams of model gpt` },
  GatewayNoTarget: {
    earlier: served('no_healthy_target', 1),
    play: served('no_healthy_target', 2),
    object: INSTANCE,
  },
  GatewayTeamBudgetNearEnd: {
    earlier: ({ metrics }) => {
      metrics.set(SPEND, 10, TEAM);
      metrics.set('gateway_operator_team_budget_dollars', 100, TEAM);
    },
    play: ({ metrics }) => metrics.set(SPEND, 95, TEAM),
    object: 'Team team-a/research',
    value: '95',
  },
  GatewayResyncOverdue: {
    play: ({ metrics }) => metrics.set(RESYNC, 0),
    object: 'Reconciler of-the-pod/pod-of-the-function',
    value: '26m 0s',
  },
  GatewayAdmissionUnreachable: {
    earlier: ({ metrics }) => metrics.add(REJECTIONS, REJECTION),
    play: ({ metrics }) => metrics.add(REJECTIONS, REJECTION, 3),
    object: 'Webhook validate.gateway-operator.dev',
  },
};

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}
interface Rules {
  readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }>;
}
const { spec } = parse(readFileSync(join(ROOT, 'infra/platforms/kubernetes/alerts.yaml'), 'utf8')) as {
  readonly spec: Rules;
};
const rules = spec.groups.flatMap((group) => group.rules);

/** Labels that a PodMonitor gives to each series of a Pod. */
const TARGET = { namespace: 'of-the-pod', pod: 'pod-of-the-function', instance: '10.244.0.7:9464', job: 'gateways' };
const labelsOf = (series: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...series.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
const scraped = (series: string): string => {
  const labels = Object.entries({ ...labelsOf(series), ...TARGET }).map(([name, value]) => `${name}="${value}"`);
  return `${series.split('{', 1)[0]}{${labels.join(',')}}`;
};

const linesOf = async (metrics: Pages) =>
  (await metrics.render())
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line): [string, string] => [line.slice(0, line.lastIndexOf(' ')), line.slice(line.lastIndexOf(' ') + 1)]);

test('each alert has its scenario, whose series a function that has just started already exposes', async () => {
  expect(Object.keys(SCENARIOS)).toEqual(rules.map(({ alert }) => alert));
  const first = (await linesOf(createFresh().metrics)).map(([series]) => series);
  for (const [alert, { earlier, play }] of Object.entries(SCENARIOS)) {
    // Labels of requests and of Teams are known with the first one.
    if (earlier !== undefined) continue;
    const parts = createFresh();
    play(parts);
    // A counter that appears with its first count has never increased.
    expect(
      (await linesOf(parts.metrics)).map(([series]) => series),
      alert,
    ).toEqual(first);
  }
});

/** Minutes in which all is well, and after which it is not. */
const GOOD = 20;

/** The annotations of a rule as a person reads them. */
function toText({ annotations }: Rule, labels: Readonly<Record<string, string>>, value = ''): Rule['annotations'] {
  const text = (template: string) =>
    template
      .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, name) => labels[name] ?? '')
      .replaceAll(/\{\{ \$value \| humanize(Duration)? \}\}/g, value);
  return Object.fromEntries(Object.entries(annotations).map(([name, template]) => [name, text(template)]));
}

/** Labels that the expression keeps of a series: all, or those that it sums by. */
function labelsAfter({ expr }: Rule, labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const [, names] = /sum by \(([^)]*)\)/.exec(expr) ?? [];
  const kept = names?.split(', ').filter((name) => name !== 'le');
  return Object.fromEntries(Object.entries(labels).filter(([name]) => kept?.includes(name) ?? true));
}

/**
 * What the alert says of its scenario: the labels of the series that the scenario changes, and the rendered annotations.
 */
async function toExpected(rule: Rule) {
  const { earlier, play, value } = SCENARIOS[rule.alert] ?? expect.fail(`${rule.alert} has no scenario`);
  const parts = createFresh();
  earlier?.(parts);
  const before = new Map(await linesOf(parts.metrics));
  play(parts);
  const after = await linesOf(parts.metrics);
  const changed = after.filter(([series, number]) => before.get(series) !== number).map(([series]) => series);
  const results = changed.map((series) => labelsAfter(rule, { ...labelsOf(series), ...TARGET }));
  expect(new Set(results.map((one) => JSON.stringify(one))).size).toBe(1);
  const labels = results[0] ?? {};
  return { before, after: new Map(after), labels, annotations: toText(rule, labels, value) };
}

test.each(rules)('$alert names the object, and the Pod with its namespace', async (rule) => {
  const { summary, description = '' } = (await toExpected(rule)).annotations;
  expect(summary).toContain(SCENARIOS[rule.alert]?.object);
  // The API server knows no Pod.
  const isOurs = rule.expr.includes('gateway_operator_');
  expect(`${summary} ${description}`.includes(TARGET.namespace)).toBe(isOurs);
  expect(`${summary} ${description}`.includes(TARGET.pod)).toBe(isOurs);
  expect(`${summary} ${description}`).not.toMatch(/\{\{|undefined/);
});

/** A rule test: all is well, then the scenario happens, and five minutes later the alert fires. It did not before. */
async function toRuleTest(rule: Rule): Promise<object> {
  const { before, after, labels, annotations } = await toExpected(rule);
  const firing = { exp_labels: { ...labels, ...rule.labels }, exp_annotations: annotations };
  return {
    interval: '1m',
    input_series: [...before].map(([series, value]) => ({
      series: scraped(series),
      values: `${value}x${GOOD} ${after.get(series)}x${GOOD}`,
    })),
    alert_rule_test: [
      { alertname: rule.alert, eval_time: `${GOOD}m`, exp_alerts: [] },
      { alertname: rule.alert, eval_time: `${GOOD + 6}m`, exp_alerts: [firing] },
    ],
  };
}

const whyNoPromtool = process.env.PROMTOOL
  ? undefined
  : 'PROMTOOL names no promtool (it is in Debian’s package prometheus)';

testUnless(
  whyNoPromtool,
  'one bad scenario raises each alert with its text, and nothing raises it before',
  async () => {
    const folder = temporaryFolder();
    const write = (name: string, content: object) => writeFileSync(join(folder, name), JSON.stringify(content));
    write('rules.json', spec);
    write('tests.json', {
      rule_files: ['rules.json'],
      evaluation_interval: '1m',
      tests: await Promise.all(rules.map(toRuleTest)),
    });
    const run = () => execFileSync(process.env.PROMTOOL ?? '', ['test', 'rules', join(folder, 'tests.json')]);
    expect(run).not.toThrow();
  },
);
