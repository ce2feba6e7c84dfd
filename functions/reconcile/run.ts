// How does one run go? Observe once, then plan and act until nothing is left to do: each plan knows what the acts before it changed.

import { act, type Deed } from './act.ts';
import type { Action } from './action.ts';
import { foreseeCertificate, keepCertificate } from './certificates/keep.ts';
import type { ReconcileDeps } from './deps.ts';
import { foresee } from './foresee.ts';
import { learn } from './learn.ts';
import type { Memory } from './observe/links.ts';
import { observe } from './observe.ts';
import type { Held } from './plan/hold.ts';
import { plan } from './plan.ts';
import { countObserved, type PlannedRow, type Report, toReport, toRow } from './report.ts';
import type { Scope } from './scope.ts';

/** Longer than any chain of steps; a plan that never ends is a bug that must not run for ever. */
const MOST_PASSES = 24;
/** So often the same action is tried when somebody else was faster. */
const MOST_TRIES = 3;

/** Rejects only when the API server cannot say what there is. */
export async function run(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<Report> {
  const started = deps.clock.now();
  // First: without it nothing new gets in, and nothing else has to be read for it.
  const { certificates } = deps;
  const isDue = certificates !== undefined && scope.look === 'everywhere';
  const certificate = isDue ? await keepCertificate(deps, certificates) : undefined;
  const { world, links } = await observe({ deps, memory, now: started, acts: true, discovered: {} }, scope);
  const seen = countObserved(world);
  const tries = new Map<string, number>();
  const deeds: Deed[] = [];
  let held: ReadonlyArray<Held> = [];
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const planned = plan(world, started, deps.hash);
    held = planned.held;
    const todo = planned.actions.filter((action) => isWorthTrying(action, tries));
    if (todo.length === 0) break;
    const done = await act(todo, { deps, memory, now: started, world, links });
    // What succeeded may be due once more (a status after another step); what failed waits for the next run.
    for (const { action, ended } of done) if (ended === 'failed') tries.set(identify(action), MOST_TRIES);
    deeds.push(...done);
  }
  const told = certificate !== undefined && (certificate.actions.length > 0 || certificate.failed !== undefined);
  const report = { ...toReport(world, seen, deeds, held), ...(told ? { certificate } : {}) };
  tell(deps, report, deps.clock.now() - started);
  return report;
}

/** The same, but acts are only foreseen. */
export async function dryRun(deps: ReconcileDeps, memory: Memory, scope: Scope): Promise<ReadonlyArray<PlannedRow>> {
  const now = deps.clock.now();
  const { world } = await observe({ deps, memory, now, acts: false, discovered: {} }, scope);
  const tries = new Map<string, number>();
  const { certificates } = deps;
  const isDue = certificates !== undefined && scope.look === 'everywhere';
  const rows: PlannedRow[] = isDue ? [...(await foreseeCertificate(deps, certificates))] : [];
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const todo = plan(world, now, deps.hash).actions.filter((action) => isWorthTrying(action, tries));
    if (todo.length === 0) break;
    rows.push(...todo.map(toRow));
    for (const action of todo) learn(world, foresee(action, world, now));
  }
  return rows;
}

function isWorthTrying(action: Action, tries: Map<string, number>): boolean {
  const id = identify(action);
  const before = tries.get(id) ?? 0;
  tries.set(id, before + 1);
  return before < (action.action === 'RecordEvent' ? 1 : MOST_TRIES);
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
