// Metrics that alert rules, the dashboard and docs name: each is counted.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { MAX_UNBOOKED_AGE } from '#core/ledger/booking.ts';
import { METRICS } from '#core/ports/metric-table.ts';
import { LIFETIMES } from '../../functions/reconcile/certificates/renewal.ts';

const root = join(import.meta.dirname, '../..');
const alerts = readFileSync(join(root, 'infra/platforms/kubernetes/alerts.yaml'), 'utf8');
const dashboard = readFileSync(join(root, 'infra/packaging/helm/gateway-operator/files/dashboard.json'), 'utf8');
const code = globSync('{functions,infra/{adapters,runtime}}/**/*.ts', {
  cwd: root,
  exclude: (path) => path.endsWith('.test.ts'),
})
  .map((path) => readFileSync(join(root, path), 'utf8'))
  .join('\n');

/** Of a runbook. */
const PARTS = ['Meaning', 'Impact', 'Diagnosis', 'Mitigation'];

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

const rules = (parse(alerts) as { spec: { groups: { rules: Rule[] }[] } }).spec.groups.flatMap((group) => group.rules);

/** A metric of the API server that alerts use. */
const OF_API_SERVER = 'apiserver_admission_webhook_rejection_count';

const isCounted = (name: string) => name === OF_API_SERVER || METRICS.has(name.replace(/_bucket$/, ''));

test.each(rules)('$alert asks for metrics that are counted, and says what to do', ({ expr, labels, annotations }) => {
  const named = expr.match(/\b(?:gateway_operator|apiserver)_\w+/g) ?? [];
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((name) => !isCounted(name))).toEqual([]);
  expect(labels.severity).toMatch(/^(critical|warning)$/);
  expect(annotations.description.length).toBeGreaterThan(40);
});

test('each alert has its runbook, and each runbook its alert; the log lines that it quotes are logged', () => {
  const [, ...sections] = readFileSync(join(root, 'docs/operate/alerts.md'), 'utf8').split(/^## /m);
  expect(sections.map((section) => section.split('\n', 1)[0])).toEqual(rules.map(({ alert }) => alert));
  for (const index of rules.keys()) {
    const section = sections[index] ?? '';
    expect([...section.matchAll(/^\*\*(\w+)\.\*\*/gm)].map(([, part]) => part)).toEqual(PARTS);
    for (const [, quoted = ''] of section.replaceAll('\n', ' ').matchAll(/"([^"]+)"/g)) expect(code).toContain(quoted);
  }
});

test('every panel of the dashboard asks for metrics that are counted', () => {
  interface Panel {
    readonly title: string;
    readonly targets?: ReadonlyArray<{ readonly expr: string }>;
  }
  const { panels } = JSON.parse(dashboard) as { readonly panels: ReadonlyArray<Panel> };
  const asked = panels.flatMap(({ targets = [] }) =>
    targets.flatMap(({ expr }) => expr.match(/gateway_operator_\w+/g)),
  );
  expect(asked.length).toBeGreaterThan(20);
  expect(asked.filter((name) => !isCounted(name ?? ''))).toEqual([]);
});

test.each(['unbooked_age_seconds', 'rejected_total', 'rebuilds_total', 'audit_differences_total', 'overruns_total'])(
  'somebody is called when gateway_operator_ledger_%s tells of money at stake',
  (name) => {
    expect(rules.filter(({ expr }) => expr.includes(`gateway_operator_ledger_${name}`))).not.toEqual([]);
  },
);

test('somebody is called long before the certificate of admission ends, and while two thirds of its life have not passed nobody is', () => {
  const ends = rules.find(({ expr }) => expr.includes('gateway_operator_certificate_expiry_timestamp_seconds'));
  const days = Number(ends?.expr.match(/- time\(\) < (\d+) \* 86400/)?.[1]);
  expect(ends?.labels.severity).toBe('critical');
  expect(days).toBeGreaterThanOrEqual(7);
  expect(days * 86_400_000).toBeLessThan(LIFETIMES.serving / 3);
});

test('somebody is called about what waits to be booked in time to do something before requests are refused', () => {
  const backlog = rules.find(({ expr }) => expr.includes('unbooked_age_seconds'));
  const seconds = Number(backlog?.expr.match(/> (\d+)/)?.[1]);
  expect(backlog).not.toHaveProperty('for');
  expect(seconds * 1000).toBeLessThanOrEqual(MAX_UNBOOKED_AGE / 2);
});
