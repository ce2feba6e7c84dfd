// Reviews per second, against a handler that only parses and echoes the same JSON.

import { SEGMENT } from '../../admission/fixtures.ts';
import { cpuOf } from '../pinned.ts';
import { median, table } from '../table.ts';
import { load, type Server, start, type Target } from './load.ts';
import { instanceReview, keyReview, TIMEOUT } from './reviews.ts';

/** Requests until everything is compiled. */
const WARM_UP = 15_000;

interface Round {
  readonly perSecond: number;
  /** Microseconds of CPU per request; NaN where the system does not report them. */
  readonly cpu: number;
}

/** Alternating rounds, so that other load on the machine affects both alike; ratios of medians. */
export async function benchThroughput({ rounds = 15, requests = 3000 } = {}): Promise<string> {
  const servers = await Promise.all([start('echo'), start('admission')]);
  try {
    const cases = [
      { name: 'edit of a key', body: keyReview() },
      { name: 'new instance with 6 entries', body: instanceReview() },
    ].flatMap(({ name, body }) => ['/mutate', '/validate'].map((path) => ({ name: `${path}, ${name}`, path, body })));
    const rows: string[][] = [];
    for (const { name, path, body } of cases) {
      const target = { path: `/${SEGMENT}${path}${TIMEOUT}`, body };
      for (const { url } of servers) await load({ ...target, url }, { requests: WARM_UP });
      const measured: Round[][] = servers.map(() => []);
      for (let round = 0; round < rounds; round += 1)
        for (const [index, server] of servers.entries()) measured[index]?.push(await measure(server, target, requests));
      rows.push([name, ...compare(measured[0] ?? [], measured[1] ?? [])]);
    }
    const head = ['review of 8 KB', 'echo, /s', 'admission, /s', 'ratio', 'echo, µs CPU', 'admission, µs CPU', 'ratio'];
    return `Reviews a second over HTTP against a Hono handler that parses and echoes the JSON; medians of ${rounds} rounds in turn.\n\n${table(head, rows)}`;
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

async function measure({ url, child }: Server, target: Omit<Target, 'url'>, requests: number): Promise<Round> {
  const before = cpuOf(child) ?? Number.NaN;
  const { perSecond, millis } = await load({ ...target, url }, { requests });
  return { perSecond, cpu: (((cpuOf(child) ?? Number.NaN) - before) * 1000) / millis.length };
}

function compare(echo: ReadonlyArray<Round>, ours: ReadonlyArray<Round>): string[] {
  const of = (rounds: ReadonlyArray<Round>, member: keyof Round) => median(rounds.map((round) => round[member]));
  const ratios = ours.map((round, index) => round.perSecond / (echo[index]?.perSecond ?? Number.NaN));
  return [
    of(echo, 'perSecond').toFixed(0),
    of(ours, 'perSecond').toFixed(0),
    median(ratios).toFixed(2),
    of(echo, 'cpu').toFixed(0),
    of(ours, 'cpu').toFixed(0),
    (of(echo, 'cpu') / of(ours, 'cpu')).toFixed(2),
  ];
}
