// The report of a run: the answer to its caller, its log line and metrics, and the rows of a dry run.
import { rowOf } from '#core/conditions/reasons.ts';
import type { Millis } from '#core/ports/money.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import type { Team } from '#crds/kinds/team.ts';
import { type ActionName, about, type DeletionGuard, type Outcome, type Sign, signOf } from './action.ts';
import type { CertificateAction, CertificateReport } from './certificates/renewal.ts';
import type { ReconcileDependencies } from './deps.ts';
import { wasProcessed } from './observe/keys.ts';
import type { OversizedNamespace } from './observe/object-memory.ts';
import type { RunWorld } from './observe/objects.ts';
import type { PartEnd } from './part-end.ts';
import type { Plan } from './plan.ts';
import type { RunTarget } from './run-target.ts';
import {
  hasFinalizer,
  idOf,
  isDeleted,
  keysIn,
  type MalformedObject,
  type OwnObject,
  pathOf,
  scopeObjectsOf,
  type World,
} from './world.ts';

export interface Report {
  /** Number of objects by kind. */
  readonly observed: Readonly<Partial<Record<KindName, number>>>;
  /** Number of done actions by name. */
  readonly actions: Readonly<Partial<Record<ActionName, number>>>;
  readonly failed: Readonly<Partial<Record<ActionName | 'Observe', number>>>;
  /** Deletions that are not plausible because there are too many. Absent: none. */
  readonly guarded?: ReadonlyArray<DeletionGuard> | undefined;
  /** Changed VirtualKeys that are left to the next runs. Absent: none. */
  readonly deferredKeys?: number | undefined;
  /**
   * Namespaces whose VirtualKeys, Users and Teams are too large together: only deletions were planned. Absent: none.
   */
  readonly oversizedNamespaces?: ReadonlyArray<OversizedNamespace> | undefined;
  /** Objects that change without another request: the caller should send the request again. Absent: none. */
  readonly underWay?: number | undefined;
  /** The object that the trigger names does not exist. `underWay` counts it, because it may be stored later. */
  readonly notFound?: true | undefined;
  /** Steps in the life of the admission webhook's certificate. Absent: none. */
  readonly certificate?: CertificateReport | undefined;
}

export interface RunEnd {
  readonly target: RunTarget;
  readonly all: RunWorld;
  /** The end of each part of the run. */
  readonly parts: ReadonlyArray<PartEnd>;
  /** The number of parts that are left to the next run. */
  readonly left: number;
  readonly certificate: CertificateReport | undefined;
}

export function toReport({ target, all, parts, left, certificate }: RunEnd): Report {
  const results = parts.flatMap((part) => part.results);
  const worlds = parts.map(({ world }) => world);
  const ended = (how: Outcome['ended']) =>
    results.flatMap(({ action, outcome }) => (outcome.ended === how ? [action.action] : []));
  // A spec that cannot be read is reported in the object's status, and is no failure of the run.
  const unobserved = worlds.flatMap(({ unobserved: paths, malformed }) =>
    [...paths.keys()].filter((path) => all.listed.has(path) && !malformed.has(`GatewayInstance/${path}`)),
  );
  const guarded = parts.flatMap((part) => part.guarded);
  const deferred = worlds.flatMap((world) =>
    objectsIn(world).filter(({ kind, metadata }) => world.deferred.has(idOf(kind, metadata))),
  );
  const deferredKeys = deferred.filter(({ kind }) => kind === 'VirtualKey').length;
  // An object that a run has processed already gets its turn later, so sending the request again does not help.
  const unprocessed = deferred.filter((object) => !wasProcessed(object)).length;
  // A trigger may name an object that does not exist yet: the API server stores it after the admission webhook has
  // answered.
  const isAwaited =
    target.look === 'at' &&
    !all.oversizedNamespaces.has(target.namespace) &&
    !objectsOf(all).some(({ kind, metadata }) => idOf(kind, metadata) === idOf(target.kind, target));
  // The VirtualKey of a User that moved to another instance ends in the part of the old instance. Then the User gets a
  // new one.
  const leaving = worlds.flatMap(({ referred }) => keysIn(referred));
  const underWay =
    left + unprocessed + [...worlds.flatMap(objectsIn), ...leaving].filter(isUnderWay).length + (isAwaited ? 1 : 0);
  const { actions = [], failed, missing } = certificate ?? {};
  const isUneventful = actions.length === 0 && failed === undefined && missing === undefined;
  return {
    observed: count(objectsOf(all).map(({ kind }) => kind)),
    actions: count(ended('done')),
    failed: count([...ended('failed'), ...unobserved.map(() => 'Observe' as const)]),
    guarded: guarded.length === 0 ? undefined : guarded,
    deferredKeys: deferredKeys === 0 ? undefined : deferredKeys,
    oversizedNamespaces: all.oversizedNamespaces.size === 0 ? undefined : [...all.oversizedNamespaces.values()],
    underWay: underWay === 0 ? undefined : underWay,
    notFound: isAwaited || undefined,
    certificate: isUneventful ? undefined : certificate,
  };
}

function count<Name extends string>(names: ReadonlyArray<Name>) {
  const groups = Map.groupBy(names.toSorted(), (name) => name);
  // Object.fromEntries loses the type of the names.
  return Object.fromEntries([...groups].map(([name, { length }]) => [name, length])) as Partial<Record<Name, number>>;
}

const objectsOf = (world: World) => [...world.listed.values(), ...scopeObjectsOf(world), ...world.malformed.values()];

const objectsIn = (world: World) => [
  ...[...world.instances.values()].map(({ object }) => object),
  ...scopeObjectsOf(world),
  ...world.malformed.values(),
];

/**
 * True for gateways that start and deletions that are tried again. False for what waits for a person: a stuck rollout,
 * a paused instance.
 */
function isUnderWay(object: OwnObject | MalformedObject): boolean {
  if (isDeleted(object) && hasFinalizer(object)) return true;
  if (object.kind !== 'GatewayInstance' || !('spec' in object) || object.spec.paused) return false;
  const workload = object.status?.conditions?.find(({ type }) => type === 'WorkloadReady');
  return workload?.status === 'False' && workload.reason === 'WorkloadNotReady';
}

/** When the object stopped being ready, was deleted, or was created. Undefined: it is as its spec requires. */
function unconvergedSince({ metadata, status }: OwnObject | MalformedObject): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return metadata.deletionTimestamp;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined) return metadata.creationTimestamp;
  return ready.status === 'True' || rowOf(ready.reason)?.isConverged ? undefined : ready.lastTransitionTime;
}

/**
 * Writes one log line for a run that did something. Metrics are always written, also gauges of 0, because an alert must
 * see its gauge return to 0.
 */
export async function recordRun(
  { log, metrics, clock }: Pick<ReconcileDependencies, 'log' | 'metrics' | 'clock'>,
  report: Report,
  { target, all, parts }: RunEnd,
  from: Millis,
): Promise<void> {
  const now = clock.now();
  metrics.observe('gateway_operator_reconcile_duration_seconds', (now - from) / 1000);
  for (const [kind, size] of Object.entries(report.observed))
    metrics.set('gateway_operator_reconcile_observed', size, { kind });
  for (const guarded of report.guarded ?? []) {
    log.warn('deletions are guarded: a run would remove more than is plausible', { ...guarded });
    metrics.add('gateway_operator_reconcile_guarded_deletions_total', { action: guarded.action });
  }
  if (target.look === 'everywhere') {
    metrics.set(LAST_RESYNC, now / 1000);
    const oldest = { GatewayInstance: 0, VirtualKey: 0, User: 0, Team: 0 };
    for (const object of parts.flatMap(({ world }) => objectsIn(world))) {
      const since = unconvergedSince(object);
      if (since !== undefined) oldest[object.kind] = Math.max(oldest[object.kind], now - Date.parse(since));
    }
    for (const [kind, age] of Object.entries(oldest))
      metrics.set('gateway_operator_reconcile_oldest_unconverged_seconds', age / 1000, { kind });
    metrics.set('gateway_operator_reconcile_deferred_keys', report.deferredKeys ?? 0);
    metrics.set('gateway_operator_reconcile_oversized_namespaces', all.oversizedNamespaces.size);
    for (const oversized of all.oversizedNamespaces.values()) log.warn(NAMESPACE_OVERSIZED, { ...oversized });
    for (const team of parts.flatMap(({ world }) => [...world.teams.values()])) recordTeam(metrics, team);
    const teams = [...all.teams.values()].map(labelsOf);
    for (const name of [TEAM_SPEND, TEAM_BUDGET]) await metrics.retain(name, teams);
    const observed = parts.flatMap(({ world }) =>
      [...world.instances].map(([path, { object }]) => [path, object] as const),
    );
    const instances = new Map([...all.listed, ...observed]).values();
    const namespaces = [...instances].flatMap((instance) => recordNamespaces(metrics, instance));
    for (const name of [NAMESPACE_SPEND, NAMESPACE_BUDGET]) await metrics.retain(name, namespaces);
  }
  const isUneventful = Object.keys(report.actions).length + Object.keys(report.failed).length === 0;
  if (!isUneventful) log.info('reconciled', { ...report, millis: now - from });
}

const NAMESPACE_OVERSIZED =
  'a namespace is oversized: its VirtualKeys, Users and Teams are too large together, and stay as they are; delete or shorten the largest of them';

const LAST_RESYNC = 'gateway_operator_reconcile_last_resync_timestamp_seconds';

/** Written at the start, too: an alert needs a value also if no resync ever ends. */
export function beginResyncs({ metrics, clock }: Pick<ReconcileDependencies, 'metrics' | 'clock'>): void {
  metrics.set(LAST_RESYNC, clock.now() / 1000);
}

const TEAM_SPEND = 'gateway_operator_team_spend_dollars';
const TEAM_BUDGET = 'gateway_operator_team_budget_dollars';

const labelsOf = ({ metadata: { namespace, name } }: Team) => ({ team_namespace: namespace, team: name });

/** Only of Teams, because they are few. The spend of VirtualKeys and Users is in their status. */
function recordTeam(metrics: ReconcileDependencies['metrics'], team: Team): void {
  const { currentSpend } = team.status ?? {};
  const { maxBudget } = team.spec;
  if (currentSpend !== undefined) metrics.set(TEAM_SPEND, Number(currentSpend), labelsOf(team));
  if (maxBudget !== undefined) metrics.set(TEAM_BUDGET, Number(maxBudget), labelsOf(team));
}

const NAMESPACE_SPEND = 'gateway_operator_namespace_spend_dollars';
const NAMESPACE_BUDGET = 'gateway_operator_namespace_budget_dollars';

/** Records the namespaces in the status of an instance; returns their labels. */
function recordNamespaces(metrics: ReconcileDependencies['metrics'], { metadata, status }: GatewayInstance) {
  return (status?.namespaces ?? []).map(({ name, currentSpend, maxBudget }) => {
    const labels = { gateway_instance: pathOf(metadata), key_namespace: name };
    metrics.set(NAMESPACE_SPEND, Number(currentSpend), labels);
    metrics.set(NAMESPACE_BUDGET, Number(maxBudget), labels);
    return labels;
  });
}

/** A row of a dry run. */
export interface PlannedRow {
  /**
   * `Guarded`: not done, because it would remove too much. `Paused`: not done, because `spec.paused` is true.
   */
  readonly action: ActionName | CertificateAction | 'Guarded' | 'Paused';
  readonly kind: string;
  /** Empty for the whole cluster. */
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
    ...guarded.map(({ instance, message }): PlannedRow => {
      const [namespace = '', name = ''] = instance.split('/');
      return { action: 'Guarded', kind: 'GatewayInstance', namespace, name, why: message, sign: '!' };
    }),
    ...paused.map(
      ({ object }): PlannedRow => ({
        action: 'Paused',
        ...about(object, 'only deletions are done'),
        sign: ' ',
      }),
    ),
  ];
}

/** One line per action: `+` created, `~` changed, `-` removed, `!` guarded; indented: a paused instance. */
export function toText(rows: ReadonlyArray<PlannedRow>): string {
  if (rows.length === 0) return 'Nothing to do: everything is as it should be.\n';
  return rows
    .map(({ sign, action, kind, namespace, name, why }) => {
      const at = `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`;
      return action === 'Paused' ? `${sign} ${at} is paused: ${why}\n` : `${sign} ${action} ${at}: ${why}\n`;
    })
    .join('');
}
