// Does one more run bring the world to where it belongs, wherever the run before it was cut short or a call of it
// failed?
import { afterAll, describe, expect, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { handlers } from '../../../functions/reconcile/act.ts';
import type { ActionName } from '../../../functions/reconcile/action.ts';
import { READS } from '../databases.ts';
import { createHarness, type Harness } from '../harness.ts';
import { differenceOf, endOf, publishedIn } from './end.ts';
import { type Scenario, scenarios } from './scenarios.ts';

const isWrite = (verb: string) => verb !== 'get' && verb !== 'list';

/**
 * How a call ends badly: it did not happen, or it happened and nobody heard of it; and whether the process lives on.
 */
const ACCIDENTS = [
  { name: 'fails before its effect', after: false, dies: false },
  { name: 'has its effect and its answer is lost', after: true, dies: false },
  { name: 'is where the process dies before its effect', after: false, dies: true },
  { name: 'is where the process dies after its effect', after: true, dies: true },
] as const;

/** From now on the call number `step` that writes ends badly; 0: none. Answers how many there were, and repairs it. */
function breakCall(harness: Harness, step: number, { after, dies }: (typeof ACCIDENTS)[number]) {
  let count = 0;
  const meets = (): 'nothing' | 'lost' | 'killed' => {
    count += 1;
    if (count === step) return after ? 'lost' : 'killed';
    return dies && count > step ? 'killed' : 'nothing';
  };
  harness.cluster.inject(({ verb }) => {
    const fate = isWrite(verb) ? meets() : 'nothing';
    if (fate === 'killed') throw new Error('killed');
    return fate === 'lost' ? 'lost' : undefined;
  });
  harness.onDatabase = (method) => {
    const fate = READS.includes(method) ? 'nothing' : meets();
    if (fate === 'killed') throw new DatabaseUnreachable('PostgreSQL at db:5432/gateway closed the connection');
    return fate === 'lost' ? 'lost' : undefined;
  };
  return () => {
    harness.cluster.inject(() => undefined);
    harness.onDatabase = () => undefined;
    return count;
  };
}

const prepared = async ({ prepare }: Scenario): Promise<Harness> => {
  const harness = createHarness();
  await prepare(harness);
  return harness;
};

/** Where it ends when nothing goes wrong, and what is done on the way. */
async function undisturbed(scenario: Scenario) {
  const harness = await prepared(scenario);
  const count = breakCall(harness, 0, ACCIDENTS[0]);
  const { actions, failed } = await harness.resync();
  const calls = count();
  expect(failed).toEqual({});
  harness.clock.pass(1000);
  await harness.resync();
  const end = await endOf(harness);
  harness.clock.pass(LOST);
  await harness.resync();
  return { kinds: Object.keys(actions) as ActionName[], calls, end, settled: await endOf(harness) };
}

/** After so long a value that was recorded and never published is retired. */
const LOST = 11 * 60_000;

const broken = new Map<ActionName, string[]>();

describe.each(scenarios)('when $name', (scenario) => {
  test.each(ACCIDENTS)(
    'and any one call of the run $name: one more run converges to the same world',
    async (accident) => {
      const { kinds, calls, end, settled } = await undisturbed(scenario);
      const met = new Set<string>();
      for (let step = 1; step <= calls; step += 1) {
        const harness = await prepared(scenario);
        // A value that no Secret ever held is a hash that nobody can present: it may stay for a while.
        const published = new Set(publishedIn(harness));
        const repair = breakCall(harness, step, accident);
        const cut = await harness.resync();
        repair();
        for (const kind of Object.keys(cut.failed)) met.add(kind);
        for (const hash of publishedIn(harness)) published.add(hash);
        if (accident.dies) harness.restart();
        harness.clock.pass(1000);
        const { failed } = await harness.resync();
        expect({ step, failed }).toEqual({ step, failed: {} });
        for (const hash of publishedIn(harness)) published.add(hash);
        expect({ step, differs: differenceOf(await endOf(harness, published), end) }).toEqual({ step, differs: [] });
        const quiet = harness.writes();
        await harness.resync();
        expect({ step, writes: harness.writes() - quiet }).toEqual({ step, writes: 0 });
        expect(await harness.works('sk-forged')).toBe(false);
        harness.clock.pass(LOST);
        await harness.resync();
        expect({ step, late: differenceOf(await endOf(harness), settled) }).toEqual({ step, late: [] });
      }
      // Each kind of action of the scenario had a failure of its own.
      if (!accident.after) expect(kinds.filter((kind) => !met.has(kind))).toEqual([]);
      for (const kind of kinds) broken.set(kind, [...(broken.get(kind) ?? []), scenario.name]);
    },
  );
});

afterAll(() => {
  const never = (Object.keys(handlers) as ActionName[]).filter((kind) => !broken.has(kind));
  expect(never, 'kinds of action that no scenario has').toEqual([]);
});
