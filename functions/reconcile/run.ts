// A run, in parts that never wait for each other: observe → plan → act → observe what was touched, until nothing is
// left to do.
import { findUnchanged } from './act/objects.ts';
import { act } from './act.ts';
import { identify, isReport, type Result } from './action.ts';
import { keepCertificate, planCertificate } from './certificates/renewal.ts';
import type { ReconcileDeps } from './deps.ts';
import type { Memory } from './memory.ts';
import { createObserveContext, type Observation, type ObserveContext } from './observe/context.ts';
import { eachPart } from './observe/parts.ts';
import { withRoom } from './observe/room.ts';
import { type PartTime, withShare } from './observe/share.ts';
import { observe, observeTouched } from './observe.ts';
import { type ConvergedPart, toEnd, toFailedEnd } from './part-end.ts';
import { plan } from './plan.ts';
import { type PlannedRow, type Report, record, toReport, toRows } from './report.ts';
import type { Scope } from './scope.ts';
import { idOf } from './world.ts';

/** A count above the attempts of any step in one run. */
const NEVER_AGAIN = 99;
/** Plans of a part that is late: objects that are released, and statuses. */
const LATE_ROUNDS = 2;

/** Rejects only when the API server cannot say what there is. */
export async function run(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<Report> {
  const from = deps.clock.now();
  // First: without it nothing new gets in, and nothing else has to be read for it.
  const keeps = scope.look === 'everywhere' ? deps.certificates : undefined;
  const certificate = keeps && (await keepCertificate(deps, keeps));
  return withRoom({ deps, memory, scope }, async (own, onLoaded) => {
    const context = await createObserveContext(own, memory, scope, false);
    const { all } = context;
    onLoaded(all);
    const { ends: parts, left } = await eachPart(context, (part) =>
      withShare(context, part, async (own, time) => converge(own, await observe(own, part, time), time))
        .then(toEnd)
        .catch((error) => toFailedEnd(context, part, error)),
    );
    const end = { scope, all, parts, left, certificate };
    const report = toReport(end);
    await record(deps, report, end, from);
    return report;
  });
}

/** Plans and acts until nothing is left to do, or the time is over. */
async function converge(context: ObserveContext, observed: Observation, time: PartTime): Promise<ConvergedPart> {
  const results: Result[] = [];
  const { world } = observed;
  const acting = { ...context, ...observed, time, minted: new Map() };
  for (; ; world.roundsLeft -= 1) {
    if (time.isLate()) world.roundsLeft = Math.min(world.roundsLeft, LATE_ROUNDS);
    world.isLate = time.isLate();
    const { actions, guarded, postponed } = plan(world, context.now, context.deps.hash);
    if (actions.length === 0 || world.roundsLeft === 0) return { world: { ...world, postponed }, results, guarded };
    const done = await act(actions, acting);
    for (const result of done) {
      remember(result, observed);
      results.push(result);
    }
    await observeTouched(context, observed, done);
  }
}

/** Adds the result of an action to the world. An object of which one failed is left alone, but for its status. */
function remember({ action, outcome }: Result, { world }: Observation): void {
  const id = identify(action);
  const isOver = outcome.ended === 'failed' || outcome.ended === 'skipped';
  world.attempts.set(id, isOver ? NEVER_AGAIN : (world.attempts.get(id) ?? 0) + 1);
  if (action.action === 'PutScope' && action.value?.unlessEnded !== undefined && outcome.ended === 'conflict')
    world.ended = new Set(world.ended).add(action.value.unlessEnded);
  if (!isOver || isReport(action)) return;
  const problem =
    outcome.ended === 'failed' ? outcome.problem : ({ reason: 'ReconcileFailed', message: outcome.why } as const);
  const message =
    problem.reason === 'ReconcileFailed' ? `${action.action} failed: ${problem.message}` : problem.message;
  world.failures.set(idOf(action.kind, action), { ...problem, message });
}

/** The next plan, with what waits and why. Rejects as a run does. */
export async function dryRun(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<ReadonlyArray<PlannedRow>> {
  const keeps = scope.look === 'everywhere' ? deps.certificates : undefined;
  const first = keeps ? await planCertificate(deps, keeps) : [];
  const context = await createObserveContext(deps, memory, scope, true);
  const { ends: rows } = await eachPart(context, (part) =>
    withShare(context, part, async (own, time) => {
      const { world } = await observe(own, part, time);
      // A workload is stated whole in every run: the API server says whether that would change anything.
      const { actions } = plan(world, context.now, deps.hash);
      const same = await findUnchanged(actions, { deps, world });
      for (const action of same) world.attempts.set(identify(action), NEVER_AGAIN);
      return toRows(world, plan(world, context.now, deps.hash));
    }),
  );
  return [...first.map((row) => ({ ...row, sign: '+' }) as const), ...rows.flat()];
}
