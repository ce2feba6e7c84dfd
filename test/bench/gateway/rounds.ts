// Rounds of a workload, on the bare program and on the gateway, as rows of tables.
import { median, spread } from '../table.ts';
import type { Load } from './load.ts';

export interface Round extends Load {
  readonly requests: number;
  /** Microseconds of the server's CPU per request; NaN where the system does not report it, as all below. */
  readonly cpu: number;
  /** Microseconds of the store server's CPU per request. */
  readonly storeCpu: number;
  /** Calls to the store server per thousand requests. */
  readonly storeCalls: number;
  /** Busy per cent of the core of load, upstream and stores. At a hundred, they are measured instead of the server. */
  readonly others: number;
  /** Per cent of the server's own core that other programs took. */
  readonly taken: number;
}

/** Neighbouring rounds. */
export interface Pair {
  readonly bare: Round;
  readonly gateway: Round;
}

/** Above this per cent, load, upstream and stores are measured instead of the server. */
const FULL = 97;
/** Above this per cent, other programs are. */
const TAKEN = 10;

/**
 * The pairs of rounds in which neither waited for the other core, nor for other programs on its own; all pairs where
 * hardly any qualifies.
 */
function counted(pairs: ReadonlyArray<Pair>): ReadonlyArray<Pair> {
  const isDisturbed = ({ others, taken }: Round): boolean => others > FULL || taken > TAKEN;
  const free = pairs.filter(({ bare, gateway }) => !isDisturbed(bare) && !isDisturbed(gateway));
  return free.length < pairs.length / 3 ? pairs : free;
}

export const RATES = [
  ...['workload', 'server', 'requests/s', 'ratio', 'from to', 'p50, ms', 'CPU, µs/request', 'µs/event', 'ratio'],
  ...['from to', 'Redis, µs', 'calls of it/1000', 'other core, %', 'own core taken, %', 'rounds'],
];

/**
 * Two rows of RATES. `events`: per reply, 0 for plain replies. Ratios compare neighbouring rounds, since other load
 * slows both.
 */
export function ratesOf(workload: string, events: number, measured: ReadonlyArray<Pair>): string[][] {
  const pairs = counted(measured);
  const rate = ({ requests, seconds }: Round) => requests / seconds;
  const cpu = (round: Round) => round.cpu;
  return (['bare', 'gateway'] as const).map((side) => {
    const over = (of: (round: Round) => number) =>
      pairs.map((pair) => of(pair[side]) / of(pair.bare)).filter(Number.isFinite);
    const of = (value: (round: Round) => number) => median(pairs.map((pair) => value(pair[side])));
    const toText = (value: number) => (Number.isNaN(value) ? '' : value.toFixed(0));
    return [
      workload,
      side === 'bare' ? 'bare Hono and undici' : 'gateway',
      of(rate).toFixed(0),
      `${median(over(rate)).toFixed(2)} ×`,
      spread(over(rate), 2),
      of(({ whole }) => at(whole, 0.5) / 1000).toFixed(2),
      of(cpu).toFixed(0),
      events === 0 ? '' : (of(cpu) / events).toFixed(1),
      `${median(over(cpu)).toFixed(2)} ×`,
      spread(over(cpu), 2),
      toText(of(({ storeCpu }) => storeCpu)),
      toText(of(({ storeCalls }) => storeCalls)),
      of(({ others }) => others).toFixed(0),
      of(({ taken }) => taken).toFixed(0),
      `${pairs.length} of ${measured.length}`,
    ];
  });
}

export const ADDED = [
  ...['workload', 'until', 'bare p50, µs', 'gateway', 'added', 'from to', 'bare p99, µs', 'gateway', 'added', 'rounds'],
];

/**
 * A row of ADDED. At p50 the difference of neighbouring rounds; at p99 that of all counted rounds together, as one has
 * few slow requests.
 */
export function addedOf(workload: string, until: 'whole' | 'first', measured: ReadonlyArray<Pair>): string[] {
  const pairs = counted(measured);
  const p50 = (round: Round) => at(round[until], 0.5);
  const added = pairs.map(({ bare, gateway }) => p50(gateway) - p50(bare));
  const p99 = (side: keyof Pair) =>
    at(
      pairs.flatMap((pair) => pair[side][until]).sort((a, b) => a - b),
      0.99,
    );
  return [
    ...[workload, until === 'whole' ? 'last byte' : 'first event'],
    ...[
      ...(['bare', 'gateway'] as const).map((side) => median(pairs.map((pair) => p50(pair[side])))),
      median(added),
    ].map((micros) => micros.toFixed(0)),
    spread(added),
    ...[p99('bare'), p99('gateway'), p99('gateway') - p99('bare')].map(String),
    `${pairs.length} of ${measured.length}`,
  ];
}

/** Requests per second of the gateway on its one core. */
export const ratePerCore = (measured: ReadonlyArray<Pair>): number =>
  median(counted(measured).map(({ gateway: { requests, seconds } }) => requests / seconds));

function at(ascending: ReadonlyArray<number>, share: number): number {
  return ascending[Math.floor(ascending.length * share)] ?? Number.NaN;
}
