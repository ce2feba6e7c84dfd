// Rounds of a workload, on the bare program and on the gateway.
import type { Load } from './load.ts';
import { median, spread } from './table.ts';

export interface Round extends Load {
  /** Microseconds of CPU of the server for a request. */
  readonly cpu: number | undefined;
  /** Microseconds of CPU of the store's server for a request. */
  readonly storeCpu: number | undefined;
  /** Per cent: how busy the core was on which load, upstream and stores run. At a hundred it is they who are measured. */
  readonly others: number | undefined;
}

/** Busier than this in per cent, and it is load, upstream and stores that are measured. */
const FULL = 97;

/** A round and its neighbour count where neither had to wait for the others' core; all do where hardly any would. */
function counted([bare = [], gateway = []]: ReadonlyArray<ReadonlyArray<Round>>): ReadonlyArray<ReadonlyArray<Round>> {
  const isFull = (round: Round | undefined) => (round?.others ?? 0) > FULL;
  const indices = bare.flatMap((round, index) => (isFull(round) || isFull(gateway[index]) ? [] : [index]));
  if (indices.length < bare.length / 3) return [bare, gateway];
  return [bare, gateway].map((rounds) => indices.flatMap((index) => rounds[index] ?? []));
}

/**
 * A row of the table for each of the two. `events`: in each reply, 0 where none is streamed. Ratios are those of each round and the one
 * beside it: what slows a machine down for a minute slows both.
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
