// A run, in parts that never wait for each other: observe → plan → act → observe what was touched, until nothing is
// left to do.
import { reasonOf } from '#core/failure/error-text.ts';
import { findUnchanged } from './act/objects.ts';
import { act } from './act.ts';
import { identify, isReport, type Result } from './action.ts';
import { keepCertificate, planCertificate } from './certificates/renewal.ts';
import type { ReconcileDependencies } from './deps.ts';
import type { Memory } from './memory.ts';
import { createObserveContext, type Observation, type ObserveContext } from './observe/context.ts';
import { withLoadLimit } from './observe/load-limit.ts';
import type { RunWorld } from './observe/objects.ts';
import { QUICK_LIMIT, runParts } from './observe/parts.ts';
import { type PartTimeLimits, withShare } from './observe/share.ts';
import { observe, observeTouched } from './observe.ts';
import { type ConvergedPart, toFailedPartEnd, toPartEnd } from './part-end.ts';
import { createPlanContext } from './plan/context.ts';
import { planNamespaceRows } from './plan/namespaces.ts';
import { plan } from './plan.ts';
import { type PlannedRow, type Report, recordRun, toReport, toRows } from './report.ts';
import type { RunTarget } from './run-target.ts';
import { idOf, type Path, pathOf } from './world.ts';

/** Counts as more attempts than any step may have in one run. */
const NEVER_AGAIN = 99;
/** The number of plans of a part whose time for steps is over: one removes finalizers, one writes statuses. */
const LATE_ROUNDS = 2;

interface RunContext {
  readonly deps: ReconcileDependencies;
  readonly memory: Memory;
  readonly target: RunTarget;
  /** Limits the runs that have many objects in memory. Absent: the limit of the process. */
  readonly loads?: Memory['loads'];
}

interface ConditionalRun extends RunContext {
  /** Whether the run continues with the objects that it has loaded. */
  readonly shouldContinue: (all: RunWorld) => boolean;
}

/** Rejects only if the API server cannot be read. Undefined: the run did not continue. */
export async function run(context: RunContext): Promise<Report>;
export async function run(context: ConditionalRun): Promise<Report | undefined>;
export async function run(context: RunContext & Partial<ConditionalRun>): Promise<Report | undefined> {
  const { deps, memory, target, loads = memory.loads, shouldContinue } = context;
  const from = deps.clock.now();
  // The certificate is renewed first: without it the API server cannot call the admission webhook.
  const certificates = target.look === 'everywhere' ? deps.certificates : undefined;
  const certificate = certificates && (await keepCertificate(deps, certificates));
  const report = await withLoadLimit({ deps, memory: { ...memory, loads }, target }, async (limitedDeps, onLoaded) => {
    const observing = await createObserveContext(limitedDeps, memory, target, false);
    const { all } = observing;
    onLoaded(all);
    if (shouldContinue?.(all) === false) return undefined;
    const measureTrigger = (path: Path) => (target.look === 'at' ? measure({ deps, memory }, path) : undefined);
    const { ends: parts, left } = await runParts(observing, (part) => {
      return withShare(observing, part, async (shared, time) =>
        converge(shared, await observe(shared, part, time), time),
      )
        .then(toPartEnd)
        .catch((error) => toFailedPartEnd(observing, part, error))
        .finally(measureTrigger(part.path));
    });
    const end = { target, all, parts, left, certificate };
    const report = toReport(end);
    await recordRun(deps, report, end, from);
    return report;
  });
  if (target.look === 'everywhere') await deps.backends.maintain();
  return report;
}

/**
 * If the trigger is for an instance, writes the rows of its namespaces before its run, which reads all VirtualKeys and
 * may take long. So an edit of key policies is in force within seconds. Never rejects.
 */
export async function writeNamespaceRows({ deps, memory, target }: RunContext): Promise<void> {
  if (target.look !== 'at' || target.kind !== 'GatewayInstance') return;
  try {
    const observing = await createObserveContext(deps, memory, { ...target, look: 'policies' }, false);
    await runParts(observing, (part) =>
      withShare(observing, part, async (shared, timeLimits) => {
        const observed = await observe(shared, part, timeLimits);
        const context = createPlanContext(observed.world, shared.now, deps.hash);
        const actions = [...observed.world.instances].flatMap(([path, view]) => planNamespaceRows(path, view, context));
        await act(actions, { ...shared, ...observed, timeLimits, newValues: new Map() });
      }),
    );
  } catch (error) {
    deps.log.warn('cannot write the key policies of an instance before its VirtualKeys are read', {
      instance: pathOf(target),
      why: reasonOf(error),
    });
  }
}

/** Remembers how long a part takes, also while it runs. Returns the function that its end calls. */
function measure({ deps: { clock, timer }, memory }: Pick<RunContext, 'deps' | 'memory'>, path: Path) {
  const began = clock.now();
  const cancel = timer(QUICK_LIMIT, () => memory.triggerTimes.set(path, QUICK_LIMIT));
  return () => {
    cancel();
    memory.triggerTimes.set(path, clock.now() - began);
  };
}

/** Plans and acts until nothing is left to do or the time is over. */
async function converge(
  context: ObserveContext,
  observed: Observation,
  timeLimits: PartTimeLimits,
): Promise<ConvergedPart> {
  const results: Result[] = [];
  const { world } = observed;
  const acting = { ...context, ...observed, timeLimits, newValues: new Map() };
  for (; ; world.roundsLeft -= 1) {
    if (timeLimits.isLate()) world.roundsLeft = Math.min(world.roundsLeft, LATE_ROUNDS);
    world.isLate = timeLimits.isLate();
    const { actions, guarded, deferred } = plan(world, context.now, context.deps.hash);
    if (actions.length === 0 || world.roundsLeft === 0) return { world: { ...world, deferred }, results, guarded };
    const done = await act(actions, acting);
    for (const result of done) {
      recordResult(result, observed);
      results.push(result);
    }
    await observeTouched(context, observed, done);
  }
}

/**
 * Adds the result of an action to the world. An object with a failed action gets no further action except its status.
 */
function recordResult({ action, outcome }: Result, { world }: Observation): void {
  const id = identify(action);
  const isOver = outcome.ended === 'failed' || outcome.ended === 'skipped';
  world.attempts.set(id, isOver ? NEVER_AGAIN : (world.attempts.get(id) ?? 0) + 1);
  if (action.action === 'PutScope' && action.value?.unlessEnded !== undefined && outcome.ended === 'conflict')
    world.endedValues = new Set(world.endedValues).add(action.value.unlessEnded);
  if (!isOver || isReport(action)) return;
  const { problem } = outcome;
  const message =
    problem.reason === 'ReconcileFailed' ? `${action.action} failed: ${problem.message}` : problem.message;
  world.failures.set(idOf(action.kind, action), { ...problem, message });
}

/** The rows of the next plan, with guarded actions and paused instances. Rejects as a run does. */
export async function dryRun({ deps, memory, target }: RunContext): Promise<ReadonlyArray<PlannedRow>> {
  const certificates = target.look === 'everywhere' ? deps.certificates : undefined;
  const first = certificates ? await planCertificate(deps, certificates) : [];
  const context = await createObserveContext(deps, memory, target, true);
  const { ends: rows } = await runParts(context, (part) =>
    withShare(context, part, async (shared, time) => {
      const { world } = await observe(shared, part, time);
      // A workload is written whole in every run: the API server shows whether a write would change anything.
      const { actions } = plan(world, context.now, deps.hash);
      const same = await findUnchanged(actions, { deps, world });
      for (const action of same) world.attempts.set(identify(action), NEVER_AGAIN);
      return toRows(world, plan(world, context.now, deps.hash));
    }),
  );
  return [...first.map((row) => ({ ...row, sign: '+' }) as const), ...rows.flat()];
}
