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

/** The library requires a text for each metric. The table's own texts would cost each bundle 2 KiB. */
const HELP = 'See docs/reference/metrics.md.';

/**
 * Labels that Prometheus and its operator add to every target. Prometheus would rename such a label of a metric, for
 * example to `exported_instance`.
 */
const OF_TARGETS = new Set(['job', 'instance', 'namespace', 'service', 'pod', 'container', 'endpoint', 'node']);

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

  return {
    add: (name, labels = NO_LABELS, by = 1) => {
      if (!(by >= 0)) throw new Error(`counter ${name} only goes up, not by ${by}`);
      metric(Counter, name, labels).inc(labels, by);
    },
    set: (name, value, labels = NO_LABELS) => metric(Gauge, name, labels).set(labels, value),
    observe: (name, seconds, labels = NO_LABELS) => metric(Histogram, name, labels).observe(labels, seconds),
    retain: async (name, labels) => {
      const gauge: unknown = registry.getSingleMetric(name);
      if (!(gauge instanceof Gauge)) return;
      const kept = new Set(labels.map((one) => JSON.stringify(one)));
      const { values } = await gauge.get();
      for (const series of values) if (!kept.has(JSON.stringify(series.labels))) gauge.remove(series.labels);
    },
    render: () => registry.metrics(),
  };
}
