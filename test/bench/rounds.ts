// Rounds of a workload, on the bare program and on the gateway.
import type { Load } from './load.ts';
import { median, spread } from './table.ts';

export interface Round extends Load {
  /** Microseconds of the server's CPU per request. */
  readonly cpu: number | undefined;
  /** Microseconds of the store server's CPU per request. */
  readonly storeCpu: number | undefined;
  /** Busy per cent of the core of load, upstream and stores. At a hundred, they are measured instead of the server. */
  readonly others: number | undefined;
}

/** Above this per cent, load, upstream and stores are measured instead of the server. */
const FULL = 97;

/** The pairs of rounds in which neither waited for the other core; all pairs where hardly any qualifies. */
function counted([bare = [], gateway = []]: ReadonlyArray<ReadonlyArray<Round>>): ReadonlyArray<ReadonlyArray<Round>> {
  const isFull = (round: Round | undefined) => (round?.others ?? 0) > FULL;
  const indices = bare.flatMap((round, index) => (isFull(round) || isFull(gateway[index]) ? [] : [index]));
  if (indices.length < bare.length / 3) return [bare, gateway];
  return [bare, gateway].map((rounds) => indices.flatMap((index) => rounds[index] ?? []));
}

/**
 * A row of the table for each of the two. `events`: per reply, 0 for plain replies. Ratios compare neighbouring rounds, since other
 * load slows both.
 */
export function report(workload: string, events: number, measured: ReadonlyArray<ReadonlyArray<Round>>): string[][] {
  const [bare = [], gateway = []] = counted(measured);
  const rate = ({ requests, seconds }: Round) => requests / seconds;
  const cpu = (round: Round) => round.cpu ?? Number.NaN;
  return [
    { name: 'bare Hono and undici', rounds: bare },
    { name: 'gateway', rounds: gateway },
  ].map(({ name, rounds }) => {
    const over = (of: (round: Round) => number) =>
      rounds.map((round, index) => of(round) / of(bare[index] ?? round)).filter(Number.isFinite);
    const of = (value: (round: Round) => number | undefined) =>
      median(rounds.map((round) => value(round) ?? Number.NaN));
    return [
      workload,
      name,
      of(rate).toFixed(0),
      `${median(over(rate)).toFixed(2)} ×`,
      spread(over(rate), 2),
      of(({ p50 }) => p50).toFixed(2),
      of(cpu).toFixed(0),
      events === 0 ? '' : (of(cpu) / events).toFixed(1),
      `${median(over(cpu)).toFixed(2)} ×`,
      spread(over(cpu), 2),
      rounds[0]?.storeCpu === undefined ? '' : of(({ storeCpu }) => storeCpu).toFixed(0),
      of(({ others }) => others).toFixed(0),
      `${rounds.length} of ${measured[0]?.length}`,
    ];
  });
}
