// What would a run do? Planned as in a run; what each act leads to is foreseen in place of done.
import { foreseeCertificate } from './certificates/keep.ts';
import type { ReconcileDeps } from './deps.ts';
import { foresee } from './foresee.ts';
import { learn } from './learn.ts';
import { takeTurn } from './observe/keys.ts';
import type { Memory } from './observe/links.ts';
import { type Look, lookAt } from './observe/look.ts';
import { loadObjects, type Objects } from './observe/objects.ts';
import { eachPart } from './observe/parts.ts';
import { observe } from './observe.ts';
import type { Guarded } from './plan/guard.ts';
import { isPaused } from './plan/paused.ts';
import { plan } from './plan.ts';
import { type PlannedLine, toCertificateLine, toGuardedLine, toLine, toPausedLine } from './report.ts';
import { MOST_PASSES, TURNS } from './run.ts';
import type { Scope } from './scope.ts';
import { createTries, type Tries } from './tries.ts';
import type { Draft } from './world.ts';

/** Rejects as a run does. */
export async function dryRun(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<ReadonlyArray<PlannedLine>> {
  const look = lookAt(scope, { deps, memory, acts: false });
  const first = look.sweeps && deps.certificates ? await foreseeCertificate(deps, deps.certificates) : [];
  const all = await loadObjects(deps.cluster, scope);
  const lines = await eachPart(all, (part) => foreseePart(look, part, all));
  return [...first.map(toCertificateLine), ...lines.flat()];
}

/** Turn after turn, as a run takes them. */
async function foreseePart(look: Look, part: Objects, all: Objects): Promise<ReadonlyArray<PlannedLine>> {
  const { deps, now } = look;
  const { world } = await observe(look, part, all);
  const effort = { look, world, tries: createTries(), lines: [] as PlannedLine[] };
  let guarded = converge(effort);
  while (deps.clock.now() - now < TURNS) {
    const turn = await takeTurn(deps, world.keys);
    if (turn.size === 0) break;
    guarded = converge(effort);
  }
  const paused = [...part.instances.values()].filter(isPaused);
  return [...effort.lines, ...guarded.map(toGuardedLine), ...paused.map(toPausedLine)];
}

interface Effort {
  readonly look: Look;
  readonly world: Draft;
  readonly tries: Tries;
  readonly lines: PlannedLine[];
}

/** Until nothing is left to do. Adds to `lines`, and answers what is guarded. */
function converge({ look: { deps, now }, world, tries, lines }: Effort): ReadonlyArray<Guarded> {
  let guarded: ReadonlyArray<Guarded> = [];
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const planned = plan(world, now, deps.hash, tries.isWorthTrying);
    guarded = planned.guarded;
    if (planned.actions.length === 0) break;
    tries.count(planned.actions);
    for (const action of planned.actions) lines.push(toLine(action));
    for (const action of planned.actions) learn(world, foresee(action, world, now));
  }
  return guarded;
}
