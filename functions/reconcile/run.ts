// A run, in parts that never wait for each other: observe → plan → act → observe what was touched, until nothing is left to do.
import type { Millis } from '#core/ports/money.ts';
import type { ActContext } from './act/context.ts';
import { findUnchanged } from './act/workload.ts';
import { act, type Result } from './act.ts';
import { identify, isReport } from './action.ts';
import { foreseeCertificate, keepCertificate } from './certificates/keep.ts';
import type { ReconcileDeps } from './deps.ts';
import { clusterOf, createObserveContext, type Memory, type ObserveContext, type Observed } from './observe/context.ts';
import { nextBatch } from './observe/keys.ts';
import { loadObjects, type Objects } from './observe/objects.ts';
import { eachPart } from './observe/parts.ts';
import { observeTouched, type Touched } from './observe/touched.ts';
import { MAX_ROUNDS, observe } from './observe.ts';
import { type Plan, plan } from './plan.ts';
import {
  type PartReport,
  type PlannedRow,
  type Report,
  record,
  toCertificateRow,
  toPartReport,
  toReport,
  toRows,
} from './report.ts';
import type { Scope } from './scope.ts';
import { idOf } from './world.ts';

/** After so long no other batch of keys is begun: a run ends within two and a half minutes. */
const BATCHES: Millis = 45_000;
/** More than any step is tried in one run. */
const NEVER_AGAIN = 99;

/** Rejects only when the API server cannot say what there is. */
export async function run(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<Report> {
  const context = createObserveContext(deps, memory, scope, false);
  // First: without it nothing new gets in, and nothing else has to be read for it.
  const certificate = context.isSweep && deps.certificates ? await keepCertificate(deps, deps.certificates) : undefined;
  const all = await loadObjects(deps.cluster, scope);
  const parts = await eachPart(all, (part) => runPart(context, part, all));
  const report = toReport({ scope, all, parts, certificate });
  record(deps, report, parts, { isSweep: context.isSweep, millis: deps.clock.now() - context.now });
  return report;
}

/** Batch after batch, the oldest keys first, while there is time: what does not fit goes on with the next run. */
async function runPart(context: ObserveContext, part: Objects, all: Objects): Promise<PartReport> {
  const observed = await observe(context, part, all);
  const results: Result[] = [];
  for (;;) {
    const { guarded } = await converge(context, observed, results);
    const isLate = context.deps.clock.now() - context.now >= BATCHES;
    if (isLate || (await nextBatch(context, observed.world)) === 0)
      return toPartReport(observed.world, { part, results, guarded, now: context.now });
  }
}

/** Until nothing is left to do. Adds to `results`. */
async function converge(context: ObserveContext, observed: Observed, results: Result[]): Promise<Plan> {
  const { world } = observed;
  const acting = toActContext(context, observed);
  for (world.roundsLeft = MAX_ROUNDS; ; world.roundsLeft -= 1) {
    const planned = plan(world, context.now);
    if (planned.actions.length === 0 || world.roundsLeft === 0) return planned;
    const done = await act(planned.actions, acting);
    for (const result of done) {
      remember(result, observed);
      results.push(result);
    }
    await observeTouched(context, observed, done.flatMap(toTouched));
  }
}

function toActContext(context: ObserveContext, { world, links }: Observed): ActContext {
  const { deps, memory, now } = context;
  const forget = async (uid: string) => {
    const store = memory.stores.get(uid);
    memory.databases.delete(uid);
    memory.stores.delete(uid);
    // Its counters are in PostgreSQL: a store that is away keeps some keys that nothing reads any more.
    if (store !== undefined)
      await deps.backends
        .clearStore(uid, store)
        .catch((error: unknown) =>
          deps.log.warn('the keys of a deleted instance stay in its store', { instanceUid: uid, why: `${error}` }),
        );
  };
  return { deps, world, links, now, minted: new Map(), forget, cluster: () => clusterOf(context) };
}

/** What was tried is part of the world. An object that failed is left alone, but for its status. */
function remember({ action, outcome }: Result, { world }: Observed): void {
  const id = identify(action);
  const isOver = outcome.ended === 'failed' || outcome.ended === 'skipped';
  world.attempts.set(id, isOver ? NEVER_AGAIN : (world.attempts.get(id) ?? 0) + 1);
  if (!isOver || isReport(action)) return;
  const problem = outcome.ended === 'failed' ? outcome.problem : { reason: 'ReconcileFailed', message: outcome.why };
  const message =
    problem.reason === 'ReconcileFailed' ? `${action.action} failed: ${problem.message}` : problem.message;
  world.failures.set(idOf(action.kind, action), { ...problem, message });
}

/** An event touches nothing, and what was so already nothing either. */
function toTouched({ action, outcome }: Result): ReadonlyArray<Touched> {
  const { kind, namespace, name } = action;
  if (outcome.ended === 'unchanged' || action.action === 'RecordEvent') return [];
  const answer = outcome.ended === 'done' && outcome.object !== undefined ? { answer: outcome.object } : {};
  const claim = 'scope' in action ? { claim: { ...action, kind: action.scope } } : {};
  const own = { kind, namespace, name, isReport: isReport(action), ...answer, ...claim };
  const key =
    'key' in action
      ? [{ kind: 'VirtualKey', namespace, name: action.key, isReport: false, isOwned: true } as const]
      : [];
  return [own, ...key];
}

/** The next plan, with what waits and why. Rejects as a run does. */
export async function dryRun(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<ReadonlyArray<PlannedRow>> {
  const context = createObserveContext(deps, memory, scope, true);
  const first = context.isSweep && deps.certificates ? await foreseeCertificate(deps, deps.certificates) : [];
  const all = await loadObjects(deps.cluster, scope);
  const rows = await eachPart(all, async (part) => {
    const { world } = await observe(context, part, all);
    // A workload is stated whole in every run: the API server says whether that would change anything.
    const { actions } = plan(world, context.now);
    const same = await findUnchanged(actions, { deps, world });
    for (const action of same) world.attempts.set(identify(action), NEVER_AGAIN);
    return toRows(world, plan(world, context.now));
  });
  return [...first.map(toCertificateRow), ...rows.flat()];
}
