// How does one run go? In parts that never wait for each other: observe once, then plan and act until nothing is left to do.
import { toTimestamp } from '#core/conditions.ts';
import type { Millis } from '#core/ports/money.ts';
import { act, type Deed } from './act.ts';
import type { Action } from './action.ts';
import { keepCertificate } from './certificates/keep.ts';
import type { ReconcileDeps } from './deps.ts';
import { type Due, dueAfter, EVERYTHING, seenByKeys } from './due.ts';
import { takeTurn } from './observe/keys.ts';
import type { Links, Memory } from './observe/links.ts';
import { type Look, lookAt } from './observe/look.ts';
import { loadObjects, type Objects } from './observe/objects.ts';
import { eachPart } from './observe/parts.ts';
import { observe } from './observe.ts';
import type { Guarded } from './plan/guard.ts';
import { judgeInstance } from './plan/judge-instance.ts';
import { plan } from './plan.ts';
import { countObserved, type PartOutcome, type Report, toReport } from './report.ts';
import { logRun, measureBehind } from './run-log.ts';
import type { Scope } from './scope.ts';
import { createTries, identify, type Tries } from './tries.ts';
import { oldestUnconverged } from './unconverged.ts';
import { countUnderWay, isAwaited } from './under-way.ts';
import type { Draft, World } from './world.ts';

/** Longer than any chain of steps; a plan that never ends is a bug that must not run for ever. */
export const MOST_PASSES = 24;
/** After so long no other turn is begun: a run ends within two and a half minutes (DESIGN 6). */
export const TURNS: Millis = 45_000;

/** Rejects only when the API server cannot say what there is. */
export async function run(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<Report> {
  const look = lookAt(scope, { deps, memory, acts: true });
  // First: without it nothing new gets in, and nothing else has to be read for it.
  const certificate = look.sweeps && deps.certificates ? await keepCertificate(deps, deps.certificates) : undefined;
  const all = await loadObjects(deps.cluster, scope);
  const observed = countObserved(all);
  const outcomes = await eachPart(all, (part) => runPart(look, part, all));
  const report = toReport({ observed, parts: outcomes, certificate, awaited: isAwaited(scope, all) ? 1 : 0 });
  if (look.sweeps) measureBehind(deps, outcomes);
  logRun(deps, report, deps.clock.now() - look.now);
  return report;
}

/** Turn after turn, the oldest keys first, while there is time: what does not fit goes on with the next run. */
async function runPart(look: Look, part: Objects, all: Objects): Promise<PartOutcome> {
  const { deps, memory, now } = look;
  const { world, links } = await observe(look, part, all);
  const effort: Effort = { look, world, links, tries: createTries() };
  const deeds: Deed[] = [];
  let { guarded, due } = await converge(effort, EVERYTHING, deeds);
  while (deps.clock.now() - now < TURNS) {
    const turn = await takeTurn(deps, world.keys);
    if (turn.size === 0) break;
    ({ guarded, due } = await converge(effort, { ...due, steps: turn, statuses: turn }, deeds));
  }
  const unobserved = [...world.unobserved.keys()].filter((path) => part.instances.has(path));
  const unconverged = oldestUnconverged(world, now);
  const later = world.keys.values().reduce((sum, key) => sum + (key.later === true ? 1 : 0), 0);
  const underWay = countUnderWay(world);
  return { deeds, guarded, unobserved: unobserved.length, away: awayIn(world, memory), later, unconverged, underWay };
}

interface Effort {
  readonly look: Look;
  readonly world: Draft;
  readonly links: Links;
  readonly tries: Tries;
}

/** Until nothing is left to do for the keys that are due. Adds to `deeds`. */
async function converge({ look, world, links, tries }: Effort, first: Due, deeds: Deed[]) {
  const { deps, memory, now } = look;
  let [guarded, due]: [ReadonlyArray<Guarded>, Due] = [[], first];
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const planned = plan(world, now, deps.hash, tries.isWorthTrying, due);
    ({ guarded, due } = planned);
    if (planned.actions.length === 0) {
      if (deps.audits === true) audit(plan(world, now, deps.hash, tries.isWorthTrying).actions);
      break;
    }
    tries.count(planned.actions);
    const before = seenByKeys(world, judgeInstance);
    const done = await act(planned.actions, { deps, memory, now, world, links });
    due = dueAfter(due, done, before, seenByKeys(world, judgeInstance));
    // What succeeded may be due once more (a status after another step); what failed waits for the next run.
    for (const { action, ended } of done) if (ended === 'failed') tries.end(action);
    for (const deed of done) deeds.push(deed);
  }
  return { guarded, due };
}

function audit(left: ReadonlyArray<Action>): void {
  if (left.length > 0) throw new Error(`keys that were due were not looked at: ${left.map(identify).join(', ')}`);
}

function awayIn({ instances }: World, { away }: Memory): PartOutcome['away'] {
  return [...instances].flatMap(([instance, { object }]) => {
    const found = away.get(object.metadata.uid);
    return found === undefined ? [] : [{ instance, failures: found.failures, until: toTimestamp(found.until) }];
  });
}
