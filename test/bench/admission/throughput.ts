// How many reviews a second, measured against a handler that only parses and echoes the same JSON?
import { load, median, start, type Target } from './load.ts';
import { instanceReview, keyReview } from './reviews.ts';

export interface Throughput {
  readonly name: string;
  readonly bytes: number;
  readonly perSecond: number;
  readonly echoPerSecond: number;
  /** Median over the rounds: what both share of the machine in a round is the same. */
  readonly ratio: number;
}

/** In alternating rounds, so that whatever else the machine does befalls both. */
export async function measureThroughput({ rounds = 15, millis = 400 } = {}): Promise<Throughput[]> {
  const [echo, admission] = await Promise.all([start('echo'), start('admission')]);
  const cases = [
    { name: 'edit of a key', body: keyReview() },
    { name: 'new instance with 6 entries', body: instanceReview() },
  ].flatMap(({ name, body }) => ['/mutate', '/validate'].map((path) => ({ name: `${path}, ${name}`, path, body })));
  try {
    const found: Throughput[] = [];
    for (const { name, path, body } of cases) {
      const [theirs, ours]: [Target, Target] = [
        { url: echo.url, path, body },
        { url: admission.url, path, body },
      ];
      // Until both are compiled: a cluster's API server sends more than this in an hour.
      for (const warm of [theirs, ours]) await load(warm, { requests: 15_000 });
      const pairs: Array<readonly [number, number]> = [];
      for (let round = 0; round < rounds; round += 1) {
        const before = await load(theirs, { millis: millis / 2 });
        const mine = await load(ours, { millis });
        const after = await load(theirs, { millis: millis / 2 });
        pairs.push([mine.perSecond, (before.perSecond + after.perSecond) / 2]);
      }
      found.push({
        name,
        bytes: Buffer.byteLength(body),
        perSecond: median(pairs.map(([mine]) => mine)),
        echoPerSecond: median(pairs.map(([, other]) => other)),
        ratio: median(pairs.map(([mine, other]) => mine / other)),
      });
    }
    return found;
  } finally {
    await Promise.all([echo.stop(), admission.stop()]);
  }
}
