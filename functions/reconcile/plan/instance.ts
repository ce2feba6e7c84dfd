// The steps of an instance: finalizer, database, snapshot, the objects that run its gateway, and its route.
import { MAX_SNAPSHOT } from '#core/models/compile-snapshot.ts';
import { type Action, about } from '../action.ts';
import { desiredParts } from '../workload/desired-objects.ts';
import { desiredRoute, requestedRoute } from '../workload/route.ts';
import { ROUTES, WORKLOAD_OBJECTS_OF } from '../workload/workload-objects.ts';
import { hasFinalizer, type InstanceView, idOf, isAbandoned, isDeleted, type SnapshotView } from '../world.ts';
import { hasLedger, requestedLedger } from './conditions-instance.ts';
import { evaluateOwnType } from './conditions-workload.ts';
import type { PlanContext } from './context.ts';
import { instanceObstacle, planInstanceDeletion } from './deletion.ts';
import { createWorkloadActions } from './workload-objects.ts';

/**
 * The number of snapshots that are kept beside the one that is served, the published one included: running Pods and
 * revisions may have mounted the others.
 */
const KEPT_SNAPSHOTS = 2;

export function planInstance(view: InstanceView, context: PlanContext): Action[] {
  const { object, entryProblems } = view;
  if (entryProblems === 'unread') return [];
  if (isAbandoned(object)) return planAbandonedInstance(view, context);
  if (isDeleted(object)) return planInstanceDeletion(view, context);
  if (object.spec.paused || context.world.failures.has(idOf(object.kind, object.metadata))) return [];
  const finalizer: Action = { action: 'AddFinalizer', ...about(object, 'it will be recorded in its database') };
  const steps = [
    ...(hasFinalizer(object) ? [] : [finalizer]),
    ...planDeletedInstances(view),
    ...planOpening(view),
    ...planSnapshot(view, context),
  ];
  // After a failed action a run does nothing more for the instance, and a route that is refused must not hold up the
  // rest.
  return [...steps, ...planWorkload(view, context), ...(steps.length === 0 ? planRoute(view, context) : [])];
}

/** Closes an instance as if it were gone. Its object stays as long as a finalizer of another program keeps it. */
function planAbandonedInstance(view: InstanceView, { world }: PlanContext): Action[] {
  const { object, database, claims } = view;
  const isClosed = database.ok && !database.isOpen && claims.size === 0;
  if (isClosed || instanceObstacle(view, world) !== undefined) return [];
  return [
    { action: 'CloseInstance', ...about(object, 'it is deleted, and only a finalizer of another program keeps it') },
  ];
}

/** Closes instances that were deleted while their database could not be reached: their VirtualKeys stop working. */
function planDeletedInstances({ object, deletedInstances }: InstanceView): Action[] {
  return deletedInstances.map(({ uid, namespace, name }) => {
    const why = `instance ${namespace}/${name} (${uid}) is gone, but its VirtualKeys still work in the same database`;
    return { action: 'CloseOrphan', ...about(object, why), uid };
  });
}

function planOpening(view: InstanceView): Action[] {
  const { object, database } = view;
  if (!database.ok || hasLedger(view)) return [];
  const ledger = requestedLedger(object);
  const adopts = `, and it continues with the VirtualKeys and the spend of instance ${ledger?.uid} if that is closed`;
  const why = `${database.message} does not have this instance yet${ledger === undefined ? '' : adopts}`;
  return [{ action: 'OpenInstance', ...about(object, why), ledger }];
}

function planSnapshot(view: InstanceView, context: PlanContext): Action[] {
  const { object, snapshot } = view;
  if (snapshot.bytes > MAX_SNAPSHOT) return [];
  const why = `${snapshot.name}, with its compiled models, is not published`;
  if (!snapshot.isPublished) return [{ action: 'PublishSnapshot', ...about(object, why), snapshot: snapshot.name }];
  const outside = `${snapshot.name} is not in the KV namespace that gateways outside the cluster read`;
  const push: Action = { action: 'PushSnapshot', ...about(object, outside), snapshot: snapshot.name };
  const removals = superfluousSnapshots(view, context).map(({ name, uid }): Action => {
    const replaced = `${snapshot.name} has replaced ${name}`;
    return { action: 'DeleteSnapshot', ...about(object, replaced), snapshot: name, uid };
  });
  return [...(snapshot.isPushed ? [] : [push]), ...removals];
}

/** During a rollout, Pods with any earlier snapshot may still start. */
function superfluousSnapshots(view: InstanceView, context: PlanContext): SnapshotView['older'] {
  const { object, snapshot } = view;
  if (!snapshot.isPublished || !context.evaluate(view).workload.isCurrent) return [];
  const inUse = `${object.metadata.name}-${object.status?.snapshotHash}`;
  return snapshot.older.slice(KEPT_SNAPSHOTS - 1).filter(({ name }) => name !== inUse);
}

/** The workload is written whole in every run, when its snapshot exists and can be mounted. */
function planWorkload(view: InstanceView, { world }: PlanContext): Action[] {
  const { object, workloadObjects, snapshot, storeType, storeFiles = [] } = view;
  const { type, writeProblem, check } = evaluateOwnType(view, world);
  if (type === undefined || writeProblem !== undefined || !snapshot.isPublished) return [];
  const { gatewayImage: image, gatewayPullSecrets: pullSecrets, version } = world.platform;
  const { apply, remove } = createWorkloadActions(view, world);
  const input = {
    instance: object,
    snapshot,
    connections: view.addressHash,
    logins: view.loginHash,
    image,
    pullSecrets,
    version,
  };
  const replicas = workloadObjects.get('Deployment')?.spec.replicas;
  const desired =
    storeType === undefined ? [] : desiredParts(type, { ...input, store: storeType, storeFiles }, replicas);
  const isFixed =
    desired.some(({ objectKind }) => objectKind === 'Deployment') &&
    !desired.some(({ objectKind }) => objectKind === 'HorizontalPodAutoscaler');
  const others = (['Deployment', 'Knative'] as const).filter((other) => other !== type);
  return [
    ...desired.flatMap(({ objectKind, object: desiredObject }) => apply(objectKind, desiredObject)),
    ...(isFixed ? remove('HorizontalPodAutoscaler', 'workload.scale needs none') : []),
    // The previous workload is removed when the new one serves. The object that runs the gateway is removed last: while
    // it exists, the others are searched for.
    ...others.flatMap((other) =>
      check.ok
        ? WORKLOAD_OBJECTS_OF[other]
            .toReversed()
            .flatMap((objectKind) => remove(objectKind, `the workload is of type ${type} now`))
        : [],
    ),
  ];
}

/**
 * The HTTPRoute or Ingress is written when the Service exists that it leads to. One that is not requested is removed;
 * if the other kind is requested instead, when that one works.
 */
function planRoute(view: InstanceView, context: PlanContext): Action[] {
  const { object, workloadObjects, routeProblems } = view;
  const { route, workload } = context.evaluate(view);
  const { apply, remove } = createWorkloadActions(view, context.world);
  const requested = workload.type === 'Deployment' ? requestedRoute(object)?.objectKind : undefined;
  const desired = desiredRoute(object, context.world.platform.version);
  const isReachable = workloadObjects.get('Service')?.isOurs === true;
  const isWritten = requested !== undefined && desired !== undefined && isReachable && !routeProblems.has(requested);
  const isReplaced = requested === undefined || route?.ok === true;
  return [
    ...(isWritten ? apply(requested, desired) : []),
    ...ROUTES.flatMap((objectKind) =>
      objectKind !== requested && isReplaced ? remove(objectKind, 'the spec does not ask for it') : [],
    ),
  ];
}
