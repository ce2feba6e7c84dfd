// The reference of conditions and events: docs/reference/conditions.md, from the table of reasons.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { CONDITION_TYPES, type ConditionType, REASONS, type Reason } from '#core/conditions/reasons.ts';
import { ROOT } from './imports.ts';

/** The meaning of each condition type. A type without a row does not compile. */
const TYPES: Readonly<Record<ConditionType, string>> = {
  Ready:
    'Whether the object works. On every object. Of several causes it has the first, in the order of the table below.',
  DatabaseReady: 'Whether the PostgreSQL of an instance answers and has its schema.',
  StoreReady: 'Whether the Redis of an instance answers and keeps its counters.',
  WorkloadReady: 'Whether the gateway of an instance runs.',
  RouteReady:
    'Whether clients outside the cluster reach an instance by its HTTPRoute or Ingress. Only with `spec.httpRoute` or `spec.ingress`; `Ready` does not depend on it.',
  ModelsReady:
    'On an instance: whether each model entry can serve. On others: whether the instance serves each model, and each has budget left.',
  LedgerAdopted: 'Whether an instance continues the ledger that its annotation names. Only with the annotation.',
  DeletionsGuarded: 'Whether a resync would remove too much of an instance. Only while it would.',
  Paused: 'Whether an instance is paused. Only while it is.',
  SpecValid: 'Whether the spec follows the rules. Only while it does not; the reason is the name of the rule.',
  Rotation: 'The age of the value of a VirtualKey, and its next rotation. Only with `spec.rotation` or two values.',
  SoftBudgetReached: 'Whether a VirtualKey has spent its `spec.softBudget`. Only with a `softBudget`.',
  PolicyMet: 'Whether a VirtualKey follows the key policy of its namespace. Only if a policy applies.',
};

export function toConditionsPage(): string {
  return `# Conditions and events

Generated from \`functions/core/conditions/reasons.ts\` by \`npm run generate\`. \`kubectl describe\` shows conditions and events with their messages.

## Condition types

| type | meaning |
|---|---|
${CONDITION_TYPES.map((type) => `| \`${type}\` | ${TYPES[type]} |`).join('\n')}

## Reasons

A condition has one of these reasons. \`SpecValid\` can also have the name of a rule about the spec, \`WorkloadReady\` the word of the controller that
runs the gateway, and \`RouteReady\` that of the Gateway's controller. *Converged*: the object is not ready, and nothing is left to do; alerts about objects that wait too long leave it out.

| reason | conditions | event | meaning, and what to do |
|---|---|---|---|
${(Object.keys(REASONS) as Reason[]).map(toRow).join('\n')}

## What clients of the gateway see

A VirtualKey that is blocked because of its User or a Team gets \`key_blocked\` with one of these texts. [Errors](../use/errors.md) has the other texts.

| reason | text |
|---|---|
${(Object.keys(REASONS) as Reason[]).flatMap(toClientRow).join('\n')}
`;
}

function toRow(reason: Reason): string {
  const { conditions = {}, event = '', text, isConverged, page } = REASONS[reason];
  const statuses = Map.groupBy(Object.entries(conditions), ([, status]) => status);
  const shown = [...statuses].map(([status, types]) => `${types.map(([type]) => `\`${type}\``).join(', ')} ${status}`);
  const converged = isConverged ? ' Converged.' : '';
  return `| \`${reason}\` | ${shown.join('; ')} | ${event} | ${text}${converged} See [${titleOf(page)}](${relative('reference', page)}). |`;
}

/** The title of a page, without its anchor. */
function titleOf(page: string): string {
  const text = readFileSync(join(ROOT, 'docs', page.replace(/#.*/, '')), 'utf8');
  return /^# (.+)$/m.exec(text)?.[1] ?? page;
}

const toClientRow = (reason: Reason): string[] => {
  const { missingOwnerText } = REASONS[reason];
  return missingOwnerText === undefined ? [] : [`| \`${reason}\` | ${missingOwnerText} |`];
};
