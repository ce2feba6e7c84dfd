// A program that counts the steps of scenarios for n and for 2n: `node count.ts SCENARIOS`. Steps are how often each
// block of `functions` and `crds` ran, as V8 counts it: no clock, so a busy machine changes nothing. V8 counts blocks
// of what is compiled after the start alone, hence a program of its own.
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Prepares n things; the answer does the work whose steps are counted. */
export interface Scenario {
  readonly n: number;
  prepare(n: number): Promise<() => Promise<unknown>>;
}

/** Steps for n and 2n by scenario, as one line of JSON. */
async function main(file: string): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  /** Since the call before. */
  const take = async (): Promise<number> => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const ours = result.filter(({ url }) => /\/(functions|crds)\//.test(url));
    const blocks = ours.flatMap((script) => script.functions.flatMap(({ ranges }) => ranges));
    return blocks.reduce((sum, { count }) => sum + count, 0);
  };
  const { scenarios } = (await import(pathToFileURL(join(import.meta.dirname, file)).href)) as {
    readonly scenarios: Readonly<Record<string, Scenario>>;
  };
  const counted: Record<string, ReadonlyArray<number>> = {};
  for (const [name, { n, prepare }] of Object.entries(scenarios)) {
    const steps: number[] = [];
    for (const size of [n, 2 * n]) {
      const work = await prepare(size);
      await take();
      await work();
      steps.push(await take());
    }
    counted[name] = steps;
  }
  console.log(JSON.stringify(counted));
}

await main(process.argv[2] ?? '');
