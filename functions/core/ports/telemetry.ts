// Telemetry: the log and the metrics, as a function writes them.
/** One line per request or reconciled object, at the end, in the domain's words. Never prompts, bodies or keys. */
export interface Log {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/**
 * Counters, gauges and histograms, rendered as Prometheus text by the adapter. Names have the `gateway_operator_`
 * prefix. One name always has the same names of labels, at most one of which has free text as its value. An object of
 * labels is never changed.
 */
export interface Metrics {
  add(name: string, labels?: Readonly<Record<string, string>>, by?: number): void;
  set(name: string, value: number, labels?: Readonly<Record<string, string>>): void;
  observe(name: string, seconds: number, labels?: Readonly<Record<string, string>>): void;
}

/** Metrics whose series can be removed. */
export interface EndingMetrics extends Metrics {
  /** Keeps only the series of a gauge with these labels, whose names are in the order of `set`. */
  retain(name: string, labels: ReadonlyArray<Readonly<Record<string, string>>>): Promise<void>;
}
