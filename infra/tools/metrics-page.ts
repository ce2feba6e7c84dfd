// The reference of metrics: docs/reference/metrics.md, from the table of metrics.
import { METRIC_GROUPS, METRIC_LABELS, type MetricRow } from '#core/ports/metric-table.ts';

export function toMetricsPage(): string {
  return `# Metrics

Generated from \`functions/core/ports/metric-table.ts\` by \`npm run generate\`. [Metrics and traces](../operate/metrics.md) shows how to scrape them,
and [alerts](../operate/alerts.md) which of them call a person.

A counter only rises. A gauge rises and falls. A histogram has the series \`_bucket\`, \`_sum\` and \`_count\`.
${Object.entries(METRIC_GROUPS).map(toGroup).join('')}
## Labels

Prometheus adds the labels \`namespace\`, \`pod\` and \`job\` of the Pod that it scrapes.

| label | meaning |
|---|---|
${Object.entries(METRIC_LABELS)
  .map(([label, meaning]) => `| \`${label}\` | ${meaning} |`)
  .join('\n')}
`;
}

const toGroup = ([group, rows]: [string, Readonly<Record<string, MetricRow>>]) => `
## ${group}

| metric | type | unit | labels | meaning |
|---|---|---|---|---|
${Object.entries(rows).map(toRow).join('\n')}
`;

function toRow([name, { type, labels, help }]: [string, MetricRow]): string {
  const shown = labels.map((label) => `\`${label}\``).join(', ');
  return `| \`${name}\` | ${type} | ${unitOf(name)} | ${shown} | ${help} |`;
}

/** As Prometheus' conventions have it: the unit is in the name, and what has none is a number of things. */
function unitOf(name: string): string {
  if (name.endsWith('_timestamp_seconds')) return 'Unix seconds';
  return /_(seconds|dollars|tokens)(_total)?$/.exec(name)?.[1] ?? 'number';
}
