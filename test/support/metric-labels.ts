// Labels of a metric, as the table of metrics has them.

import { METRICS } from '#core/ports/metric-table.ts';
import type { Metrics } from '#core/ports/telemetry.ts';

/** Throws if the table does not have the metric, or has other labels. */
export function checkLabels(name: string, labels: Readonly<Record<string, string>> = {}): void {
  const expected = METRICS.get(name)?.labels ?? [`no metric ${name}`];
  const [inTable, counted] = [expected, Object.keys(labels)].map((names) => [...names].sort().join());
  if (inTable !== counted) throw new Error(`${name} has the labels "${counted}", and "${inTable}" in the table`);
}

/** The same metrics; each use is checked. */
export function withCheckedLabels<Checked extends Metrics>(metrics: Checked): Checked {
  return {
    ...metrics,
    add: (name, labels, by) => {
      checkLabels(name, labels);
      metrics.add(name, labels, by);
    },
    set: (name, value, labels) => {
      checkLabels(name, labels);
      metrics.set(name, value, labels);
    },
    observe: (name, seconds, labels) => {
      checkLabels(name, labels);
      metrics.observe(name, seconds, labels);
    },
  };
}
