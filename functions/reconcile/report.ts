// What a run saw and did: the answer to whoever asked for it, its log line and metrics, and the rows of a dry run.
import type { Millis } from '#core/ports/money.ts';
import { type KindName, kinds } from '#crds/kinds.ts';
import type { Result } from './act.ts';
import { type ActionName, type Sign, signOf } from './action.ts';
import type { CertificateAction, CertificateReport } from './certificates/keep.ts';
import type { ReconcileDeps } from './deps.ts';
import type { Objects } from './observe/objects.ts';
import { type Guarded, toGuardedMessage } from './plan/guard.ts';
import type { Plan } from './plan.ts';
import type { Scope } from './scope.ts';
import {
  hasFinalizer,
  type InstanceView,
  idOf,
  isDeleted,
  type Malformed,
  type OwnObject,
  type World,
} from './world.ts';

export interface Report {
  /** Objects by kind. */
  readonly observed: Readonly<Partial<Record<KindName, number>>>;
  /** What was done, by action. */
  readonly actions: Readonly<Partial<Record<ActionName, number>>>;
  readonly failed: Readonly<Partial<Record<ActionName | 'Observe', number>>>;
  /** Deletions that were too many to be plausible. Absent: none. */
  readonly guarded?: ReadonlyArray<Guarded>;
  /** Changed keys that come with one of the next runs. Absent: none. */
  readonly deferred?: number;
  /** Objects that change without another request: ask again while there are any. Absent: none. */
  readonly underWay?: number;
  /** Steps in the life of admission's certificate. Absent: none. */
  readonly certificate?: CertificateReport;
}

/** What came of one part of a run. */
export interface PartEnd {
  readonly world: World;
  readonly results: ReadonlyArray<Result>;
  readonly guarded: ReadonlyArray<Guarded>;
}

export interface RunEnd {
  readonly scope: Scope;
  readonly all: Objects;
  readonly parts: ReadonlyArray<PartEnd>;
  readonly certificate: CertificateReport | undefined;
}

export function toReport({ scope, all, parts, certificate }: RunEnd): Report {
  const results = parts.flatMap((part) => part.results);
  const guarded = parts.flatMap((part) => part.guarded);
  const names = (ended: Result['outcome']['ended']) =>
    results.filter(({ outcome }) => outcome.ended === ended).map(({ action }) => action.action);
  // A spec that cannot be read is told in its status: that is no failure of the run.
  const unobserved = new Set(parts.flatMap(({ world }) => [...world.unobserved.keys()]));
  const failed = [
    ...names('failed'),
    ...[...all.instances.keys()].flatMap((path) => (unobserved.has(path) ? ['Observe' as const] : [])),
  ];
  const deferred = parts.flatMap(({ world }) => [...world.keys.values()].filter(({ isDeferred }) => isDeferred)).length;
  const underWay =
    deferred + parts.reduce((sum, { world }) => sum + countUnderWay(world), isAwaited(scope, all) ? 1 : 0);
  const isQuiet = certificate === undefined || (certificate.actions.length === 0 && certificate.failed === undefined);
  return {
    observed: count(
      [...objectsOf(all)].map(({ kind }) => kind),
      kinds.map(({ kind }) => kind),
    ),
    actions: count(names('done')),
    failed: count(failed),
    ...(guarded.length === 0 ? {} : { guarded }),
    ...(deferred === 0 ? {} : { deferred }),
    ...(underWay === 0 ? {} : { underWay }),
    ...(isQuiet ? {} : { certificate }),
  };
}

function count<Name extends string>(names: ReadonlyArray<Name>, order = [...new Set(names)].sort()) {
  const groups = Map.groupBy(names, (name) => name);
  const counts = order.flatMap((name) => (groups.has(name) ? [[name, groups.get(name)?.length]] : []));
  // Object.fromEntries forgets which names there are.
  return Object.fromEntries(counts) as Partial<Record<Name, number>>;
}

const objectsOf = ({ instances, keys, users, teams, malformed }: Objects) =>
  [instances, keys, users, teams, malformed].flatMap((objects) => [...objects.values()]);

const objectsIn = ({ instances, keys, users, teams, malformed }: World) => [
  ...[...instances.values(), ...keys.values()].map(({ object }) => object),
  ...[...users.values(), ...teams.values(), ...malformed.values()],
];

/** Whether a hint named an object that is not there: the API server stores it after admission has answered. */
function isAwaited(scope: Scope, all: Objects): boolean {
  return (
    scope.look === 'at' &&
    !objectsOf(all).some(({ kind, metadata }) => idOf(kind, metadata) === idOf(scope.kind, scope))
  );
}

/** Gateways that start, and deletions that are tried again. What waits for a person (a stuck rollout, a paused instance) is not counted. */
function countUnderWay(world: World): number {
  const starting = [...world.instances.values()].filter(isStarting);
  const deleting = objectsIn(world).filter((object) => isDeleted(object) && hasFinalizer(object));
  return starting.length + deleting.length;
}

function isStarting({ object: { spec, status } }: InstanceView): boolean {
  const workload = status?.conditions?.find(({ type }) => type === 'WorkloadReady');
  return spec.paused !== true && workload?.status === 'False' && workload.reason === 'WorkloadNotReady';
}

/** Not ready because somebody wanted it so: nothing is left to do. */
const WANTED: ReadonlySet<string> = new Set(['Blocked', 'Expired', 'BudgetExceeded']);

/** When the object stopped being ready, was deleted, or was made. Undefined: it is as its spec says. */
function unconvergedSince({ metadata, status }: OwnObject | Malformed): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return metadata.deletionTimestamp;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined) return metadata.creationTimestamp;
  return ready.status === 'True' || WANTED.has(ready.reason) ? undefined : ready.lastTransitionTime;
}

/** One log line for a run that did something, in the domain's words; metrics always. A gauge that is 0 is told: an alert needs a number that comes back. */
export function record(
  { log, metrics }: ReconcileDeps,
  report: Report,
  { scope, parts }: RunEnd,
  { from, now }: Span,
): void {
  metrics.observe('gateway_operator_reconcile_duration_seconds', (now - from) / 1000);
  for (const [kind, size] of Object.entries(report.observed))
    metrics.set('gateway_operator_reconcile_observed', size, { kind });
  for (const guarded of report.guarded ?? []) {
    log.warn('deletions are guarded: a run would remove more than is plausible', { ...guarded });
    metrics.add('gateway_operator_reconcile_guarded_deletions_total', { action: guarded.action });
  }
  if (scope.look === 'everywhere') {
    const oldest = { GatewayInstance: 0, VirtualKey: 0, User: 0, Team: 0 };
    for (const object of parts.flatMap(({ world }) => objectsIn(world))) {
      const since = unconvergedSince(object);
      if (since !== undefined) oldest[object.kind] = Math.max(oldest[object.kind], now - Date.parse(since));
    }
    for (const [kind, age] of Object.entries(oldest))
      metrics.set('gateway_operator_reconcile_oldest_unconverged_seconds', age / 1000, { kind });
    metrics.set('gateway_operator_reconcile_deferred_keys', report.deferred ?? 0);
  }
  const isQuiet = Object.keys(report.actions).length + Object.keys(report.failed).length === 0;
  if (!isQuiet) log.info('reconciled', { ...report, millis: now - from });
}

interface Span {
  readonly from: Millis;
  readonly now: Millis;
}

/** A row of a dry run. */
export interface PlannedRow {
  /** `Guarded`: nothing is done, for it would remove too much. `Paused`: nothing is done, for somebody wants it so. */
  readonly action: ActionName | CertificateAction | 'Guarded' | 'Paused';
  readonly kind: string;
  /** Empty: of the whole cluster. */
  readonly namespace: string;
  readonly name: string;
  readonly why: string;
  readonly sign: Sign | '!' | ' ';
}

export function toRows({ instances }: World, { actions, guarded }: Plan): ReadonlyArray<PlannedRow> {
  const paused = [...instances.values()].filter(({ object }) => object.spec.paused && !isDeleted(object));
  return [
    ...actions.map((planned): PlannedRow => {
      const { action, kind, namespace, name, why } = planned;
      return { action, kind, namespace, name, why, sign: signOf(planned) };
    }),
    ...guarded.map((one): PlannedRow => {
      const [namespace = '', name = ''] = one.instance.split('/');
      return { action: 'Guarded', kind: 'GatewayInstance', namespace, name, why: toGuardedMessage(one), sign: '!' };
    }),
    ...paused.map(({ object: { kind, metadata } }): PlannedRow => {
      const { namespace, name } = metadata;
      return { action: 'Paused', kind, namespace, name, why: 'nothing but deletions', sign: ' ' };
    }),
  ];
}

/** One line per action: `+` something comes, `~` changes, `-` goes, `!` is guarded; indented: a paused instance. */
export function toText(rows: ReadonlyArray<PlannedRow>): string {
  if (rows.length === 0) return 'Nothing to do: everything is as it should be.\n';
  return rows
    .map(({ sign, action, kind, namespace, name, why }) => {
      const at = `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`;
      return action === 'Paused' ? `${sign} ${at} is paused: ${why}\n` : `${sign} ${action} ${at}: ${why}\n`;
    })
    .join('');
}
