// What did the rounds of a workload come to, on the bare program and on the gateway?
import type { Load } from './load.ts';
import { median, spread } from './table.ts';

export interface Round extends Load {
  /** Microseconds of CPU of the server for a request. */
  readonly cpu: number | undefined;
  /** Microseconds of CPU of the store's server for a request. */
  readonly storeCpu: number | undefined;
}

/** A row of the table for each of the two. `events`: in each reply, 0 where none is streamed. */
export function report(
  workload: string,
  events: number,
  [bare = [], gateway = []]: ReadonlyArray<ReadonlyArray<Round>>,
): string[][] {
  const rate = ({ requests, seconds }: Round) => requests / seconds;
  const rateOf = (rounds: ReadonlyArray<Round>) => median(rounds.map(rate));
  const cpuPer = (rounds: ReadonlyArray<Round>) => median(rounds.map(({ cpu }) => cpu ?? Number.NaN));
  return [
    { name: 'bare Hono and undici', rounds: bare },
    { name: 'gateway', rounds: gateway },
  ].map(({ name, rounds }) => [
    workload,
    name,
    rateOf(rounds).toFixed(0),
    spread(rounds.map(rate)),
    `${(rateOf(rounds) / rateOf(bare)).toFixed(2)} ×`,
    median(rounds.map(({ p50 }) => p50)).toFixed(2),
    cpuPer(rounds).toFixed(0),
    events === 0 ? '' : (cpuPer(rounds) / events).toFixed(1),
    `${(cpuPer(rounds) / cpuPer(bare)).toFixed(2)} ×`,
    rounds[0]?.storeCpu === undefined ? '' : median(rounds.map(({ storeCpu = Number.NaN }) => storeCpu)).toFixed(0),
  ]);
}
