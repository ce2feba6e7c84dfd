// Alerts that fire: one bad scenario raises each, in Prometheus' own rule tests, on series as the functions expose them,
// and names what it is about.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { beginCounters } from '#core/ledger/alert-metrics.ts';
import type { Metrics } from '#core/ports/clock.ts';
import { beginCertificateCounters } from '../../functions/reconcile/certificates/renewal.ts';
import { metricsOf } from '../../infra/runtime/node/metrics.ts';
import { ROOT } from '../../infra/tools/imports.ts';
import { testUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const AGE = 'gateway_operator_ledger_unbooked_age_seconds';
const EXPIRY = 'gateway_operator_certificate_expiry_timestamp_seconds';
const DAY = 86_400;

/** Metrics of a function that has just started, and of one where all is well. Prometheus' rule tests begin at 1970. */
function createFresh() {
  const metrics = createMetrics();
  const ledger = metricsOf(metrics, { namespace: 'team-a', name: 'llm' });
  beginCounters(ledger);
  beginCertificateCounters(metrics);
  ledger.set(AGE, 0);
  metrics.set(EXPIRY, 365 * DAY);
  return { metrics, ledger };
}

type Pages = ReturnType<typeof createMetrics>;

interface Scenario {
  readonly play: (parts: { readonly metrics: Metrics; readonly ledger: Metrics }) => void;
  /** What a person has to look at. */
  readonly object: 'GatewayInstance team-a/llm' | 'Secret of-the-pod/admission-tls';
  /** As the text has it. */
  readonly value?: string;
}
const INSTANCE = 'GatewayInstance team-a/llm';
const CERTIFICATE = 'Secret of-the-pod/admission-tls';

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
  for (const [alert, { play }] of Object.entries(SCENARIOS)) {
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
      .replaceAll('{{ $value | humanizeDuration }}', value);
  return Object.fromEntries(Object.entries(annotations).map(([name, template]) => [name, text(template)]));
}

/**
 * What the alert says of its scenario: the labels of the one series that the scenario changes, and the rendered annotations.
 */
async function toExpected(rule: Rule) {
  const [parts, before] = [createFresh(), new Map(await linesOf(createFresh().metrics))];
  const { play, value } = SCENARIOS[rule.alert] ?? expect.fail(`${rule.alert} has no scenario`);
  play(parts);
  const after = await linesOf(parts.metrics);
  const changed = after.filter(([series, number]) => before.get(series) !== number).map(([series]) => series);
  expect(changed).toHaveLength(1);
  const labels = { ...labelsOf(changed[0] ?? ''), ...TARGET };
  return { before, after: new Map(after), labels, annotations: toText(rule, labels, value) };
}

test.each(rules)('$alert names the object, and the Pod with its namespace', async (rule) => {
  const { summary, description = '' } = (await toExpected(rule)).annotations;
  expect(summary).toContain(SCENARIOS[rule.alert]?.object);
  expect(`${summary} ${description}`).toContain(TARGET.namespace);
  expect(description).toContain(TARGET.pod);
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
