// Metrics as Prometheus text, by four files of prom-client: the whole package also loads OpenTelemetry's API (decision 0035).
import type { MetricConfiguration } from 'prom-client';
import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Histogram from 'prom-client/lib/histogram.js';
import Registry from 'prom-client/lib/registry.js';
import type { EndingMetrics } from '#core/ports/telemetry.ts';

type Labels = Readonly<Record<string, string>>;

/** Buckets in seconds: from less than a millisecond to the longest stream. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600];

const NO_LABELS: Labels = {};
/** The kept values after which they are written, so that labels that are a new object each time need no memory. */
const MAX_KEPT = 10_000;

/** The library requires a text for each metric. The table's own texts would cost each bundle 2 KiB. */
const HELP = 'See docs/reference/metrics.md.';

/**
 * Labels that Prometheus and its operator add to every target. Prometheus would rename such a label of a metric, for
 * example to `exported_instance`.
 */
const OF_TARGETS = new Set(['job', 'instance', 'namespace', 'service', 'pod', 'container', 'endpoint', 'node']);

/** The sum of a counter, or the last value of a gauge, since these were written; and the number of its last change. */
interface StoredValue {
  value: number;
  change: number;
}

type StoredValuesByName = Map<string, Map<Labels, StoredValue>>;

/** One name is one kind of metric, with the names of labels that came first; another use of the name throws. */
export function createMetrics(): EndingMetrics & { render(): Promise<string> } {
  const registry = new Registry();

  function metric<T>(Kind: new (config: MetricConfiguration<string>) => T, name: string, labels: Labels): T {
    const found: unknown = registry.getSingleMetric(name);
    if (found instanceof Kind) return found;
    if (found !== undefined) throw new Error(`metric ${name} is of another kind`);
    const labelNames = Object.keys(labels);
    const ofTarget = labelNames.find((label) => OF_TARGETS.has(label));
    if (ofTarget !== undefined) throw new Error(`Invalid label name: ${ofTarget} is a label of targets`);
    // Buckets are for histograms; the other kinds ignore them.
    const config = { name, help: HELP, labelNames, buckets: BUCKETS, registers: [registry] };
    return new Kind(config);
  }

  // The library finds a series by a text of its labels, each time. Each request changes about ten series, always with the
  // same objects of labels, so their changes are kept by object and written when somebody reads. The first one of each
  // object is written immediately, which checks the labels.
  const [increments, levels]: [StoredValuesByName, StoredValuesByName] = [new Map(), new Map()];
  let kept = 0;
  let changes = 0;

  function keep(values: StoredValuesByName, name: string, labels: Labels, value: number): void {
    if (kept >= MAX_KEPT) writeKept();
    kept += 1;
    changes += 1;
    const ofName = values.get(name) ?? new Map<Labels, StoredValue>();
    values.set(name, ofName.set(labels, { value, change: changes }));
  }

  function writeKept(): void {
    for (const [name, ofName] of increments)
      for (const [labels, { value }] of ofName) metric(Counter, name, labels).inc(labels, value);
    // The last one is written last, also if another object has equal labels.
    for (const [name, ofName] of levels)
      for (const [labels, { value }] of [...ofName].sort(([, one], [, other]) => one.change - other.change))
        metric(Gauge, name, labels).set(labels, value);
    increments.clear();
    levels.clear();
    kept = 0;
  }

  return {
    add: (name, labels = NO_LABELS, by = 1) => {
      if (!(by >= 0)) throw new Error(`counter ${name} only goes up, not by ${by}`);
      const known = increments.get(name)?.get(labels);
      if (known !== undefined) {
        known.value += by;
        return;
      }
      metric(Counter, name, labels).inc(labels, 0);
      keep(increments, name, labels, by);
    },
    set: (name, value, labels = NO_LABELS) => {
      const known = levels.get(name)?.get(labels);
      if (known !== undefined) {
        changes += 1;
        known.value = value;
        known.change = changes;
        return;
      }
      metric(Gauge, name, labels).set(labels, value);
      keep(levels, name, labels, value);
    },
    observe: (name, seconds, labels = NO_LABELS) => metric(Histogram, name, labels).observe(labels, seconds),
    retain: async (name, labels) => {
      writeKept();
      const gauge: unknown = registry.getSingleMetric(name);
      if (!(gauge instanceof Gauge)) return;
      const retained = new Set(labels.map((one) => JSON.stringify(one)));
      const { values } = await gauge.get();
      for (const series of values) if (!retained.has(JSON.stringify(series.labels))) gauge.remove(series.labels);
    },
    render: () => {
      writeKept();
      return registry.metrics();
    },
  };
}
