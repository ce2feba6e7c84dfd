// The reference of alerts: docs/reference/alerts.md, from the rules.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from './imports.ts';

const RULES = 'infra/platforms/kubernetes/alerts.yaml';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}

export function toAlertsPage(): string {
  // The file is ours, and a test reads every rule of it.
  const { spec } = parse(readFileSync(join(ROOT, RULES), 'utf8')) as {
    readonly spec: { readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }> };
  };
  const rules = spec.groups.flatMap((group) => group.rules);
  return `# Alert rules

Generated from \`${RULES}\` by \`npm run generate\`. Each name leads to the runbook: [alerts](../operate/alerts.md) has meaning, impact, diagnosis and mitigation,
and shows how to install the rules. \`…\` stands for a namespace, an object or a number.

| alert | severity | after | summary |
|---|---|---|---|
${rules.map(toRow).join('\n')}

*After*: how long the expression must be true. Empty: the first time.

## Expressions
${rules.map(toExpression).join('')}`;
}

const toRow = ({ alert, labels, annotations, ...rule }: Rule): string =>
  `| [\`${alert}\`](../operate/alerts.md#${alert.toLowerCase()}) | ${labels.severity} | ${rule.for ?? ''} | ${annotations.summary.replaceAll(/\{\{.*?\}\}/g, '…')} |`;

const toExpression = ({ alert, expr }: Rule): string =>
  `\n**${alert}**\n\n<!-- not run: promtool runs the rules in a test -->\n\`\`\`promql\n${expr}\n\`\`\`\n`;
