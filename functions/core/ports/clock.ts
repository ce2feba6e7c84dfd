// The clock, ids, the log and metrics: what every function gets from its process.
import type { Millis } from './money.ts';

export interface Clock {
  now(): Millis;
}

/** UUIDv7 strings: their time decides the partition of a ledger row (LEDGER 2). */
export interface Ids {
  next(): string;
}

/** One line per request or reconciled object, at the end, in the domain's words. Never prompts, bodies or keys. */
export interface Log {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/**
 * Counters, gauges and histograms, rendered as Prometheus text by the adapter. Names carry the `gateway_operator_`
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
