// Metrics as Prometheus text, format 0.0.4. Both libraries for it make each request slower (decision 35).
import type { EndingMetrics, Metrics } from '#core/ports/clock.ts';

type Labels = Readonly<Record<string, string>>;

/** Seconds: from a hot-path microsecond's neighbourhood to the longest stream. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600];

interface Histogram {
  /** Observations per bucket, not yet cumulated; the last one is beyond all bounds. */
  readonly counts: number[];
  sum: number;
}

interface Amount {
  value: number;
}

interface Family<T> {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** By rendered labels (`a="1",b="2"`), which are the same for the same labels in any order. */
  readonly series: Map<string, T>;
  /** The same by the object that the labels came in: a caller that counts often keeps one, and changes none. */
  readonly known: WeakMap<Labels, T>;
}

const NO_LABELS: Labels = {};

/**
 * Labels that Prometheus and its operator give to every target; of a metric's own they would become `exported_instance`
 * and so on.
 */
const OF_TARGETS = new Set(['job', 'instance', 'namespace', 'service', 'pod', 'container', 'endpoint', 'node']);

/** One name is one kind of metric; using it as another throws. */
export function createMetrics(): EndingMetrics {
  const families = new Map<string, Family<Amount> | Family<Histogram>>();

  const family = <T>(name: string, type: Family<T>['type']): Family<T> => {
    const found = families.get(name);
    if (found !== undefined && found.type !== type) throw new Error(`metric ${name} is a ${found.type}, not a ${type}`);
    // Families of one type are made by the same of the three functions below.
    if (found !== undefined) return found as unknown as Family<T>;
    if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) throw new Error(`not a metric name: ${JSON.stringify(name)}`);
    const made: Family<T> = { type, series: new Map(), known: new WeakMap() };
    families.set(name, made as unknown as Family<Amount>);
    return made;
  };

  const amount = (name: string, type: 'counter' | 'gauge', labels: Labels): Amount =>
    seriesOf(family<Amount>(name, type), labels, () => ({ value: 0 }));

  return {
    add: (name, labels = NO_LABELS, by = 1) => {
      if (!(by >= 0)) throw new Error(`counter ${name} only goes up, not by ${by}`);
      amount(name, 'counter', labels).value += by;
    },
    set: (name, value, labels = NO_LABELS) => {
      amount(name, 'gauge', labels).value = value;
    },
    retain: (name, labels) => {
      const { series } = family<Amount>(name, 'gauge');
      const kept = new Set(labels.map(render));
      for (const key of series.keys()) if (!kept.has(key)) series.delete(key);
    },
    observe: (name, seconds, labels = NO_LABELS) => {
      const histogram = seriesOf(family<Histogram>(name, 'histogram'), labels, emptyHistogram);
      const bucket = BUCKETS.findIndex((bound) => seconds <= bound);
      const place = bucket === -1 ? BUCKETS.length : bucket;
      histogram.counts[place] = (histogram.counts[place] ?? 0) + 1;
      histogram.sum += seconds;
    },
    render: () =>
      [...families]
        .sort(([one], [other]) => (one < other ? -1 : 1))
        .map(([name, { type, series }]) => {
          const lines = [...series].flatMap(([key, one]) =>
            'value' in one ? [line(name, key, one.value)] : histogramLines(name, key, one),
          );
          return [`# TYPE ${name} ${type}`, ...lines, ''].join('\n');
        })
        .join(''),
  };
}

/** The same metrics; each series that is counted through them has these labels too. */
export function withLabels(metrics: Metrics, labels: Labels): Metrics {
  const known = new WeakMap<Labels, Labels>();
  const joined = (own: Labels | undefined): Labels => {
    if (own === undefined) return labels;
    const before = known.get(own);
    if (before !== undefined) return before;
    const both = { ...own, ...labels };
    known.set(own, both);
    return both;
  };
  return {
    add: (name, own, by) => metrics.add(name, joined(own), by),
    set: (name, value, own) => metrics.set(name, value, joined(own)),
    observe: (name, seconds, own) => metrics.observe(name, seconds, joined(own)),
    render: metrics.render,
  };
}

function seriesOf<T>({ series, known }: Family<T>, labels: Labels, make: () => T): T {
  const before = known.get(labels);
  if (before !== undefined) return before;
  const key = render(labels);
  const one = series.get(key) ?? make();
  series.set(key, one);
  known.set(labels, one);
  return one;
}

const emptyHistogram = (): Histogram => ({ counts: new Array<number>(BUCKETS.length + 1).fill(0), sum: 0 });

function histogramLines(name: string, key: string, { counts, sum }: Histogram): ReadonlyArray<string> {
  const before = key === '' ? '' : `${key},`;
  let total = 0;
  const buckets = counts.map((count, place) => {
    total += count;
    return line(`${name}_bucket`, `${before}le="${toNumber(BUCKETS[place] ?? Number.POSITIVE_INFINITY)}"`, total);
  });
  return [...buckets, line(`${name}_sum`, key, sum), line(`${name}_count`, key, total)];
}

function line(name: string, key: string, value: number): string {
  return `${name}${key === '' ? '' : `{${key}}`} ${toNumber(value)}`;
}

function toNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}

function render(labels: Labels): string {
  const names = Object.keys(labels);
  if (names.length > 1) names.sort();
  return names.map((name) => `${toLabelName(name)}="${escapeValue(labels[name] ?? '')}"`).join(',');
}

function toLabelName(name: string): string {
  if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name) || name === 'le' || OF_TARGETS.has(name))
    throw new Error(`not a label name: ${JSON.stringify(name)}`);
  return name;
}

/** The three characters that the text format escapes in a label's value. */
function escapeValue(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
