// Whether the objects that run an instance's gateway serve, where, and with which snapshot, as controllers report it in
// their status.
import { type Reason, toOtherReason } from '#core/conditions/reasons.ts';
import { LOGINS_ANNOTATION, SNAPSHOT_ANNOTATION, VERSION_ANNOTATION } from '#crds/names/group.ts';
import { scaleOf, serviceUrl } from '../workload/desired-objects.ts';
import type { LiveWorkloadObject } from '../workload/live-object.ts';
import {
  laterVersion,
  WORKLOAD_OBJECTS_OF,
  type WorkloadObjectKind,
  type WorkloadType,
  workloadObjectTitle,
} from '../workload/workload-objects.ts';
import { type CheckResult, type InstanceView, idOf, type Problem, type World } from '../world.ts';

export interface WorkloadConditions {
  readonly check: CheckResult;
  /** The address inside the cluster. */
  readonly url: string | undefined;
  /** Undefined: the type for `Auto` could not be decided, now or in an earlier run. */
  readonly type: WorkloadType | undefined;
  /** Why no workload object of the workload is written now. Running Pods continue. */
  readonly writeProblem: Problem | undefined;
  /** Whether all serving Pods have the published snapshot. */
  readonly isCurrent: boolean;
  /** Whether the only cause that nothing serves is a rollout, which removes the earlier Pods first. */
  readonly isRolling: boolean;
}

const TYPES = ['Deployment', 'Knative'] as const;

/** While a new type starts, the previous one continues serving at its address. */
export function evaluateWorkload(view: InstanceView, world: World): WorkloadConditions {
  const own = evaluateOwnType(view, world);
  const before = internalUrlBefore(view);
  if (own.check.ok || before === undefined) return own;
  const other = TYPES.find((type) => type !== own.type && evaluateType(view, type)?.check.ok);
  if (other === undefined) return own;
  const title = workloadObjectTitle(WORKLOAD_OBJECTS_OF[other][0], view.object.metadata.name);
  return {
    ...own,
    url: before,
    check: { ok: true, message: `${title} serves while the new workload starts: ${own.check.message}` },
  };
}

/** An earlier version of the operator wrote only `url`. */
const internalUrlBefore = ({ object: { status } }: InstanceView): string | undefined =>
  status?.internalURL ?? status?.url;

/** The workload of the instance's type, without that of another type. */
export function evaluateOwnType(view: InstanceView, world: World): WorkloadConditions {
  const { object, servedAt } = view;
  const urlBefore = internalUrlBefore(view);
  const typeBefore = object.status?.workloadType;
  const type = decideType(view, world);
  if (typeof type !== 'string') {
    const undecided = { url: urlBefore, type: typeBefore, writeProblem: type, isCurrent: false, isRolling: false };
    return { check: { ok: false, ...type }, ...undecided };
  }
  if (type === 'External' || type === 'Local') {
    const url = type === 'External' ? object.spec.workload.url : servedAt;
    const message = type === 'External' ? `runs elsewhere, at ${url}` : 'the local stack serves it in its own process';
    return { check: { ok: true, message }, url, type, writeProblem: undefined, isCurrent: true, isRolling: false };
  }
  const writeProblem = view.workloadProblem ?? whyNotWritten(view, type, world);
  const refused = world.failures.get(idOf(object.kind, object.metadata));
  const leftAlone = WORKLOAD_OBJECTS_OF[type].flatMap((objectKind) => whyLeftAlone(view, objectKind, world) ?? []);
  const foreign = leftAlone.flatMap((one) => (one.reason === undefined ? [] : [one]));
  const problem = refused?.reason === 'WorkloadRefused' ? refused : foreign[0];
  const { check, isCurrent, isRolling, url } = evaluateType(view, type) ?? ABSENT;
  const ofKnative = check === NOT_CREATED ? undefined : (url ?? (typeBefore === type ? urlBefore : undefined));
  const own = { url: type === 'Deployment' ? serviceUrl(object) : ofKnative, type, writeProblem, isCurrent, isRolling };
  // Without its own Service no client reaches the gateway.
  const blocking = check.ok ? foreign.find(({ objectKind }) => objectKind === 'Service') : problem;
  const cause = blocking ?? (check === NOT_CREATED ? writeProblem : undefined);
  if (cause !== undefined) return { check: { ok: false, ...cause }, ...own, isRolling: false };
  const obstacle = problem ?? leftAlone[0] ?? writeProblem;
  if (obstacle === undefined) return { check, ...own };
  return { check: { ...check, message: `${check.message}; changes wait: ${obstacle.message}` }, ...own };
}

/**
 * `Auto` is decided once, and a failed discovery never changes the decision (DESIGN 6). A platform that serves
 * instances itself serves those with `Auto`.
 */
function decideType({ object, servedAt }: InstanceView, { platform }: World): Problem | WorkloadType {
  const { type } = object.spec.workload;
  if (type !== 'Auto') return type;
  if (servedAt !== undefined) return 'Local';
  const before = object.status?.workloadType;
  if (before === 'Knative' || before === 'Deployment') return before;
  const { knative } = platform;
  if (typeof knative === 'boolean') return knative ? 'Knative' : 'Deployment';
  const message = `the API server does not show whether Knative is installed (${knative}); the next resync asks again, or set spec.workload.type`;
  return { reason: 'DiscoveryFailed', message };
}

/**
 * Pods mount the Secrets of database and counter store, and read them when they start. While one of these is missing, a
 * new Pod could not start, so the workload is not changed. The same applies while the counter store may not be used as
 * the spec asks, and while the database or counter store of a changed Secret does not answer: new Pods could not serve.
 */
function whyNotWritten(view: InstanceView, type: WorkloadType, { platform }: World): Problem | undefined {
  if (type === 'Knative' && platform.knative === false) {
    const message =
      'Knative Serving is not installed (the cluster serves no serving.knative.dev/v1): install it, or set spec.workload.type to Deployment';
    return { reason: 'KnativeNotInstalled', message };
  }
  return view.fileProblem ?? whyNotShared(view, type, platform.manyProcesses) ?? whyNotReached(view);
}

/** The problem of a database or counter store that Pods with the previous connections may still reach. */
function whyNotReached({ workloadObjects, loginHash, database, store }: InstanceView): Problem | undefined {
  const read = TYPES.flatMap((type) => {
    const main = workloadObjects.get(WORKLOAD_OBJECTS_OF[type][0]);
    if (main === undefined) return [];
    return main.metadata.annotations[LOGINS_ANNOTATION] ?? [];
  });
  if (read.length === 0 || read.includes(loginHash)) return undefined;
  if (!database.ok) return database;
  return store.ok ? undefined : store;
}

/** Why several processes would need counters that are in the memory of one process. */
export function whyNotShared(
  { object, storeType }: InstanceView,
  type: WorkloadType | undefined,
  manyProcesses: boolean,
): Problem | undefined {
  const share = 'write the address of Redis or Upstash into the Secret';
  const { max } = scaleOf(object);
  const several: Readonly<Record<WorkloadType, string | undefined>> = {
    Knative: `Knative starts and stops processes as it needs them: ${share}, or set spec.workload.type to Deployment`,
    Deployment:
      max === 1 ? undefined : `spec.workload.scale lets ${max} processes serve the instance: ${share}, or scale to 1`,
    External: manyProcesses ? `on this platform several processes may serve the instance: ${share}` : undefined,
    Local: undefined,
  };
  const why = storeType === 'memory' && type !== undefined ? several[type] : undefined;
  if (why === undefined) return undefined;
  const message = `the counter store is "memory", which only one process can use, and ${why}`;
  return { reason: 'StoreNotShared', message };
}

/** `reason`: absent if the workload object belongs to the instance, which may work as the workload object is. */
type LeftAlone = { readonly objectKind: WorkloadObjectKind; readonly message: string } & (
  | { readonly reason: 'WorkloadConflict' }
  | { readonly reason?: undefined }
);

/**
 * Why a workload object is not changed: it belongs to somebody else, or a later version of the operator wrote it. An
 * operator that was rolled back, or that an update has not stopped yet, never undoes what a later version wrote.
 */
export function whyLeftAlone(
  { object, workloadObjects }: InstanceView,
  objectKind: WorkloadObjectKind,
  { platform }: World,
): LeftAlone | undefined {
  const live = workloadObjects.get(objectKind);
  if (live === undefined) return undefined;
  const title = workloadObjectTitle(objectKind, object.metadata.name);
  if (!live.isOurs) {
    const message = `${title} exists and does not belong to this instance, so it is not changed: delete it, or give the instance another name`;
    return { objectKind, reason: 'WorkloadConflict', message };
  }
  const later = laterVersion(live, platform.version);
  if (later === undefined) return undefined;
  const message = `${title} was written by version ${later} of the operator, which is later than this one, so it is not changed: update the operator, or remove the annotation ${VERSION_ANNOTATION} from it`;
  return { objectKind, message };
}

/**
 * The state of the workload object that runs a gateway, as its controller reports it. `url`: its address, if only the
 * controller knows it.
 */
type WorkloadState = Pick<WorkloadConditions, 'check' | 'isCurrent' | 'isRolling'> & {
  readonly url?: string | undefined;
};

const NOT_CREATED = {
  ok: false,
  reason: 'WorkloadNotReady',
  message: 'the workload does not exist yet',
} as const;
const ABSENT: WorkloadState = { check: NOT_CREATED, isCurrent: false, isRolling: false };

/**
 * `isUp`: some Pods serve. `isNewest`: no Pod of an earlier configuration runs. `stuck`: why the newest does not start.
 * `isRolling`: the newest has not started yet, and may.
 */
interface WorkloadObservation {
  readonly isUp: boolean;
  readonly isNewest: boolean;
  readonly stuck: Problem | undefined;
  readonly isRolling: boolean;
  readonly starting: string;
}

function evaluateType(view: InstanceView, type: keyof typeof WORKLOAD_OBJECTS_OF): WorkloadState | undefined {
  const live = view.workloadObjects.get(WORKLOAD_OBJECTS_OF[type][0]);
  if (live === undefined || !live.isOurs) return undefined;
  const { generation } = live.metadata;
  const { observedGeneration, url } = live.status;
  const { isUp, isNewest, stuck, isRolling, starting } =
    type === 'Deployment' ? readDeployment(live, view) : readKnative(live);
  const title = workloadObjectTitle(WORKLOAD_OBJECTS_OF[type][0], view.object.metadata.name);
  if (!isUp) {
    const { reason, message } = stuck ?? { reason: NOT_CREATED.reason, message: `is starting: ${starting}` };
    const sentence = `${title}${stuck === undefined ? ' ' : ': '}${message}`;
    return { check: { ok: false, reason, message: sentence }, url, isCurrent: false, isRolling };
  }
  const isSettled = observedGeneration >= generation && isNewest && stuck === undefined;
  const rollout = isSettled ? '' : '; its new configuration is being rolled out';
  const further = stuck === undefined ? rollout : `, but its new configuration does not start: ${stuck.message}`;
  const isCurrent = isSettled && live.spec.template.metadata.annotations[SNAPSHOT_ANNOTATION] === view.snapshot.hash;
  return { check: { ok: true, message: `${title} serves${further}` }, url, isCurrent, isRolling: false };
}

/**
 * Pods are not read: the Deployment's deadline for a rollout shows that they cannot start, and the message names the
 * command that shows why.
 */
function readDeployment({ metadata, spec, status }: LiveWorkloadObject, { object }: InstanceView): WorkloadObservation {
  const { conditions, replicas, updatedReplicas: updated, availableReplicas: available } = status;
  const failed = conditions.find((one) => one.type === 'ReplicaFailure' && one.status === 'True');
  const late = conditions.find((one) => one.type === 'Progressing' && one.status === 'False');
  const podsCommand = `kubectl -n ${metadata.namespace} get pods -l app.kubernetes.io/instance=${object.metadata.name} shows why (an image that cannot be pulled, a missing Secret, no free node)`;
  const reason = failed === undefined ? toReason(late?.reason, 'ProgressDeadlineExceeded') : 'ReplicaFailure';
  const message = failed?.message ?? (late && `${late.message} ${podsCommand}`);
  const isUp = conditions.some((one) => one.type === 'Available' && one.status === 'True');
  const hasArrived = conditions.some((one) => one.type === 'Progressing' && one.reason === 'NewReplicaSetAvailable');
  const counted = `${available} of ${spec.replicas} replicas are available`;
  return {
    isUp,
    isNewest: updated >= spec.replicas && replicas <= updated && available >= updated,
    stuck: message === undefined ? undefined : { reason, message: isUp ? message : `${counted}: ${message}` },
    isRolling: message === undefined && (updated < spec.replicas || !hasArrived),
    starting: `${counted}; if this lasts longer than a minute, ${podsCommand}`,
  };
}

/** The controller's reason, or ours if it has none. */
const toReason = (word: string | undefined, ours: Reason) => (word ? toOtherReason(word) : ours);

/** The route of a Knative Service serves while any revision does. Its `Ready` also requires the newest. */
function readKnative({ status }: LiveWorkloadObject): WorkloadObservation {
  const { conditions, url, latestCreatedRevisionName, latestReadyRevisionName, traffic } = status;
  const isTrue = (type: string) => conditions.find((one) => one.type === type)?.status === 'True';
  const bad = conditions.filter((one) => one.status === 'False');
  const [cause] = [...bad.filter(({ type }) => type !== 'Ready'), ...bad];
  return {
    isUp: isTrue('RoutesReady') && url !== undefined,
    isNewest:
      isTrue('Ready') &&
      latestCreatedRevisionName === latestReadyRevisionName &&
      traffic.every(({ latestRevision }) => latestRevision),
    stuck: cause && { reason: toReason(cause.reason, 'WorkloadNotReady'), message: cause.message },
    // The previous revision serves meanwhile.
    isRolling: false,
    starting: 'Knative does not report it as ready yet',
  };
}
