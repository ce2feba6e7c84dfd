// How does one run go? In parts that never wait for each other: observe once, then plan and act until nothing is left to do.

import { toTimestamp } from '#core/conditions.ts';
import type { Millis } from '#core/ports/money.ts';
import { aboutObject, noTracer, type Span } from '#core/ports/tracer.ts';
import { kinds } from '#crds/kinds.ts';
import { act, type Deed } from './act.ts';
import type { Action } from './action.ts';
import { foreseeCertificate, keepCertificate } from './certificates/keep.ts';
import type { ReconcileDeps } from './deps.ts';
import { type Due, dueAfter, EVERYTHING, seenByKeys } from './due.ts';
import { foresee } from './foresee.ts';
import { learn } from './learn.ts';
import { each } from './observe/each.ts';
import { takeTurn } from './observe/keys.ts';
import type { Links, Memory } from './observe/links.ts';
import type { Look } from './observe/look.ts';
import { loadObjects, type Objects } from './observe/objects.ts';
import { partition } from './observe/parts.ts';
import { observe } from './observe.ts';
import type { Held } from './plan/hold.ts';
import { judgeInstance } from './plan/judge-instance.ts';
import { isPaused } from './plan/paused.ts';
import { plan } from './plan.ts';
import {
  countObserved,
  type PartOutcome,
  type PlannedLine,
  type Report,
  toCertificateLine,
  toHeldLine,
  toLine,
  toPausedLine,
  toReport,
} from './report.ts';
import type { Scope } from './scope.ts';
import { oldestUnconverged } from './unconverged.ts';
import type { Draft, World } from './world.ts';

/** Longer than any chain of steps; a plan that never ends is a bug that must not run for ever. */
const MOST_PASSES = 24;
/** Beyond this many that are slow, the others wait. */
const PARTS = 64;
/** After so long no other turn is begun: a run ends within two and a half minutes (DESIGN 6). */
const TURNS: Millis = 45_000;
/** So often the same action is tried when somebody else was faster. */
const MOST_TRIES = 3;

/** Rejects only when the API server cannot say what there is. `parent`: the trace of whoever asked. */
export async function run(deps: ReconcileDeps, memory: Memory, scope: Scope, parent?: string): Promise<Report> {
  const object = 'kind' in scope ? aboutObject(scope) : {};
  return (deps.tracer ?? noTracer).span(
    'reconcile',
    { 'gateway_operator.look': scope.look, ...object },
    async (span) => {
      const report = await runTraced(deps, memory, scope, span);
      const { observed, actions, failed } = report;
      span.add({
        'gateway_operator.observed': total(observed),
        'gateway_operator.actions': total(actions),
        'gateway_operator.failed': total(failed),
      });
      if (total(failed) > 0) span.fail(Object.keys(failed).join(', '));
      return report;
    },
    { parent },
  );
}

const total = (counts: Readonly<Partial<Record<string, number>>>): number =>
  Object.values(counts).reduce((sum: number, count) => sum + (count ?? 0), 0);

async function runTraced(deps: ReconcileDeps, memory: Memory, scope: Scope, span: Span): Promise<Report> {
  const started = deps.clock.now();
  // First: without it nothing new gets in, and nothing else has to be read for it.
  const { certificates } = deps;
  const isDue = certificates !== undefined && scope.look === 'everywhere';
  const certificate = isDue ? await keepCertificate(deps, certificates) : undefined;
  const all = await loadObjects(deps.cluster, scope);
  const observed = countObserved(all);
  const look: Look = { deps, memory, now: started, sweeps: scope.look === 'everywhere', acts: true, discovered: {} };
  const ended = await Promise.allSettled(
    await inParts(all, (part) => {
      const { instances, keys } = part;
      const attributes = {
        'gateway_operator.instances': [...instances.keys()].join(' '),
        'gateway_operator.keys': keys.size,
      };
      return span.span('reconcile part', attributes, (within) => runPart(look, part, all, within));
    }),
  );
  const outcomes = ended.map((part) => {
    if (part.status === 'rejected') throw part.reason;
    return part.value;
  });
  const told = certificate !== undefined && (certificate.actions.length > 0 || certificate.failed !== undefined);
  const report = { ...toReport(observed, outcomes), ...(told ? { certificate } : {}) };
  if (look.sweeps) tellUnconverged(deps, outcomes);
  tell(deps, report, deps.clock.now() - started);
  return report;
}

/** Settled, each of them, before this resolves: nothing goes on behind an answer. */
async function inParts<T>(all: Objects, visit: (part: Objects) => Promise<T>): Promise<ReadonlyArray<Promise<T>>> {
  return each(partition(all), PARTS, async (part) => {
    const visited = visit(part);
    await visited.catch(() => undefined);
    // As a promise: who asked decides what a rejection means.
    return [visited] as const;
  }).then((parts) => parts.map(([visited]) => visited));
}

/** Turn after turn, the oldest keys first, while there is time: what does not fit goes on with the next run. */
async function runPart(look: Look, part: Objects, all: Objects, span: Span): Promise<PartOutcome> {
  const { deps, memory, now } = look;
  const { world, links } = await observe(look, part, all);
  const effort: Effort = { look, world, links, span, tries: new Map() };
  const deeds: Deed[] = [];
  let { held, due } = await converge(effort, EVERYTHING, deeds);
  while (deps.clock.now() - now < TURNS) {
    const turn = await takeTurn({ ...look, sweep: false, count: all.keys.size }, world.keys);
    if (turn.size === 0) break;
    ({ held, due } = await converge(effort, { ...due, steps: turn, statuses: turn }, deeds));
  }
  const unobserved = [...world.unobserved.keys()].filter((path) => part.instances.has(path));
  const unconverged = oldestUnconverged(world, now);
  const later = world.keys.values().reduce((sum, key) => sum + (key.later === true ? 1 : 0), 0);
  return { deeds, held, unobserved: unobserved.length, away: awayIn(world, memory), later, unconverged };
}

interface Effort {
  readonly look: Look;
  readonly world: Draft;
  readonly links: Links;
  readonly span: Span;
  readonly tries: Map<string, number>;
}

/** Until nothing is left to do for the keys that are due. Adds to `deeds`. */
async function converge({ look, world, links, span, tries }: Effort, first: Due, deeds: Deed[]) {
  const { deps, memory, now } = look;
  const isWorth = (action: Action) => isWorthTrying(action, tries);
  let [held, due]: [ReadonlyArray<Held>, Due] = [[], first];
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const planned = plan(world, now, deps.hash, isWorth, due);
    ({ held, due } = planned);
    for (const action of planned.actions) countTry(action, tries);
    if (planned.actions.length === 0) {
      if (deps.audits === true) audit(plan(world, now, deps.hash, isWorth).actions);
      break;
    }
    const before = seenByKeys(world, judgeInstance);
    const done = await act(planned.actions, { deps, memory, now, world, links, span });
    due = dueAfter(due, done, before, seenByKeys(world, judgeInstance));
    // What succeeded may be due once more (a status after another step); what failed waits for the next run.
    for (const { action, ended } of done) if (ended === 'failed') tries.set(identify(action), MOST_TRIES);
    for (const deed of done) deeds.push(deed);
  }
  return { held, due };
}

function audit(left: ReadonlyArray<Action>): void {
  if (left.length > 0) throw new Error(`keys that were due were not looked at: ${left.map(identify).join(', ')}`);
}

/** By kind, none is 0: an alert needs a number that comes back. */
function tellUnconverged({ metrics }: ReconcileDeps, parts: ReadonlyArray<PartOutcome>): void {
  for (const { kind } of kinds) {
    const oldest = parts.reduce((most, { unconverged }) => Math.max(most, unconverged[kind]), 0);
    metrics.set('gateway_operator_reconcile_oldest_unconverged_seconds', oldest / 1000, { kind });
  }
}

/** The same, but acts are only foreseen. */
export async function dryRun(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<ReadonlyArray<PlannedLine>> {
  const now = deps.clock.now();
  const { certificates } = deps;
  const isDue = certificates !== undefined && scope.look === 'everywhere';
  const first = isDue ? await foreseeCertificate(deps, certificates) : [];
  const all = await loadObjects(deps.cluster, scope);
  const look: Look = { deps, memory, now, sweeps: scope.look === 'everywhere', acts: false, discovered: {} };
  const rows = await Promise.all(await inParts(all, (part) => foreseePart(look, part, all)));
  return [...first.map(toCertificateLine), ...rows.flat()];
}

function awayIn({ instances }: World, { away }: Memory): PartOutcome['away'] {
  return [...instances].flatMap(([instance, { object }]) => {
    const found = away.get(object.metadata.uid);
    return found === undefined ? [] : [{ instance, failures: found.failures, until: toTimestamp(found.until) }];
  });
}

async function foreseePart(look: Look, part: Objects, all: Objects): Promise<ReadonlyArray<PlannedLine>> {
  const { deps, now } = look;
  const { world } = await observe(look, part, all);
  const tries = new Map<string, number>();
  const rows: PlannedLine[] = [];
  let held: ReadonlyArray<Held> = [];
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const { actions: todo, ...rest } = plan(world, now, deps.hash, (action) => isWorthTrying(action, tries));
    held = rest.held;
    for (const action of todo) countTry(action, tries);
    if (todo.length === 0) {
      const turn = await takeTurn({ ...look, sweep: false, count: all.keys.size }, world.keys);
      if (turn.size === 0 || deps.clock.now() - now >= TURNS) break;
      pass = -1;
    }
    for (const action of todo) rows.push(toLine(action));
    for (const action of todo) learn(world, foresee(action, world, now));
  }
  const paused = [...part.instances.values()].filter(isPaused);
  return [...rows, ...held.map(toHeldLine), ...paused.map(toPausedLine)];
}

function isWorthTrying(action: Action, tries: ReadonlyMap<string, number>): boolean {
  return (tries.get(identify(action)) ?? 0) < (action.action === 'RecordEvent' ? 1 : MOST_TRIES);
}

function countTry(action: Action, tries: Map<string, number>): void {
  const id = identify(action);
  tries.set(id, (tries.get(id) ?? 0) + 1);
}

function identify(action: Action): string {
  const detail =
    action.action === 'RecordEvent'
      ? action.once
      : 'claim' in action
        ? action.claim
        : 'part' in action
          ? action.part
          : '';
  return `${action.action} ${action.kind}/${action.namespace}/${action.name} ${detail}`;
}

/** One line per run that did something, in the domain's words; metrics always. */
function tell({ log, metrics }: ReconcileDeps, report: Report, millis: number): void {
  metrics.observe('gateway_operator_reconcile_duration_seconds', millis / 1000);
  for (const [kind, count] of Object.entries(report.observed))
    metrics.set('gateway_operator_reconcile_observed', count, { kind });
  for (const held of report.held ?? []) {
    log.warn('deletions are held: a run would remove more than is plausible', { ...held });
    metrics.add('gateway_operator_reconcile_held_total', { action: held.action });
  }
  const quiet = Object.keys(report.actions).length + Object.keys(report.failed).length === 0;
  if (!quiet) log.info('reconciled', { ...report, millis });
}
