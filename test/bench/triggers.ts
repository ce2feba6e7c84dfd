// Milliseconds from an apply until a key works, for each trigger that promises less than a second.
import { whyNoControlPlane } from '../support/control-plane.ts';
import { table } from './table.ts';
import { triggersOnEmbedded, triggersOnReal, triggersOnWorkers } from './triggers/admission.ts';
import { quantile } from './triggers/keys.ts';
import { triggersOfKnative, whyNoKnative } from './triggers/knative.ts';

const KEYS = 60;

export async function benchTriggers(): Promise<string> {
  const rows: string[][] = [];
  const scenarios = [
    ["admission's trigger, embedded API server", undefined, triggersOnEmbedded],
    ["admission's trigger, real API server", whyNoControlPlane(), triggersOnReal],
    ["admission's trigger, Workers, embedded API server", undefined, triggersOnWorkers],
    [
      "Knative's ApiServerSource, a User's key, real API server",
      whyNoControlPlane() ?? whyNoKnative(),
      triggersOfKnative,
    ],
  ] as const;
  for (const [name, why, scenario] of scenarios) {
    if (why === undefined) rows.push(toRow(name, await scenario(KEYS)));
    else rows.push([name, why, '', '', '']);
  }
  const head = ['what tells reconcile', 'keys', 'p50, ms', 'p99, ms', 'slowest, ms'];
  return `From apply to a usable key:\n\n${table(head, rows)}`;
}

function toRow(name: string, waits: ReadonlyArray<number>): string[] {
  const quantiles = [quantile(waits, 0.5), quantile(waits, 0.99), Math.max(...waits)];
  return [name, String(waits.length), ...quantiles.map((millis) => millis.toFixed(0))];
}
