// Milliseconds from an apply until a key works, for each trigger that promises less than a second.
import { whyNoControlPlane } from '../support/control-plane.ts';
import { table } from './table.ts';
import { hintsOnEmbedded, hintsOnReal, hintsOnWorkers } from './triggers/admission.ts';
import { quantile } from './triggers/keys.ts';
import { hintsOfKnative, whyNoKnative } from './triggers/knative.ts';

const KEYS = 60;

export async function benchHints(): Promise<string> {
  const rows: string[][] = [];
  const scenes = [
    ["admission's hint, embedded API server", undefined, hintsOnEmbedded],
    ["admission's hint, real API server", whyNoControlPlane(), hintsOnReal],
    ["admission's hint, Workers, embedded API server", undefined, hintsOnWorkers],
    ["Knative's ApiServerSource, a User's key, real API server", whyNoControlPlane() ?? whyNoKnative(), hintsOfKnative],
  ] as const;
  for (const [name, why, scene] of scenes) {
    if (why === undefined) rows.push(toRow(name, await scene(KEYS)));
    else rows.push([name, why, '', '', '']);
  }
  const head = ['what tells reconcile', 'keys', 'p50, ms', 'p99, ms', 'slowest, ms'];
  return `From apply to a usable key:\n\n${table(head, rows)}`;
}

function toRow(name: string, waits: ReadonlyArray<number>): string[] {
  const quantiles = [quantile(waits, 0.5), quantile(waits, 0.99), Math.max(...waits)];
  return [name, String(waits.length), ...quantiles.map((millis) => millis.toFixed(0))];
}
